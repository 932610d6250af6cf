"""Reading and writing single objects: requests, responses and errors."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.clients import client_of
from tests.support.scripted_http import InMemory, response
from trioformer.client import ClientOptions, open_client
from trioformer.client._client import VersionInfo
from trioformer.client._internal import without_retries
from trioformer.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    ConnectionFailedError,
    LimitExceededError,
    NotFoundError,
    TooManyRequestsError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig, ConfigOverrides
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Namespace, Node, Pod
from trioformer.transport import Limits

CONFIG = ClusterConfig(server="https://api.test", token="s3cret")
POD = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop","uid":"u","resourceVersion":"7"}}'
SUCCESS = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"web-0"}}'


def sent(transport: InMemory, number: int = 0) -> tuple[str, str | None, Any]:
    request = transport.requests[number]
    body = json.loads(request.content) if request.content else None
    return transport.targets[number], request.headers.get("content-type"), body


# --- URLs ---


async def test_every_object_has_its_url() -> None:
    for kind, namespace, name, target in [
        (Pod, "shop", "web-0", "/api/v1/namespaces/shop/pods/web-0"),
        (Node, None, "worker-1", "/api/v1/nodes/worker-1"),
        (Namespace, None, "shop", "/api/v1/namespaces/shop"),
        (Deployment, "shop", "web", "/apis/apps/v1/namespaces/shop/deployments/web"),
        (Node, None, "system:node é", "/api/v1/nodes/system%3Anode%20%C3%A9"),
        (Node, None, "a?b#c", "/api/v1/nodes/a%3Fb%23c"),
    ]:
        kind_name = kind.__resource__.kind
        body = json.dumps({"kind": kind_name, "metadata": {"name": name}})
        async with client_of(body) as (client, transport):
            found = await client.api(kind, namespace).get(name)
        assert type(found) is kind
        assert found.name == name
        assert transport.targets == [f"GET {target}"]


async def test_a_missing_name_never_means_all_objects() -> None:
    for namespace in ["shop", None]:
        async with client_of() as (client, transport):
            api = client.api(Pod, namespace) if namespace else client.api(Node)
            for call in (api.get, api.delete):
                with pytest.raises(TypeError, match="not None"):
                    await call(None)  # type: ignore[arg-type]  # the mistake that the test makes
            with pytest.raises(TypeError, match="not None"):
                await api.patch(None, {})  # type: ignore[arg-type]  # the mistake that the test makes
        assert transport.requests == []


async def test_an_invalid_namespace_raises() -> None:
    """client-go: TestRequestPreflightCheck"""
    async with client_of() as (client, transport):
        with pytest.raises(ValueError, match="pass None for all namespaces"):
            client.api(Pod, "")
        with pytest.raises(ValueError, match="a namespace must not"):
            client.api(Pod, "a/b")
        with pytest.raises(ValueError, match="nodes are not namespaced; omit the namespace 'shop'"):
            client.api(Node, "shop")
        with pytest.raises(ValueError, match="nodes are not namespaced"):
            await client.api(Node).get("worker-1", namespace="shop")
        with pytest.raises(TypeError, match="is not a kind"):
            client.api(ObjectMeta)  # type: ignore[type-var]  # the mistake that the test makes
        with pytest.raises(ValueError, match="pods are namespaced, and this API has no namespace"):
            await client.api(Pod).get("web-0")
        with pytest.raises(ValueError, match="pods are namespaced, and this API has no namespace"):
            await client.api(Pod).delete("web-0")
        with pytest.raises(ValueError, match="a namespace must not"):
            await client.api(Pod).create(Pod(metadata=ObjectMeta(name="web-0", namespace="a/b")))
    assert transport.requests == []


# --- writing ---


async def test_an_api_of_all_namespaces_uses_the_namespace_of_the_object() -> None:
    async with client_of(POD, POD) as (client, transport):
        pod = Pod(metadata=ObjectMeta(name="web-0", namespace="shop"))
        await client.api(Pod).create(pod)
        await client.api(Pod).replace(pod)
        with pytest.raises(ValueError, match="neither <Pod web-0> nor this API has a namespace"):
            await client.api(Pod).create(Pod(metadata=ObjectMeta(name="web-0")))
        with pytest.raises(ValueError, match="'other'"):
            await client.api(Pod, "other").create(pod)
        with pytest.raises(TypeError, match=r"^the API of Node does not accept <Pod shop/web-0>$"):
            await client.api(Node).create(pod)  # type: ignore[arg-type]  # the mistake that the test makes
        with pytest.raises(ValueError, match="nodes are not namespaced"):
            await client.api(Node).create(Node(metadata=ObjectMeta(name="x", namespace="shop")))
    assert transport.targets == ["POST /api/v1/namespaces/shop/pods", "PUT /api/v1/namespaces/shop/pods/web-0"]


async def test_replace_sends_the_object_and_replace_status_uses_the_subresource() -> None:
    async with client_of(POD, POD, POD) as (client, transport):
        pods = client.api(Pod, "shop")
        pod = await pods.get("web-0")
        changed = pod.evolve(metadata=pod.metadata.evolve(labels={"seen": "yes"}))
        await pods.replace(changed)
        await pods.replace_status(changed)
    body = json.loads(POD)
    body["metadata"]["labels"] = {"seen": "yes"}
    assert sent(transport, 1) == ("PUT /api/v1/namespaces/shop/pods/web-0", "application/json", body)
    assert sent(transport, 2) == ("PUT /api/v1/namespaces/shop/pods/web-0/status", "application/json", body)


async def test_delete_returns_the_object_or_none() -> None:
    async with client_of(POD, response(202, POD), SUCCESS) as (client, transport):
        pods = client.api(Pod, "shop")
        first, second, third = [await pods.delete("web-0") for _ in range(3)]
    assert first is not None
    assert second is not None
    assert first.uid == second.uid == "u"
    assert third is None
    assert sent(transport) == ("DELETE /api/v1/namespaces/shop/pods/web-0", None, None)


async def test_delete_sends_its_arguments_as_delete_options() -> None:
    async with client_of(SUCCESS, SUCCESS) as (client, transport):
        pods = client.api(Pod, "shop")
        await pods.delete(
            "web-0", grace_period_seconds=0, propagation_policy="Foreground", uid="u", resource_version="7"
        )
        await pods.delete("web-0", uid="u")
    assert sent(transport)[1:] == (
        "application/json",
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u", "resourceVersion": "7"},
        },
    )
    assert sent(transport, 1)[2] == {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "u"}}


# --- errors ---


def status(code: int, reason: str, message: str = "no") -> httpx.Response:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    return response(code, json.dumps({**body, "reason": reason, "message": message}))


async def test_a_status_error_names_the_operation() -> None:
    message = 'pods "web-0" not found'
    async with client_of(
        status(404, "NotFound", message), status(409, "AlreadyExists"), status(409, "Conflict"), status(404, "NotFound")
    ) as (client, _):
        pods = client.api(Pod, "shop")
        pod = Pod(metadata=ObjectMeta(name="web-0"))
        with pytest.raises(NotFoundError, match=r"^get pods/web-0 in namespace shop: pods .* not found"):
            await pods.get("web-0")
        with pytest.raises(AlreadyExistsError, match=r"^create pods/web-0 in namespace shop: no"):
            await pods.create(pod)
        with pytest.raises(ConflictError, match=r"^replace pods/web-0/status in namespace shop: no"):
            await pods.replace_status(pod)
        with pytest.raises(NotFoundError, match=r"^delete pods/web-0 in namespace shop: no"):
            await pods.delete("web-0")


async def test_a_success_without_the_object_is_an_unexpected_response() -> None:
    for body, text in [
        ("", "not a Pod: an empty body"),
        ("<html><title>Sign in</title>", "not a Pod: 28 bytes, HTML"),
        (r'{"kind":"Pod\u001b[2J"}', "not a Pod: 23 bytes, JSON;"),
        ('{"kind":"Pod","metadata":{"na', "not a Pod"),
        ('{"kind":"Table","metadata":{},"rows":[]}', "a Table, not a Pod"),
        (SUCCESS, "a Status, not a Pod"),
    ]:
        async with client_of(body, body) as (client, _):
            pods = client.api(Pod, "shop")
            where = r"unexpected response \(HTTP 200\) to get pods/web-0 in namespace shop: "
            with pytest.raises(UnexpectedResponseError, match=f"^{where}{text}") as caught:
                await pods.get("web-0")
            assert caught.value.code == 200
            assert "check that https://api.test is an API server" in str(caught.value)
            if body != SUCCESS:
                with pytest.raises(UnexpectedResponseError, match=text):
                    await pods.delete("web-0")


async def test_an_exceeded_limit_names_the_operation() -> None:
    for call, where in [
        (lambda client: client.api(Pod, "shop").get("web"), "get pods/web in namespace shop"),
        (lambda client: client.api(Pod, "shop").create(Pod(metadata=ObjectMeta())), "create pods in namespace shop"),
        (lambda client: client.discover("v1", "Pod"), "discover Pod of v1"),
        (lambda client: client.version(), "GET /version"),
    ]:
        limits = Limits(object_bytes=1_000)
        transport = InMemory([response(200, " " * 2_000)])
        async with open_client(CONFIG, http_transport=transport, options=ClientOptions(limits=limits)) as client:
            with pytest.raises(LimitExceededError) as caught:
                await call(client)
        text = (
            f"{where}: the body is too long (the limit is Limits.object_bytes=1000); if the response is correct, "
            "raise the limit: "
        )
        assert str(caught.value).startswith(text)
        assert caught.value.limit == "object_bytes"


async def test_a_failed_read_is_sent_again_and_a_failed_write_is_not(autojump_clock: MockClock) -> None:
    async with client_of(httpx.ReadError("reset"), POD, httpx.ReadError("reset"), POD) as (client, transport):
        await client.api(Pod, "shop").get("web-0")
        assert len(transport.requests) == 2
        with pytest.raises(ConnectionFailedError, match=r"; the server may have executed the request$"):
            await client.api(Pod, "shop").delete("web-0")
        assert len(transport.requests) == 3


async def test_nothing_is_sent_again_without_retries(autojump_clock: MockClock) -> None:
    busy = response(429, "", retry_after="1")
    lost = httpx.ReadError("reset")
    async with client_of(lost, lost, lost, busy, busy) as (client, transport):
        pods = without_retries(client.api(Pod, "shop"))
        assert repr(pods) == repr(client.api(Pod, "shop"))
        with pytest.raises(ConnectionFailedError):
            await pods.get("web-0")
        with pytest.raises(ConnectionFailedError):
            await pods.list()
        with pytest.raises(ConnectionFailedError):
            async with pods.watch():
                raise AssertionError
        with pytest.raises(TooManyRequestsError):
            await pods.delete("web-0")
        with pytest.raises(TooManyRequestsError):
            await pods.check_resource_version("5")
        assert len(transport.requests) == 5
    assert trio.current_time() == 0


# --- the client itself ---


async def test_version_returns_the_servers_version() -> None:
    body = '{"major":"1","minor":"36+","gitVersion":"v1.36.3-gke","platform":"linux/amd64","goVersion":"go1.26"}'
    async with client_of(body) as (client, transport):
        found = await client.version()
    assert found == VersionInfo(git_version="v1.36.3-gke", major="1", minor="36+", platform="linux/amd64")
    assert transport.targets == ["GET /version"]


async def test_a_response_that_is_not_a_version_is_unexpected() -> None:
    for body in ["<html>", "{}", "[]", ""]:
        async with client_of(body) as (client, _):
            text = r"^unexpected response \(HTTP 200\) to GET /version: not a version object: "
            with pytest.raises(UnexpectedResponseError, match=text):
                await client.version()


async def test_those_that_wait_to_retry_learn_from_other_requests(autojump_clock: MockClock) -> None:
    lost = httpx.ReadError("lost")
    replies = lost, "{}", response(200, "x", lost)
    async with client_of(*replies, retries=0) as (client, _), trio.open_nursery() as nursery:
        pods = client.api(Pod)
        with pytest.raises(ConnectionFailedError):
            await client.discover("v1", "Pod")
        nursery.start_soon(pods.wait_to_retry, 1_000)
        await trio.sleep(2)
        assert len(nursery.child_tasks) == 1
        with pytest.raises(UnexpectedResponseError):
            await client.version()
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 0
        async with pods.watch() as events:
            await trio.sleep(1)  # until then a failure does not count: it may be that of one path only
            with pytest.raises(ConnectionFailedError):
                await events.receive_batch()  # the error comes after a byte
        passed = []
        for _ in range(3):
            await pods.wait_to_retry(-1)
            passed.append(trio.current_time())
        assert passed == pytest.approx([3.0, 3.2, 3.4]), "the body of the watch failed"


async def test_reprs_show_the_server_and_no_secret() -> None:
    async with client_of(token="s3cret") as (client, _):
        assert repr(client) == "<Client of https://api.test>"
        assert repr(client.api(Pod, "shop")) == "<Api of pods in namespace shop at https://api.test>"
        assert repr(client.api(Deployment)) == "<Api of deployments.apps at https://api.test>"
        assert "s3cret" not in repr(client.config)


async def test_a_client_cannot_be_used_after_its_block() -> None:
    async with client_of() as (client, _):
        pods = client.api(Pod, "shop")
    with pytest.raises(trio.ClosedResourceError, match="this client is closed"):
        await pods.get("web-0")
    with pytest.raises(trio.ClosedResourceError, match="this client is closed"):
        await pods.list()
    with pytest.raises(trio.ClosedResourceError, match="this client is closed"):
        async with pods.watch():
            pass
    with pytest.raises(trio.ClosedResourceError, match="this client is closed"):
        await client.version()


async def test_an_exception_of_the_block_of_a_client_is_not_wrapped() -> None:
    error = KeyError("mine")

    async def fail() -> None:
        async with client_of():
            raise error

    with pytest.raises(KeyError) as caught:
        await fail()
    assert caught.value is error


KUBECONFIG = """
current-context: one
contexts: [{name: one, context: {cluster: c}}, {name: two, context: {cluster: d, namespace: shop}}]
clusters: [{name: c, cluster: {server: "https://c.test"}}, {name: d, cluster: {server: "https://d.test"}}]
"""


async def test_open_client_finds_its_configuration(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    transport = InMemory([])
    async with open_client(kubeconfig=file, context="two", http_transport=transport) as client:
        assert (client.config.server, client.config.namespace) == ("https://d.test", "shop")
    monkeypatch.setenv("KUBECONFIG", str(file))
    async with open_client(http_transport=transport) as client:
        assert client.config.server == "https://c.test"
    overrides = ConfigOverrides(server="https://e.test", namespace="n")
    async with open_client(kubeconfig=file, overrides=overrides, http_transport=transport) as client:
        assert (client.config.server, client.config.namespace) == ("https://e.test", "n")
    with pytest.raises(ConfigError):
        async with open_client(kubeconfig=tmp_path / "missing"):
            pass


async def test_a_config_excludes_kubeconfig_context_and_overrides() -> None:
    for given in [{"kubeconfig": "x"}, {"context": "x"}, {"overrides": ConfigOverrides()}]:
        with pytest.raises(ValueError, match="not both"):
            async with open_client(CONFIG, **given):  # type: ignore[arg-type]  # mypy checks against every parameter
                pass
