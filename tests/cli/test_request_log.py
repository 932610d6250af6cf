"""``-v=6`` to ``-v=9``: what is shown of requests, and that nothing of it is secret."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator

import attrs
import httpx
import pytest

from tests.support.cli import run
from tests.support.scripted_http import InMemory, Reply, response
from trioformer.cli._request_log import RequestLog
from trioformer.client import Client, open_client
from trioformer.errors import StatusError
from trioformer.kubeconfig import ClusterConfig, Impersonation
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import TokenReview, TokenReviewSpec
from trioformer.models.core_v1 import ConfigMap, Pod, Secret, ServiceAccount
from trioformer.pods import run_in_pod
from trioformer.testing import APIServer

CONFIG = ClusterConfig(server="http://api.test:6443/prefix")
URL = "http://api.test:6443/prefix"
PASSWORD = "passw0rd-0f-a-secret"
TOKEN = "t0k3n-0f-a-us3r"
SECRETS = (PASSWORD, base64.b64encode(PASSWORD.encode()).decode(), TOKEN, "jo@example.com")


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    logger = logging.getLogger("trioformer")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(before)


def shown(caplog: pytest.LogCaptureFixture) -> str:
    """Return what is shown, with the same duration everywhere."""
    text = "\n".join(each.getMessage() for each in caplog.records if each.name == "trioformer.cli")
    return re.sub(r"\d+ milliseconds", "N milliseconds", text)


async def requested(
    level: int, *replies: Reply, method: str = "GET", path: str = "/api/v1/nodes", **more: object
) -> None:
    async with open_client(CONFIG, http_transport=InMemory([*replies]), observer=RequestLog(URL, level)) as client:
        await client.request(method, path, **more)  # type: ignore[arg-type]  # of the test


async def test_level_6_shows_the_url_the_status_and_the_duration(caplog: pytest.LogCaptureFixture) -> None:
    reply = response(200, "{}")
    await requested(6, reply, params={"limit": 500, "labelSelector": "app=web"})
    assert shown(caplog) == f"GET {URL}/api/v1/nodes?limit=500&labelSelector=app%3Dweb 200 OK in N milliseconds"


async def test_level_7_shows_known_headers_of_the_request(caplog: pytest.LogCaptureFixture) -> None:
    config = attrs.evolve(CONFIG, token=TOKEN, impersonate=Impersonation(user="jo@example.com"))
    replies = InMemory([response(404, "{}", x_own="1")])
    async with open_client(config, http_transport=replies, observer=RequestLog(URL, 7)) as client:
        with pytest.raises(StatusError):
            await client.request("POST", "/api/v1/nodes", body={"a": 1}, accept="text/x")
    assert replies.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"
    lines = re.sub("trioformer/.*", "trioformer", shown(caplog))
    assert lines == (
        f"POST {URL}/api/v1/nodes\n"
        "Request Headers:\n    Accept: text/x\n    Accept-Encoding: identity\n    User-Agent: trioformer\n"
        "    Content-Type: application/json\n"
        f"POST {URL}/api/v1/nodes 404 Not Found in N milliseconds"
    )


async def test_level_8_shows_the_beginnings_of_bodies_and_level_9_shows_all(caplog: pytest.LogCaptureFixture) -> None:
    for level in (8, 9):
        caplog.clear()
        reply = response(201, '"' + "x" * 2000 + '"', content_type="application/json", set_cookie="a=b")
        await requested(level, reply, method="POST", body={"a": "y" * 2000})
        text = shown(caplog)
        assert f"POST {URL}/api/v1/nodes 201 Created in N milliseconds" in text
        assert "Response Headers:\n    Content-Type: application/json\n" in text
        assert "a=b" not in text
        assert ('Request Body: {"a":"yyy' in text, 'Response Body: "xxx' in text) == (True, True)
        is_whole = level == 9
        assert ("x" * 2000 in text, "y" * 2000 in text) == (is_whole, is_whole)
        assert ("x" * 1023 + " [truncated 978 bytes]" in text) != is_whole
        assert ("curl -v -XPOST -H 'Accept: application/json, */*' -H '" in text) == is_whole


async def test_the_flag_shows_the_requests_of_a_command(
    api_server: APIServer, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"color": "blue"}))
    for level in (0, 5, 6, 8):
        caplog.clear()
        assert (await run(api_server, "get", "configmaps", "-o", "yaml", f"-v={level}")).code == 0
        assert ("/api/v1/namespaces/default/configmaps" in shown(caplog)) == (level >= 6)
        assert ("blue" in shown(caplog)) == (level >= 8)


async def test_a_watch_is_shown_when_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    observer = RequestLog(URL, 8)
    async with (
        open_client(CONFIG, http_transport=InMemory([response(200, "{}", None)]), observer=observer) as client,
        client.stream("GET", "/api/v1/nodes", params={"watch": True}) as stream,
    ):
        assert f"GET {URL}/api/v1/nodes?watch=true 200 OK in N milliseconds" in shown(caplog)
        await stream.receive_some()
    assert "Response Body" not in shown(caplog)


async def test_a_request_without_a_response_shows_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Exception, match="refused"):
        await requested(6, httpx.ConnectError("refused"))
    assert shown(caplog) == f"GET {URL}/api/v1/nodes ConnectionFailedError in N milliseconds"


async def test_control_characters_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    await requested(8, response(200, b"\x1b[31m\xff"))
    assert "Response Body: \\u001b[31m\ufffd" in shown(caplog)


async def test_an_unknown_status_is_shown_without_a_phrase(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StatusError):
        await requested(6, response(499, "{}"))
    assert shown(caplog) == f"GET {URL}/api/v1/nodes 499  in N milliseconds"


async def use_secrets(client: Client) -> None:
    """Send requests for Secrets and tokens, in every form."""
    secrets = client.api(Secret, namespace="default")
    secret = Secret(metadata=ObjectMeta(name="login", namespace="default"), string_data={"password": PASSWORD})
    await secrets.create(secret)
    await secrets.apply(secret, field_manager="tests")
    found = await secrets.get("login")
    last = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": PASSWORD}}}
    await secrets.patch("login", last)
    await secrets.replace(found.evolve(metadata=ObjectMeta(name="login", namespace="default")))
    await secrets.list()
    await client.request("GET", "/api/v1/secrets", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    await client.request("GET", "/api/v1/namespaces/default/%73ecrets/login")
    with pytest.raises(StatusError):
        await client.request("POST", "/api/v1/namespaces/default/secrets", body={"password": PASSWORD})
    async with secrets.watch(resource_version="0") as events:
        await anext(aiter(events))
    await client.api(ServiceAccount, namespace="default").create_token("robot")
    await client.api(TokenReview).create(TokenReview(metadata=ObjectMeta(), spec=TokenReviewSpec(token=TOKEN)))
    with pytest.raises(StatusError):
        await client.request("GET", "/api/v1/namespaces/default/services/x/proxy", params={"password": PASSWORD})
    pods = client.api(Pod, namespace="default")
    with pytest.raises(StatusError):
        await run_in_pod(pods, "missing", ["mysql", f"-p{PASSWORD}"], container="db")
    await secrets.delete("login")


@pytest.mark.parametrize("level", [6, 7, 8, 9])
async def test_no_secret_is_shown(api_server: APIServer, caplog: pytest.LogCaptureFixture, level: int) -> None:
    config = attrs.evolve(api_server.config, token=TOKEN, impersonate=Impersonation(user="jo@example.com"))
    received: list[str] = []
    api_server.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))

    @attrs.frozen
    class Recording(httpx.AsyncBaseTransport):
        """Records the tokens that the server makes."""

        inner: httpx.AsyncBaseTransport

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await self.inner.handle_async_request(request)
            if request.url.path.endswith("/token"):
                received.append((await answer.aread()).decode())
            return answer

    transport = Recording(api_server.http_transport())
    async with open_client(config, http_transport=transport, observer=RequestLog(config.server, level)) as client:
        await use_secrets(client)
    (token,) = re.findall('"token": *"([^"]+)"', received[0])
    text = shown(caplog)
    assert [each for each in (*SECRETS, token) if each in text] == []
    assert ("bytes, not shown>" in text) == (level >= 8)
    assert "/secrets/login 200 OK" in text
    assert "/serviceaccounts/robot/token 201 Created" in text
    assert "&command=…" in text


@pytest.mark.parametrize("path", ["pods/x/exec", "pods/x/attach", "stringsecrets/x"])
async def test_no_body_that_may_quote_a_secret_is_shown(caplog: pytest.LogCaptureFixture, path: str) -> None:
    refused = response(403, f'{{"message":"webhook denied mysql -p{PASSWORD}"}}')
    with pytest.raises(StatusError):
        await requested(9, refused, path=f"/api/v1/namespaces/default/{path}")
    assert PASSWORD not in shown(caplog)
    assert "bytes, not shown>" in shown(caplog)


@pytest.mark.parametrize("query", [f"?{PASSWORD}", f"?limit=1&{PASSWORD}=", f"?a={PASSWORD}=&watch=0"])
async def test_no_unknown_part_of_a_query_is_shown(caplog: pytest.LogCaptureFixture, query: str) -> None:
    replies = InMemory([response(200, "{}")])
    async with open_client(CONFIG, http_transport=replies, observer=RequestLog(URL, 9)) as client:
        await client.http().get(f"/api/v1/nodes{query}")
    assert PASSWORD not in shown(caplog)
    assert "…" in shown(caplog)
