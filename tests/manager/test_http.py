"""HTTP endpoints of a manager: health, readiness and metrics, on real sockets."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.controllers import Reconcile, errors_of
from tests.support.lease_candidates import NAME, NAMESPACE, create_lease
from tests.support.managers import Worker, initializing
from tests.support.processes import result_of
from tests.support.raw_requests import pod
from trioformer import Client, SharedInformerFactory
from trioformer._listeners import listen
from trioformer.controller import Controller
from trioformer.errors import ListenError
from trioformer.manager import HTTPOptions, LeaderElection, ManagerContext, run_controllers
from trioformer.manager import _http as manager_http
from trioformer.manager._health import HealthCheck, Response, health_response
from trioformer.manager._http import Endpoints
from trioformer.manager._initializers import ControllerInitializer
from trioformer.metrics import Metrics
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer

PLAIN = "text/plain; charset=utf-8"


@attrs.define(eq=False)
class Running:
    """A running manager, and an HTTP client for it."""

    http: httpx.AsyncClient
    stop: trio.Event

    async def get(self, path: str) -> tuple[int, str]:
        response = await self.http.get(path)
        return response.status_code, response.text


@asynccontextmanager
async def running(
    client: Client,
    initializers: dict[str, ControllerInitializer],
    http: str | HTTPOptions = "127.0.0.1:0",
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a manager during the block, and cancel it at the end if the block has not stopped it."""
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            stop = trio.Event()
            run = partial(run_controllers, client, initializers, http=http, stop=stop, **options)
            url = await nursery.start(run)
            assert url.startswith("http://127.0.0.1:")
            async with httpx.AsyncClient(base_url=url) as opened:
                yield Running(opened, stop)
            nursery.cancel_scope.cancel()


# --- responses, without sockets ---


def check(path: str, *, is_verbose: bool = False, excluded: tuple[str, ...] = (), **reasons: str) -> Response:
    def checker(reason: str) -> HealthCheck:
        return lambda: reason

    checks = {name: checker(reason) for name, reason in reasons.items()}
    return health_response(path, checks, is_verbose=is_verbose, excluded=excluded)


def test_health_responses_are_those_of_kubernetes(caplog: pytest.LogCaptureFixture) -> None:
    """The responses of ``handleRootHealth`` and ``adaptCheckToHandler``, byte for byte (``healthz_test.go``)."""
    caplog.set_level(logging.INFO, "trioformer.manager")
    assert check("/healthz", ping="") == Response(200, b"ok")
    assert check("/healthz", ping="", is_verbose=True) == Response(200, b"[+]ping ok\nhealthz check passed\n")
    assert check("/readyz", ping="", bad="it will fail", worse="as well") == Response(
        500,
        b"[+]ping ok\n[-]bad failed: reason withheld\n[-]worse failed: reason withheld\nreadyz check failed\n",
    )
    assert [record.getMessage() for record in caplog.records] == [
        "readyz check failed: bad: it will fail; worse: as well"
    ]
    assert check("/healthz", ping="", bad="it will fail", excluded=("bad",)) == Response(200, b"ok")
    assert check("/healthz", ping="", bad="no", excluded=("bad", "x", "y"), is_verbose=True) == Response(
        200,
        b"[+]ping ok\n[+]bad excluded: ok\n"
        b'warn: some health checks cannot be excluded: no matches for "x","y"\n'
        b"healthz check passed\n",
    )
    assert check("/healthz/ping", ping="") == Response(200, b"ok")
    assert check("/healthz/bad", bad="it will fail") == Response(500, b"internal server error: it will fail\n")
    assert check("/healthz/other", ping="").code == 404
    assert check("/healthz/", ping="").code == 404


# --- over HTTP ---


async def test_a_running_manager_is_healthy_and_ready(api_server: APIServer, client: Client) -> None:
    async with running(client, initializing(Worker("works", []))) as manager:
        response = await manager.http.get("/healthz")
        assert (response.status_code, response.text) == (200, "ok")
        assert response.headers["content-type"] == PLAIN
        assert response.headers["content-length"] == "2"
        assert "server" not in response.headers
        assert await manager.get("/healthz?verbose") == (200, "[+]ping ok\n[+]works ok\nhealthz check passed\n")
        assert await manager.get("/healthz/works") == (200, "ok")
        assert await manager.get("/readyz") == (200, "ok")
        assert await manager.get("/readyz?verbose&exclude=works") == (
            200,
            "[+]ping ok\n[+]informer-sync ok\n[+]shutdown ok\n[+]works excluded: ok\nreadyz check passed\n",
        )
        for path in ("/", "/healthz/nope", "/livez", "/metrics", "/healthz/works/more"):
            assert (await manager.get(path))[0] == 404
        head = await manager.http.head("/healthz")
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "2")
        assert (await manager.http.post("/healthz")).status_code == 405


async def test_http_is_served_first_and_the_manager_is_ready_when_caches_are_synced(
    api_server: APIServer, client: Client, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock stands still, so a backoff lasts for as long as the test likes."""
    api_server.fail_next(1, resource="pods", status=500)
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    initializers = initializing(Worker("works", []))
    send, urls = trio.open_memory_channel[str](1)

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            send.send_nowait(record.getMessage().removeprefix("serving "))

    caplog.set_level(logging.INFO, "trioformer.manager")
    logger, listener = logging.getLogger("trioformer.manager"), Listener()
    logger.addHandler(listener)
    async with send, urls, trio.open_nursery() as nursery:
        nursery.start_soon(partial(run_controllers, client, initializers, http="127.0.0.1:0", factory=factory))
        async with httpx.AsyncClient(base_url=await urls.receive()) as http:
            logger.removeHandler(listener)
            assert (await http.get("/healthz")).text == "ok"
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.text.splitlines()[1]) == (
                500,
                "[-]informer-sync failed: reason withheld",
            )
            why = await http.get("/readyz/informer-sync")
            assert why.text.startswith("internal server error: Pod: ")
            await trio.testing.wait_all_tasks_blocked()  # it has been refused
            mock_clock.jump(5)  # the backoff is over
            await informer.wait_until_synced()
            await trio.testing.wait_all_tasks_blocked()  # the controller has started
            assert (await http.get("/readyz")).text == "ok"
        nursery.cancel_scope.cancel()


async def test_an_object_in_quarantine_does_not_make_a_replica_not_ready(api_server: APIServer, client: Client) -> None:
    metadata = {"name": "bad", "namespace": "default", "annotations": {"replicas": "many"}}
    api_server.create(from_dict(Pod, {"metadata": metadata}))
    factory = SharedInformerFactory(client)
    informer = factory.informer(
        Pod, indexers={"replicas": lambda pod: [str(int(pod.metadata.annotations["replicas"]))]}
    )
    async with running(client, initializing(Worker("works", [])), factory=factory) as manager:
        await informer.wait_until_synced()
        assert "1 in quarantine: default/bad (index function failed)" in "".join(factory.problems().values())
        assert await manager.get("/readyz") == (200, "ok")


async def test_a_controller_whose_workers_have_not_started_is_not_ready(api_server: APIServer, client: Client) -> None:
    create_lease(api_server, "")
    api_server.fail_next(100, resource="configmaps", status=500)
    has_initialized = trio.Event()

    async def start(context: ManagerContext) -> Controller:
        controller = Controller(context.name, Reconcile())
        controller.watch(context.factory.informer(ConfigMap))
        has_initialized.set()
        return controller

    initializers = {"maps": start, **initializing(Worker("slow", [], start_after=1_000))}
    async with running(client, initializers, leader_election=LeaderElection(NAME, NAMESPACE, "a")) as manager:
        await has_initialized.wait()
        await trio.testing.wait_all_tasks_blocked(0.05)
        code, text = await manager.get("/readyz")
        assert (code, text.splitlines()[-3:]) == (
            500,
            ["[-]maps failed: reason withheld", "[-]slow failed: reason withheld", "readyz check failed"],
        )
        assert await manager.get("/readyz/slow") == (500, "internal server error: it has not started\n")
        code, text = await manager.get("/readyz/maps")
        assert text.startswith("internal server error: handler maps of informer ConfigMap: ")
        assert await manager.get("/healthz/maps") == (200, "ok")


async def test_a_standby_is_healthy_and_ready(api_server: APIServer, client: Client) -> None:
    create_lease(api_server, "another")
    election = LeaderElection(NAME, NAMESPACE, "a")
    async with running(client, initializing(Worker("works", [])), leader_election=election) as manager:
        assert await manager.get("/healthz?verbose") == (
            200,
            "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n",
        )
        assert await manager.get("/readyz") == (200, "ok")


async def test_a_draining_manager_is_healthy_but_not_ready_and_http_stops_last(
    api_server: APIServer, client: Client
) -> None:
    may_stop = trio.Event()

    class SlowToStop(Worker):
        async def stop(self) -> None:
            await may_stop.wait()
            await super().stop()

    async with running(client, initializing(SlowToStop("works", []))) as manager:
        manager.stop.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert await manager.get("/healthz") == (200, "ok")
        code, text = await manager.get("/readyz")
        assert (code, "[-]shutdown failed: reason withheld" in text) == (500, True)
        assert (await manager.get("/readyz/shutdown"))[1] == "internal server error: the process is shutting down\n"
        may_stop.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        with pytest.raises(httpx.TransportError):
            await manager.get("/healthz")


async def test_the_metrics_endpoint_has_controllers_caches_and_leadership(
    api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("a"))
    metrics = Metrics()
    reconcile = Reconcile()

    async def start(context: ManagerContext) -> Controller:
        assert context.metrics is metrics
        controller = Controller(
            context.name,
            reconcile,
            workers=3,
            observer=context.controller_observer(workers=3),
        )
        controller.watch(context.factory.informer(Pod))
        return controller

    options = {"metrics": metrics, "leader_election": LeaderElection(NAME, NAMESPACE, "a")}
    for _ in range(2):  # the manager unregisters what it registered, so it may run again
        async with running(client, {"pods": start}, **options) as manager:
            await trio.testing.wait_all_tasks_blocked(0.05)
            response = await manager.http.get("/metrics")
            assert response.headers["content-type"].startswith("text/plain; version=")
            lines = response.text.splitlines()
            assert 'controller_runtime_max_concurrent_reconciles{controller="pods"} 3.0' in lines
            assert f'leader_election_master_status{{name="{NAME}"}} 1.0' in lines
            assert any(line.startswith('workqueue_depth{controller="pods"') for line in lines)
            synced = [line for line in lines if line.startswith("trioformer_informer_synced")]
            assert ['resource="pods"' in line and line.endswith(" 1.0") for line in synced] == [True]
            headers = {"accept": "application/openmetrics-text; version=1.0.0"}
            response = await manager.http.get("/metrics", headers=headers)
            assert response.headers["content-type"].startswith("application/openmetrics-text")
            manager.stop.set()
    assert 'workqueue_depth{controller="pods"' not in metrics.render()[0].decode()


@pytest.mark.parametrize("token", ["a-token-of-the-test", None])
async def test_journals_are_served_only_to_requests_with_the_token(
    api_server: APIServer, client: Client, token: str | None
) -> None:
    async def start(context: ManagerContext) -> Controller:
        controller = Controller(context.name, Reconcile([KeyError()]), journal=True)
        controller.watch(context.factory.informer(Pod))
        return controller

    api_server.create(pod("a"))
    async with running(client, {"pods": start}, HTTPOptions("127.0.0.1:0", metrics_token=token)) as manager:
        await trio.sleep(0.1)
        assert (await manager.get("/journal"))[0] == (404 if token is None else 401)
        manager.http.headers["authorization"] = f"Bearer {token}"
        found = await manager.http.get("/journal")
        assert found.status_code == (404 if token is None else 200)
        if token is not None:
            entry, *_ = found.json()["pods"]
            assert (entry["request"], entry["result"]) == ("default/a", "error")
            assert entry["causes"][0]["resource"] == "pods"


async def test_objects_registered_before_stay_registered(client: Client) -> None:
    metrics, factory = Metrics(), SharedInformerFactory(client)
    metrics.register_factory(factory, name="mine")
    controller = Controller("pods", Reconcile())
    metrics.register_controller(controller)
    assert metrics.is_registered(factory)
    assert metrics.is_registered(controller)

    async def start(context: ManagerContext) -> Controller:
        return controller

    async with running(client, {"pods": start}, metrics=metrics, factory=factory) as manager:
        manager.stop.set()
    assert metrics.is_registered(factory)
    assert metrics.is_registered(controller)
    metrics.unregister(factory)
    assert not metrics.is_registered(factory)


@pytest.mark.parametrize(
    ("target", "code"), [(b"*", b"404"), (b"http://x/readyz", b"404"), (b"readyz", b"400"), (b"x/readyz", b"400")]
)
async def test_a_request_target_that_is_not_a_path_is_not_found(
    client: Client, target: bytes, code: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(client, initializing(Worker("works", []))) as manager:
        stream = await trio.open_tcp_stream("127.0.0.1", manager.http.base_url.port or 0)
        async with stream:
            await stream.send_all(b"GET " + target + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 " + code)
    assert errors_of(caplog) == []


# --- errors ---


async def test_an_address_in_use_is_an_ungrouped_error_that_names_it(api_server: APIServer, client: Client) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ListenError, match=f"cannot listen on {bind}: Address already in use"):
            await run_controllers(client, {}, http=bind)


@pytest.mark.parametrize(
    ("bind", "problem"),
    [
        ("8080", "it must be host:port, such as 127.0.0.1:8001, or :8001 for all interfaces"),
        ("::1:8080", "an IPv6 address is written in brackets, such as [::1]:8080"),
        ("::8080", "an IPv6 address is written in brackets"),
        (":65536", "the port must be at most 65535"),
    ],
)
async def test_an_address_that_is_not_host_and_port_raises(
    api_server: APIServer, client: Client, bind: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(f"cannot listen on {bind!r}: {problem}")):
        await run_controllers(client, {}, http=bind)


async def test_an_address_without_a_host_is_that_of_all_interfaces(
    api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30):
        url = await nursery.start(partial(run_controllers, client, {}, http=":0"))
        port = httpx.URL(url).port
        for host in ("127.0.0.1", "127.0.0.2", "[::1]") if ":" in httpx.URL(url).host else ("127.0.0.1",):
            async with httpx.AsyncClient() as http:
                assert (await http.get(f"http://{host}:{port}/healthz")).text == "ok"
    nursery.cancel_scope.cancel()


async def test_all_interfaces_are_those_of_ipv4_where_there_is_no_ipv6(
    api_server: APIServer, client: Client, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with trio.fail_after(30):
        url = await nursery.start(partial(run_controllers, client, {}, http=":0"))
        assert url.startswith("http://0.0.0.0:")
    nursery.cancel_scope.cancel()


async def test_a_client_that_stops_reading_does_not_delay_the_shutdown(
    api_server: APIServer, client: Client, mock_clock: trio.testing.MockClock
) -> None:
    class Huge:
        """A response of ``/metrics`` that is larger than the buffers of two sockets."""

        def render(self, accept: str = "") -> tuple[bytes, str]:
            return b"x" * 50_000_000, PLAIN

    app = Endpoints({}, Huge(), HTTPOptions(":0"))  # type: ignore[arg-type]  # only render() is called
    listener = await listen("127.0.0.1:0")
    async with trio.open_nursery() as nursery:
        url: str = await nursery.start(manager_http.serve, app, listener)
        stream = await trio.open_tcp_stream("127.0.0.1", int(url.rpartition(":")[2]))
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b" 200 " in await stream.receive_some(100)
        await trio.testing.wait_all_tasks_blocked(0.05)  # the buffers are full
        mock_clock.autojump_threshold = 0  # from here on each wait would be seen
        nursery.cancel_scope.cancel()
    assert trio.current_time() == 0
    await stream.aclose()


async def test_http_without_metrics_needs_no_extra() -> None:
    program = """
import sys
for name in ("hypercorn", "watchfiles", "prometheus_client"):
    sys.modules[name] = None
import httpx, trio
from functools import partial
from trioformer.manager import follow_file, run_controllers
from trioformer.testing import APIServer

async def main():
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            url = await nursery.start(partial(run_controllers, client, {}, http="127.0.0.1:0"))
            async with httpx.AsyncClient(base_url=url) as http:
                print((await http.get("/healthz")).text)
            nursery.cancel_scope.cancel()

trio.run(main)
"""
    assert await result_of("-c", program) == (0, ["ok"], [])
