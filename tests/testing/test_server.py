"""The embedded API server: direct API, in-memory transport, faults, statistics."""

from __future__ import annotations

import gc
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.raw_requests import URL, config_map, http_client, pod, running, watching
from trioformer.client import ClientOptions, open_client
from trioformer.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
)
from trioformer.models import KubernetesObject, ObjectMeta, ResourceInfo
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod, PodStatus, Toleration
from trioformer.testing import APIServer
from trioformer.testing._in_memory import Exchange, InMemoryTransport
from trioformer.testing._serving._requests import RequestRecord

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Widget(KubernetesObject):
    __resource__ = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)

    size: int = 0


# --- the direct API -------------------------------------------------------------------------------------------------


def test_the_direct_api_takes_and_returns_models() -> None:
    server = APIServer()
    made = server.create(Pod(metadata=ObjectMeta(name="a"), status=PodStatus(phase="Running")))
    assert type(made) is Pod
    assert (made.namespace, made.status.phase) == ("default", "Running")
    replaced = server.replace(made.evolve(status=PodStatus(phase="Failed")))
    assert replaced.status == PodStatus(phase="Failed", qos_class="BestEffort")
    patched = server.patch(Pod, "a", {"metadata": {"labels": {"x": "y"}}})
    assert server.get(Pod, "a") == patched
    assert [one.name for one in server.list(Pod, label_selector="x=y")] == ["a"]
    assert server.list(Pod, namespace="kube-system") == []
    server.delete(patched)
    assert server.list(Pod) == []


def test_the_direct_api_takes_and_returns_dicts() -> None:
    server = APIServer()
    made = server.create(config_map())
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    assert server.replace({**made, "data": {"a": "b"}})["data"] == {"a": "b"}
    assert "data" not in server.patch("configmaps", "cm", {"data": {"a": None}})
    assert len(server.list("configmaps", field_selector="metadata.name=cm")) == 1
    assert server.get(ConfigMap.__resource__, "cm")["kind"] == "ConfigMap"
    server.delete("configmaps", "cm", namespace="default")
    assert server.list("configmaps") == []


def test_a_model_that_would_be_merged_by_a_patch_is_refused() -> None:
    server = APIServer()
    server.create(Pod(metadata=ObjectMeta(name="a")))
    for patch in ({"status": PodStatus(pod_ip="10.0.0.1")}, {"spec": {"x": PodStatus()}}, Pod()):
        with pytest.raises(TypeError, match=r"^patch a: [a-z. ]+ must be a mapping, not a Pod.*; call replace\(\)"):
            server.patch(Pod, "a", patch)  # type: ignore[arg-type]  # the mistake that the test makes
    toleration = Toleration(toleration_seconds=3)
    assert server.patch(Pod, "a", {"spec": {"tolerations": [toleration]}}).spec.tolerations == (toleration,)


def test_cluster_scoped_kinds_need_no_namespace() -> None:
    server = APIServer()
    made = server.create(Namespace(metadata=ObjectMeta(name="shop")))
    assert made.namespace is None
    assert server.create(Pod(metadata=ObjectMeta(name="a", namespace="shop"))).namespace == "shop"
    assert server.get(Pod, "a", namespace="shop").name == "a"
    server.delete(made)
    assert [one.name for one in server.list(Namespace, namespace="ignored")] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]


def test_the_direct_api_raises_the_errors_of_a_client() -> None:
    server = APIServer()
    made = server.create(Pod(metadata=ObjectMeta(name="a")))
    with pytest.raises(AlreadyExistsError, match='create: pods "a" already exists'):
        server.create(Pod(metadata=ObjectMeta(name="a")))
    with pytest.raises(NotFoundError, match='get b: pods "b" not found'):
        server.get(Pod, "b")
    with pytest.raises(NotFoundError):
        server.delete(Pod, "b")
    with pytest.raises(InvalidError):
        server.create(Pod(metadata=ObjectMeta(name="NO")))
    with pytest.raises(BadRequestError):
        server.list(Pod, field_selector="spec.no=x")
    server.patch(Pod, "a", {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(ConflictError, match="the object has been modified"):
        server.replace(made.evolve(status=PodStatus()))


def test_a_custom_kind_is_served_once_registered() -> None:
    server = APIServer()
    for call in (lambda: server.create(Widget(metadata=ObjectMeta(name="w"))), lambda: server.list(Widget)):
        with pytest.raises(NotFoundError, match=r"is not served; call register\(\)"):
            call()
    with pytest.raises(NotFoundError, match="widgets is not served"):
        server.list("widgets")
    server.register(Widget)
    assert server.create(Widget(metadata=ObjectMeta(name="w"), size=3)).size == 3
    assert server.get("widgets.example.com", "w")["size"] == 3


def test_the_versions_of_a_kind_share_their_objects() -> None:
    server = APIServer()
    server.create({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}})
    (found,) = server.list(
        ResourceInfo(group="autoscaling", version="v2", kind="x", plural="horizontalpodautoscalers", namespaced=True)
    )
    assert found["apiVersion"] == "autoscaling/v2"


def test_the_repr_shows_state_objects_and_revision() -> None:
    assert repr(APIServer()) == "<APIServer, not running, 4 objects at revision 5>"


# --- the in-memory transport ----------------------------------------------------------------------------------------


async def test_the_transport_needs_a_running_server() -> None:
    server = APIServer()
    async with http_client(server) as http:
        with pytest.raises(RuntimeError, match=r"not running: await nursery.start\(server.run\)"):
            await http.get("/version")


async def test_a_server_cannot_run_twice_at_once(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    with pytest.raises(RuntimeError, match="already running"):
        await server.run()


async def test_a_server_keeps_its_objects_when_it_runs_again() -> None:
    server = APIServer()
    for _ in range(2):
        async with running(server) as http:
            await http.post(PODS, json={**pod(), "metadata": {"generateName": "a-"}})
    assert len(server.list(Pod)) == 2
    assert not server.statistics().is_running


async def test_the_end_of_the_server_breaks_open_responses() -> None:
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with watching(server, PODS) as watch:
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True), pytest.raises(httpx.RemoteProtocolError):
                await watch.event()
    statistics = server.statistics()
    assert (statistics.is_running, statistics.open_watches) == (False, 0)


async def test_the_end_of_the_server_breaks_a_request_without_a_response() -> None:
    server = APIServer()
    server_scope = trio.CancelScope()

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        with server_scope:
            await server.run(task_status=task_status)

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        async with http_client(server) as http:
            server_scope.cancel()
            with pytest.raises(httpx.RemoteProtocolError, match="without a response"):
                await http.get(PODS)


async def test_unread_chunks_are_bounded(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    for number in range(200):
        server.create(config_map(f"cm-{number:03}"))
    async with watching(server, CONFIG_MAPS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        server.disconnect_watches()
        assert 16 <= len(await watch.rest()) <= 18


async def test_the_read_timeout_uses_trios_clock(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    async with http_client(server) as http:
        request = http.build_request("GET", f"{PODS}?watch=1", timeout=httpx.Timeout(None, read=7))
        response = await server.http_transport().handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        with pytest.raises(httpx.ReadTimeout, match="nothing for 7 s"):
            await response.stream.__aiter__().__anext__()
        await response.stream.aclose()
    assert trio.current_time() == 7


@pytest.mark.parametrize("deadline", [0.0, 1.0])
async def test_cancelling_a_request_leaves_no_task_and_no_watch(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, deadline: float
) -> None:
    server = APIServer()
    await nursery.start(server.run)
    await trio.testing.wait_all_tasks_blocked()
    tasks = len(nursery.child_tasks)
    async with http_client(server) as http:
        for _ in range(5):
            with trio.move_on_after(deadline):
                async with http.stream("GET", f"{PODS}?watch=1") as response:
                    async for _ in response.aiter_raw():
                        pass
    await trio.testing.wait_all_tasks_blocked()
    assert server.statistics().open_watches == 0
    assert len(nursery.child_tasks) == tasks
    gc.collect()  # an async generator that was not closed would warn, which is an error


async def test_a_client_that_is_cancelled_before_the_response_ends_the_request(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    request = httpx.Request("GET", f"{URL}{PODS}?watch=1")
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            inner.start_soon(server.http_transport().handle_async_request, request)
            await trio.lowlevel.checkpoint()
            scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert server.statistics().open_watches == 0


async def test_a_request_that_the_ending_server_does_not_receive_fails(nursery: trio.Nursery) -> None:
    sender, exchanges = trio.open_memory_channel[Exchange](0)
    transport = InMemoryTransport(lambda: sender, APIServer().asgi_app)

    async def end() -> None:
        await trio.testing.wait_all_tasks_blocked()
        exchanges.close()

    nursery.start_soon(end)
    with pytest.raises(httpx.RemoteProtocolError, match="without a response"):
        await transport.handle_async_request(httpx.Request("GET", f"{URL}{PODS}?watch=1"))


async def test_a_response_that_is_too_late_is_a_timeout(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer()

    sender, exchanges = trio.open_memory_channel[Exchange](1)
    transport = InMemoryTransport(lambda: sender, APIServer().asgi_app)
    request = httpx.Request("GET", f"{URL}{PODS}?watch=x", extensions={"timeout": {"read": 3}})
    with pytest.raises(httpx.ReadTimeout, match="did not respond for 3 s"):
        await transport.handle_async_request(request)
    exchange = await exchanges.receive()
    assert exchange.disconnected.is_set()
    # Serving it later sends to a closed channel, which is not an error.
    await exchange.serve(server.asgi_app)
    assert exchange.head is not None


async def test_an_unreachable_server_refuses_connections(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    server = APIServer()
    await nursery.start(server.run)
    async with server.open_client() as client:
        pods = client.api(Pod)
        async with pods.watch() as events:
            await trio.testing.wait_all_tasks_blocked()
            with server.unreachable():
                with pytest.raises(ConnectionFailedError):
                    await events.receive_batch()
                with pytest.raises(ConnectionFailedError) as caught:
                    await pods.list()
                assert caught.value.refused
        assert len(await pods.list()) == 0


async def test_an_unsupported_asgi_scope_is_an_error() -> None:
    async def nothing(*_: Any) -> Any: ...

    with pytest.raises(RuntimeError, match="does not support websocket"):
        await APIServer().asgi_app({"type": "websocket"}, nothing, nothing)


async def test_a_watch_ignores_all_messages_but_the_disconnect() -> None:
    sent: list[Any] = []
    messages = [
        {"type": "http.request", "body": b""},
        {"type": "http.request", "body": b""},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        await trio.lowlevel.checkpoint()
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    scope = {"type": "http", "method": "GET", "path": PODS, "query_string": b"watch=1", "headers": []}
    await APIServer().asgi_app(scope, receive, send)
    assert sent == ["http.response.start"]


async def test_a_client_that_disconnects_within_its_body_gets_no_response() -> None:
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": PODS, "query_string": b"", "headers": []}
    await APIServer().asgi_app(scope, receive, send)
    assert sent == []


# --- faults ---------------------------------------------------------------------------------------------------------


async def test_the_next_matching_requests_fail() -> None:
    server = APIServer()
    async with running(server) as http:
        server.fail_next(2, verb="list", resource="pods", status=503)
        assert server.statistics().pending_faults == 2
        assert (await http.get(CONFIG_MAPS)).status_code == 200
        assert (await http.get(f"{PODS}/x")).status_code == 404
        codes = [(await http.get(PODS)).status_code for _ in range(3)]
        assert codes == [503, 503, 200]
        assert server.statistics().pending_faults == 0


async def test_a_failure_can_have_retry_after(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.fail_next(status=429, retry_after=7)
    async with open_client(
        server.config, http_transport=server.http_transport(), options=ClientOptions(retries=0)
    ) as client:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.api(Pod).list()
    assert caught.value.details.retry_after_seconds == 7
    async with http_client(server) as http:
        server.fail_next(status=429, retry_after=7)
        assert (await http.get(PODS)).headers["retry-after"] == "7"


async def test_a_function_can_choose_which_requests_fail() -> None:
    server = APIServer()

    def choose(request: RequestRecord) -> int | None:
        return 410 if "continue" in request.query else None

    async with running(server) as http:
        server.fail_next(status=choose)
        assert (await http.get(PODS)).status_code == 200
        assert (await http.get(f"{PODS}?continue=x")).json()["reason"] == "Expired"


async def test_a_watch_can_be_made_to_fail(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.fail_next(verb="watch", status=410)
    async with server.open_client() as client:
        with pytest.raises(ExpiredError):
            async with client.api(Pod).watch(resource_version="1"):
                pass


@pytest.mark.parametrize(("n", "status"), [(0, 500), (1, 200), (1, 600)])
def test_invalid_faults_are_rejected(n: int, status: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        APIServer().fail_next(n, status=status)


def test_ending_the_watches_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        APIServer().disconnect_watches(kind="widgets")


def test_a_future_revision_cannot_be_compacted() -> None:
    with pytest.raises(ValueError, match="cannot compact"):
        APIServer().compact(100)


# --- statistics -----------------------------------------------------------------------------------------------------


async def test_requests_are_recorded(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer()
    async with running(server) as http:
        await trio.sleep(3)
        await http.get("/version")
        await http.get("/api/v1/namespaces/default")
        await http.get("/apis/apps/v1/deployments?limit=5&limit=6&labelSelector=", headers={"user-agent": "me"})
        await http.put(f"{PODS}/a/status", json={})
        await http.delete(CONFIG_MAPS)
    assert list(server.requests)[1:] == [
        RequestRecord(
            verb="get", path="/api/v1/namespaces/default", version="v1", resource="namespaces", name="default"
        ),
        RequestRecord(
            verb="list",
            path="/apis/apps/v1/deployments",
            group="apps",
            version="v1",
            resource="deployments",
            query={"limit": "5", "labelSelector": ""},
        ),
        RequestRecord(
            verb="update",
            path=f"{PODS}/a/status",
            version="v1",
            resource="pods",
            namespace="default",
            name="a",
            subresource="status",
        ),
        RequestRecord(
            verb="deletecollection", path=CONFIG_MAPS, version="v1", resource="configmaps", namespace="default"
        ),
    ]
    assert [(one.user_agent, one.time) for one in server.requests][2] == ("me", 3.0)
    assert server.statistics().requests_served == 5


async def test_statistics_are_those_of_the_current_state(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.create(pod())
    async with watching(server, PODS):
        await trio.testing.wait_all_tasks_blocked()
        compacted = server.compact()
        statistics = server.statistics()
    assert attrs.asdict(statistics) == {
        "is_running": True,
        "open_watches": 1,
        "followed_logs": 0,
        "requests_served": 1,
        "pending_faults": 0,
        "objects": 5,
        "revision": 7,
        "compacted_revision": 7,
    }
    assert compacted == 7


async def test_watches_of_a_replaced_server_cannot_be_resumed(nursery: trio.Nursery) -> None:
    """Otherwise an informer would keep the objects of the replaced server."""
    server = APIServer(first_revision=1_000_000)
    await nursery.start(server.run)
    assert int(server.create(Pod(metadata=ObjectMeta(name="a"))).resource_version) > 1_000_000
    async with server.open_client() as client:
        with pytest.raises(ExpiredError):
            async with client.api(Pod).watch(resource_version="57") as events:
                await events.receive_batch()
