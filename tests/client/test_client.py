"""A client and those that are made of it: impersonation, limiters that are plugged in, warnings."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import InMemory, response, serving
from trioformer import Client, open_client
from trioformer.client import ClientOptions
from trioformer.client._client import open_separate_client
from trioformer.errors import NotFoundError
from trioformer.kubeconfig import ClusterConfig, Impersonation
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer
from trioformer.transport import Limits, ServerWarning, TokenBucketRateLimiter

MEMORY = ClusterConfig(server="http://memory")
VERSION = '{"major":"1","minor":"36","gitVersion":"v1.36.3","platform":"linux/amd64"}'


def replies(count: int, **headers: str) -> InMemory:
    return InMemory([response(200, VERSION, **headers) for _ in range(count)])


# --- impersonation ---


async def test_a_client_that_impersonates_sends_the_user_and_its_attributes() -> None:
    http = replies(2)
    async with open_client(MEMORY, http_transport=http) as client:
        jane = client.impersonating("jane", groups=["dev"], uid="7", extra={"example.com/why": ["x"]})
        await jane.version()
        await client.version()
        assert jane.config.impersonate == Impersonation(
            user="jane", uid="7", groups=("dev",), extra={"example.com/why": ("x",)}
        )
        assert client.config.impersonate is None
    sent = [(name, value) for name, value in http.requests[0].headers.raw if name.startswith(b"Impersonate")]
    assert sent == [
        (b"Impersonate-User", b"jane"),
        (b"Impersonate-Uid", b"7"),
        (b"Impersonate-Group", b"dev"),
        (b"Impersonate-Extra-example.com%2Fwhy", b"x"),
    ]
    assert not any(name.startswith(b"Impersonate") for name, _ in http.requests[1].headers.raw)


async def test_clients_that_impersonate_share_the_connections_of_the_first() -> None:
    body = VERSION.encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with serving(reply, keep_alive=True) as server, open_client(ClusterConfig(server=server.url)) as client:
        for user in ("jane", "joe"):
            await client.impersonating(user).version()
        await client.version()
        assert server.connections == 1
    assert [head.count(b"Impersonate-User") for head in server.heads] == [1, 1, 0]


async def test_clients_that_impersonate_share_the_rate_limit(autojump_clock: trio.testing.MockClock) -> None:
    async with open_client(
        MEMORY, http_transport=replies(4), rate_limiter=TokenBucketRateLimiter(qps=1, burst=1)
    ) as client:
        for each in (client, client.impersonating("jane"), client, client.impersonating("joe")):
            await each.version()
        assert trio.current_time() == 3


async def test_a_client_that_impersonates_is_closed_with_the_first() -> None:
    async with open_client(MEMORY, http_transport=replies(1)) as client:
        jane = client.impersonating("jane")
    with pytest.raises(trio.ClosedResourceError):
        await jane.version()


async def test_a_string_in_place_of_several_is_a_type_error(client: Client) -> None:
    for given in [{"groups": "dev"}, {"extra": {"k": "dev"}}]:
        with pytest.raises(TypeError, match=r"must be a list or tuple of strings, not a single string"):
            client.impersonating("jane", **given)


# --- limiters ---


@attrs.define
class Gate:
    """A limiter that a program wrote."""

    waits: int = 0
    error: Exception | None = None

    async def wait(self) -> None:
        self.waits += 1
        await trio.sleep(2)
        if self.error is not None:
            raise self.error


async def test_a_limiter_is_asked_before_requests_and_pages_and_not_before_watches(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    """client-go: TestRESTClientLimiter"""
    gate = Gate()
    async with open_client(api_server.config, http_transport=api_server.http_transport(), rate_limiter=gate) as client:
        maps = client.api(ConfigMap, namespace="default")
        for name in "abc":
            await maps.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
        listed = await maps.list(page_size=2)
        assert (len(listed), listed.pages) == (3, 2)
        async with maps.watch(resource_version=listed.resource_version):
            pass
        assert gate.waits == 5
        assert trio.current_time() == 10


async def test_a_request_that_is_cancelled_while_it_waits_is_not_sent(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The deadline is that of the caller, and no request is late.

    client-go: TestTryThrottleWithInfoContextDeadline
    """
    http = replies(2)
    async with open_client(
        MEMORY, http_transport=http, rate_limiter=TokenBucketRateLimiter(qps=0.1, burst=1)
    ) as client:
        await client.version()
        with pytest.raises(trio.TooSlowError), trio.fail_after(5):
            await client.version()
        assert (len(http.requests), trio.current_time()) == (1, 5)
        await client.version()
        assert trio.current_time() == 10


# --- warnings ---

DEPRECATED = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records if each.name == "trioformer.transport"]


async def test_each_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of single objects, lists, watches and errors alike, by all clients that are made of one.

    client-go: TestRequestWarningHandler
    """
    two = f'{DEPRECATED}, 299 - "unknown field \\"spec.foo\\""'
    http = InMemory(
        [
            response(200, VERSION, warning=DEPRECATED),
            response(200, VERSION, warning=two),
            response(404, "", warning='299 - "from an error"'),
            response(200, "", warning='299 - "from a watch"'),
            response(200, VERSION, warning='299 - "from another user"'),
            response(200, VERSION, warning=DEPRECATED),
        ],
    )
    async with open_client(MEMORY, http_transport=http) as client:
        await client.version()
        await client.version()
        with pytest.raises(NotFoundError):
            await client.api(Pod, namespace="default").get("web")
        async with client.api(Pod, namespace="default").watch(resource_version="1"):
            pass
        await client.impersonating("jane").version()
        async with open_separate_client(client, purpose="x") as separate:
            await separate.version()
    assert logged(caplog) == [
        (
            logging.WARNING,
            "http://memory: GET /version: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (logging.WARNING, 'http://memory: GET /version: unknown field "spec.foo"'),
        (logging.WARNING, "http://memory: get pods/web in namespace default: from an error"),
        (logging.WARNING, "http://memory: watch pods in namespace default: from a watch"),
        (logging.WARNING, "http://memory: GET /version: from another user"),
    ]


async def test_a_handler_receives_a_warning_as_often_as_it_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    found: list[ServerWarning] = []
    http = replies(3, warning=DEPRECATED)
    async with open_client(MEMORY, http_transport=http, options=ClientOptions(warning_handler=found.append)) as client:
        for _ in range(3):
            await client.version()
    assert len(found) == 3
    assert logged(caplog) == []


@attrs.frozen
class DeprecatedError(Exception):
    """What a program raises of a warning."""


async def test_a_handler_may_raise_and_the_connection_is_closed() -> None:
    def refuse(warning: ServerWarning) -> None:
        raise DeprecatedError

    reply = b"HTTP/1.1 200 OK\r\nWarning: %s\r\nContent-Length: 50\r\n\r\n" % DEPRECATED.encode()
    async with (
        serving(reply, None) as server,
        open_client(ClusterConfig(server=server.url), options=ClientOptions(warning_handler=refuse)) as client,
    ):
        for _ in range(3):
            with pytest.raises(DeprecatedError):
                async with client.api(Pod).watch(resource_version="1"):
                    pass
        with pytest.raises(DeprecatedError):
            await client.api(Pod).list()
        await server.wait_until_open(1)  # that for probes


# --- the configuration ---


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "config")
    return tmp_path / "config"


@pytest.mark.parametrize("is_in_a_list", [False, True])
async def test_a_kubeconfig_that_is_a_fifo_is_read_once(
    fifo: Path, is_in_a_list: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"/gone{os.pathsep}{fifo}")
    content = (
        b"clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
        b"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            write = partial(trio.to_thread.run_sync, fifo.write_bytes, content, abandon_on_cancel=True)
            nursery.start_soon(write)
            kubeconfig = None if is_in_a_list else fifo
            async with open_client(kubeconfig=kubeconfig, http_transport=replies(1)) as client:
                assert client.config.server == "https://h"
                await client.version()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("options", None),
        ("options", {"retries": 0}),
        ("rate_limiter", 5),
        ("rate_limiter", TokenBucketRateLimiter),
        ("rate_limiter.wait", SimpleNamespace(wait=lambda: None)),
        ("http_transport", httpx.HTTPTransport()),  # for synchronous clients
        ("observer", []),
        ("observer.request_ended", SimpleNamespace(request_started=print, request_ended=trio.sleep)),
    ],
)
async def test_an_argument_of_another_type_is_refused_when_the_client_is_opened(name: str, wrong: object) -> None:
    with pytest.raises(TypeError, match=f"^{name} must "):
        async with open_client(MEMORY, **{"http_transport": replies(1), name.partition(".")[0]: wrong}):  # type: ignore[arg-type]  # the point
            raise AssertionError


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("compression", "no"),
        ("limits", {}),
        ("limits", Limits),
        ("plugin_policy", "DenyAll"),
        ("retries", "3"),
        ("retries", True),
        ("user_agent", b"me/1"),
    ],
)
def test_an_option_of_another_type_is_refused(name: str, wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{name.replace('_agent', ' agent')} must be"):
        ClientOptions(**{name: wrong})  # type: ignore[arg-type]  # the point
