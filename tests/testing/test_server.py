"""The embedded API server as a test sees it: its own hand, its transport, faults, figures, and how it ends."""

from __future__ import annotations

import gc
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.raw_requests import URL, config_map, http_client, pod, running, watching
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
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod, PodStatus
from trioformer.testing import APIServer, RequestRecord
from trioformer.testing._in_memory import Exchange, InMemoryTransport

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Widget(KubernetesObject):
    __resource__ = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)

    size: int = 0


# --- the test's own hand --------------------------------------------------------------------------------------------


def test_classes_go_in_and_come_out() -> None:
    server = APIServer()
    made = server.create(Pod(metadata=ObjectMeta(name="a"), status=PodStatus(phase="Running")))
    assert type(made) is Pod
    assert (made.namespace, made.status.phase) == ("default", "Running")
    replaced = server.replace(attrs.evolve(made, status=PodStatus(phase="Failed")))
    assert replaced.status == PodStatus(phase="Failed")
    patched = server.patch(Pod, "a", {"metadata": {"labels": {"x": "y"}}})
    assert server.get(Pod, "a") == patched
    assert [one.name for one in server.list(Pod, label_selector="x=y")] == ["a"]
    assert server.list(Pod, namespace="kube-system") == []
    server.delete(patched)
    assert server.list(Pod) == []


def test_dicts_go_in_and_come_out() -> None:
    server = APIServer()
    made = server.create(config_map())
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    assert server.replace({**made, "data": {"a": "b"}})["data"] == {"a": "b"}
    assert server.patch("configmaps", "cm", {"data": {"a": None}})["data"] == {}
    assert len(server.list("configmaps", field_selector="metadata.name=cm")) == 1
    assert server.get(ConfigMap.__resource__, "cm")["kind"] == "ConfigMap"
    server.delete("configmaps", "cm", namespace="default")
    assert server.list("configmaps") == []


def test_a_given_object_is_not_changed() -> None:
    given = config_map()
    APIServer().create(given)
    assert given == config_map()


def test_kinds_without_namespaces_need_none() -> None:
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


def test_errors_are_those_of_a_client() -> None:
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
        server.replace(attrs.evolve(made, status=PodStatus()))


def test_custom_kinds_are_registered() -> None:
    server = APIServer()
    for call in (lambda: server.create(Widget(metadata=ObjectMeta(name="w"))), lambda: server.list(Widget)):
        with pytest.raises(NotFoundError, match=r"is not served; call register\(\)"):
            call()
    with pytest.raises(NotFoundError, match="widgets is not served"):
        server.list("widgets")
    server.register(Widget)
    assert server.create(Widget(metadata=ObjectMeta(name="w"), size=3)).size == 3
    assert server.get("widgets.example.com", "w")["size"] == 3


def test_what_is_no_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a kind"):
        APIServer().register(KubernetesObject)


def test_the_versions_of_a_kind_share_their_objects() -> None:
    server = APIServer()
    server.create({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}})
    (found,) = server.list(
        ResourceInfo(group="autoscaling", version="v2", kind="x", plural="horizontalpodautoscalers", namespaced=True)
    )
    assert found["apiVersion"] == "autoscaling/v2"


def test_the_server_says_what_it_is() -> None:
    assert repr(APIServer()) == "<APIServer, not running, 4 objects at revision 5>"


# --- the in-memory transport ----------------------------------------------------------------------------------------


async def test_the_transport_wants_a_running_server() -> None:
    server = APIServer()
    async with http_client(server) as http:
        with pytest.raises(RuntimeError, match=r"not running: await nursery.start\(server.run\)"):
            await http.get("/version")


async def test_a_server_runs_once_at_a_time(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    with pytest.raises(RuntimeError, match="running already"):
        await server.run()


async def test_a_server_runs_again_with_what_it_had() -> None:
    server = APIServer()
    for _ in range(2):
        async with running(server) as http:
            await http.post(PODS, json={"metadata": {"generateName": "a-"}})
    assert len(server.list(Pod)) == 2
    assert not server.statistics().is_running


async def test_a_client_works_over_it(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    async with server.open_client() as client:
        pods = client.api(Pod, namespace="default")
        made = await pods.create(Pod(metadata=ObjectMeta(name="a")))
        assert await pods.get("a") == made
        async with pods.watch(resource_version=made.resource_version) as events:
            await pods.delete("a")
            assert [event.type for event in await events.receive_batch()] == ["DELETED"]
    assert server.config.server == URL


async def test_the_end_of_the_server_breaks_what_is_being_read() -> None:
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with watching(server, PODS) as watch:
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True), pytest.raises(httpx.RemoteProtocolError):
                await watch.event()
    figures = server.statistics()
    assert (figures.is_running, figures.open_watches) == (False, 0)


async def test_the_end_of_the_server_breaks_a_request_that_waits_for_its_answer() -> None:
    server = APIServer()
    server_scope = trio.CancelScope()

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        with server_scope:
            await server.run(task_status=task_status)

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        async with http_client(server) as http:
            server_scope.cancel()
            with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
                await http.get(PODS)


async def test_chunks_that_nobody_reads_are_bounded(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    for number in range(200):
        server.create(config_map(f"cm-{number:03}"))
    async with watching(server, CONFIG_MAPS) as watch:
        await trio.testing.wait_all_tasks_blocked()
        server.disconnect_watches()
        assert 16 <= len(await watch.rest()) <= 18


async def test_a_read_timeout_is_kept_on_trios_clock(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
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
async def test_cancelling_leaves_nothing_behind(
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
    gc.collect()  # an async generator that was left would be a warning, and so an error


async def test_a_client_that_leaves_before_its_head_comes_ends_the_request(nursery: trio.Nursery) -> None:
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


async def test_a_request_that_the_ending_server_no_longer_takes_is_broken_off(nursery: trio.Nursery) -> None:
    inbox, exchanges = trio.open_memory_channel[Exchange](0)
    transport = InMemoryTransport(lambda: inbox)

    async def end() -> None:
        await trio.testing.wait_all_tasks_blocked()
        exchanges.close()

    nursery.start_soon(end)
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        await transport.handle_async_request(httpx.Request("GET", URL))


async def test_an_answer_that_does_not_come_in_time_is_a_timeout(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer()

    inbox, exchanges = trio.open_memory_channel[Exchange](1)
    transport = InMemoryTransport(lambda: inbox)
    request = httpx.Request("GET", URL, extensions={"timeout": {"read": 3}})
    with pytest.raises(httpx.ReadTimeout, match="did not answer for 3 s"):
        await transport.handle_async_request(request)
    exchange = await exchanges.receive()
    assert exchange.is_gone.is_set()
    # Whoever serves it now speaks to nobody, and is told so.
    await exchange.serve(server.asgi_app)
    assert exchange.head is not None


async def test_a_connection_that_is_refused_says_so(nursery: trio.Nursery) -> None:
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


async def test_another_protocol_is_an_error() -> None:
    async def nothing(*_: Any) -> Any: ...

    with pytest.raises(RuntimeError, match="does not speak websocket"):
        await APIServer().asgi_app({"type": "websocket"}, nothing, nothing)


async def test_a_watch_minds_nothing_but_the_clients_leave() -> None:
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


async def test_a_client_that_leaves_within_its_body_is_not_answered() -> None:
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


async def test_requests_fail_when_told_to() -> None:
    server = APIServer()
    async with running(server) as http:
        server.fail_next(2, verb="list", resource="pods", status=503)
        assert server.statistics().pending_faults == 2
        assert (await http.get(CONFIG_MAPS)).status_code == 200
        assert (await http.get(f"{PODS}/x")).status_code == 404
        codes = [(await http.get(PODS)).status_code for _ in range(3)]
        assert codes == [503, 503, 200]
        assert server.statistics().pending_faults == 0


async def test_a_failure_can_ask_for_patience(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.fail_next(status=429, retry_after=7)
    async with server.open_client() as client:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.api(Pod).list()
    assert caught.value.details.retry_after_seconds == 7
    async with http_client(server) as http:
        server.fail_next(status=429, retry_after=7)
        assert (await http.get(PODS)).headers["retry-after"] == "7"


async def test_a_failure_can_be_chosen_by_looking() -> None:
    server = APIServer()

    def choose(request: RequestRecord) -> int | None:
        return 410 if "continue" in request.query else None

    async with running(server) as http:
        server.fail_next(status=choose)
        assert (await http.get(PODS)).status_code == 200
        assert (await http.get(f"{PODS}?continue=x")).json()["reason"] == "Expired"


async def test_failures_are_told_apart_by_group() -> None:
    server = APIServer()
    async with running(server) as http:
        server.fail_next(resource="deployments.apps", status=599)
        assert (await http.get(PODS)).status_code == 200
        answer = await http.get("/apis/apps/v1/deployments")
        assert (answer.status_code, answer.json()["message"]) == (599, "HTTP 599")


async def test_a_watch_can_be_refused(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.fail_next(verb="watch", status=410)
    async with server.open_client() as client:
        with pytest.raises(ExpiredError):
            async with client.api(Pod).watch(resource_version="1"):
                pass


@pytest.mark.parametrize(("n", "status"), [(0, 500), (1, 200), (1, 600)])
def test_faults_that_make_no_sense_are_refused(n: int, status: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        APIServer().fail_next(n, status=status)


def test_watches_of_an_unknown_kind_cannot_be_ended() -> None:
    with pytest.raises(NotFoundError):
        APIServer().disconnect_watches(kind="widgets")


def test_the_future_cannot_be_compacted() -> None:
    with pytest.raises(ValueError, match="cannot compact"):
        APIServer().compact(100)


# --- figures --------------------------------------------------------------------------------------------------------


async def test_requests_are_recorded(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer(request_log_size=4)
    async with running(server) as http:
        await trio.sleep(3)
        await http.get("/version")
        await http.get("/api/v1/namespaces/default")
        await http.get("/apis/apps/v1/deployments?limit=5&limit=6&labelSelector=", headers={"user-agent": "me"})
        await http.put(f"{PODS}/a/status", json={})
        await http.delete(CONFIG_MAPS)
    assert list(server.requests) == [
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
    assert [(one.user_agent, one.time) for one in server.requests][1] == ("me", 3.0)
    assert server.statistics().requests_served == 5


async def test_the_status_of_a_namespace_is_no_object_in_it() -> None:
    server = APIServer()
    async with running(server) as http:
        assert (await http.get("/api/v1/namespaces/default/status")).status_code == 200
    (record,) = server.requests
    assert (record.resource, record.name, record.subresource, record.namespace) == (
        "namespaces",
        "default",
        "status",
        None,
    )


async def test_figures_tell_the_state(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.create(pod())
    async with watching(server, PODS):
        await trio.testing.wait_all_tasks_blocked()
        compacted = server.compact()
        figures = server.statistics()
    assert attrs.asdict(figures) == {
        "is_running": True,
        "open_watches": 1,
        "requests_served": 1,
        "pending_faults": 0,
        "objects": 5,
        "revision": 7,
        "compacted_revision": 7,
    }
    assert compacted == 7


async def test_a_server_in_the_place_of_another_refuses_to_resume_the_others_watches(nursery: trio.Nursery) -> None:
    """Or an informer would never learn that everything it knows is gone."""
    server = APIServer(first_revision=1_000_000)
    await nursery.start(server.run)
    assert int(server.create(Pod(metadata=ObjectMeta(name="a"))).resource_version) > 1_000_000
    async with server.open_client() as client:
        with pytest.raises(ExpiredError):
            async with client.api(Pod).watch(resource_version="57") as events:
                await events.receive_batch()
