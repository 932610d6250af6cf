"""A manager serves webhooks on each replica, from its start to its graceful end."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.support.managers import Worker, initializing
from tests.support.rotated_files import CertificateVolume
from tests.support.webhooks import VALIDATE, Shop, review, shop
from trioformer import Client, ConfigError
from trioformer.errors import ListenError
from trioformer.leaderelection import run_as_leader
from trioformer.manager import LeaderElection, run_controllers
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.coordination_v1 import Lease
from trioformer.watchtools import wait_for
from trioformer.webhooks import AdmissionRequest, Webhooks, WebhookServer

AUTHORITY = trustme.CA()


async def slow(request: AdmissionRequest[Shop]) -> None:
    await trio.sleep(request.object.spec.size)


@pytest.fixture
def server(tmp_path: Path) -> WebhookServer:
    volume = CertificateVolume(tmp_path, AUTHORITY)
    webhooks = Webhooks(validate={Shop: slow})
    return WebhookServer(webhooks, "127.0.0.1:0", certificate=volume.certificate, key=volume.key)


def url_in(caplog: pytest.LogCaptureFixture) -> str:
    (text,) = [text for text in caplog.messages if text.startswith("serving webhooks on ")]
    return text.removeprefix("serving webhooks on ")


async def call(url: str, *, size: int = 0) -> httpx.Response:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    async with httpx.AsyncClient(base_url=url, verify=context, timeout=None) as http:
        return await http.post(VALIDATE, json=review(shop(size=size)))


async def test_a_replica_that_is_not_the_leader_serves_webhooks(
    client: Client, server: WebhookServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with trio.open_nursery() as nursery:
        is_held = trio.Event()

        async def lead(_: object) -> None:
            is_held.set()
            await trio.sleep_forever()

        nursery.start_soon(partial(run_as_leader, client, lead, name="shops", namespace="default"))
        await is_held.wait()
        worker = Worker("works", [])
        election = LeaderElection("shops", "default")
        run = partial(run_controllers, client, initializing(worker), leader_election=election)
        url = await nursery.start(partial(run, webhooks=server, http="127.0.0.1:0"))
        assert (await call(url_in(caplog))).json()["response"]["allowed"]
        async with httpx.AsyncClient(base_url=url) as http:
            assert "[+]webhooks ok" in (await http.get("/readyz?verbose")).text
            assert (await http.get("/readyz/webhooks")).text == "ok"
            assert (await http.get("/healthz/webhooks")).status_code == 404
        assert worker.log == []
        nursery.cancel_scope.cancel()


async def test_stop_drains_controllers_and_calls_at_the_same_time(
    client: Client, server: WebhookServer, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stop, worker, codes = trio.Event(), Worker("works", [], end_after=1), list[int]()
    ended = trio.Event()

    async def manage(*, task_status: trio.TaskStatus[Any]) -> None:
        run = partial(run_controllers, client, initializing(worker), webhooks=server, stop=stop)
        await run(task_status=task_status)
        ended.set()

    async def call_slowly() -> None:
        codes.append((await call(url_in(caplog), size=6)).status_code)

    async with trio.open_nursery() as nursery:
        await nursery.start(manage)
        nursery.start_soon(call_slowly)
        await trio.testing.wait_all_tasks_blocked(0.05)
        stop.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        for _ in range(6):
            assert not ended.is_set()
            mock_clock.jump(1)
            await trio.testing.wait_all_tasks_blocked(0.05)
        await ended.wait()
    assert codes == [200]
    assert worker.log[-1] == "1 works ends"


def occupy(server: WebhookServer, address: str) -> WebhookServer:
    return WebhookServer(server.webhooks, address, certificate=server.certificate, key=server.key)


def lose_key(server: WebhookServer, address: str) -> WebhookServer:
    return WebhookServer(server.webhooks, "127.0.0.1:0", certificate=server.certificate, key="no.key")


@pytest.mark.parametrize(("spoil", "error"), [(occupy, ListenError), (lose_key, ConfigError)])
async def test_webhooks_that_cannot_be_served_end_the_manager_before_controllers_start(
    client: Client,
    server: WebhookServer,
    spoil: Callable[[WebhookServer, str], WebhookServer],
    error: type[Exception],
) -> None:
    worker = Worker("works", [])
    with trio.socket.socket() as occupied:
        await occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        spoiled = spoil(server, f"127.0.0.1:{occupied.getsockname()[1]}")
        with pytest.raises(error):
            await run_controllers(client, initializing(worker), webhooks=spoiled)
    assert worker.log == []


@pytest.mark.parametrize("is_check", [False, True])
async def test_a_check_or_controller_of_the_program_named_webhooks_is_refused(
    client: Client, server: WebhookServer, is_check: bool
) -> None:
    worker = Worker("works" if is_check else "webhooks", [])
    checks = {"webhooks": lambda: ""} if is_check else {}
    with pytest.raises(ValueError, match="'webhooks' is the check of webhooks="):
        await run_controllers(client, initializing(worker), checks=checks, webhooks=server)


async def test_webhooks_without_a_server_are_refused(client: Client, server: WebhookServer) -> None:
    with pytest.raises(TypeError, match="requires a WebhookServer, not a Webhooks"):
        await run_controllers(client, {}, webhooks=server.webhooks)  # type: ignore[arg-type]  # the mistake


async def test_an_exception_of_a_controller_ends_the_webhooks_immediately(
    autojump_clock: trio.testing.MockClock, client: Client, server: WebhookServer
) -> None:
    with pytest.RaisesGroup(KeyError, flatten_subgroups=True):
        await run_controllers(client, initializing(Worker("works", [], fail_after=2)), webhooks=server)
    assert trio.current_time() == 2


# --- certificates that the leader makes -------------------------------------------------------------------------------


def own_server(**options: Any) -> WebhookServer:
    webhooks = Webhooks(validate={Shop: slow})
    where = {"service": "shops", "namespace": "default", "url": "https://127.0.0.1:9443"}
    return WebhookServer(webhooks, "127.0.0.1:0", **where, shutdown_delay=0, **options)


async def test_the_leader_makes_the_certificate_and_all_replicas_serve_it(
    client: Client, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stop = trio.Event()
    election = LeaderElection("operator", "default")
    with trio.fail_after(30):
        async with trio.open_nursery() as replicas:
            for _ in range(2):
                run = partial(run_controllers, client, {}, webhooks=own_server(), enabled="")
                await replicas.start(partial(run, leader_election=election, stop=stop))
            configurations = client.api(ValidatingWebhookConfiguration)
            found = await wait_for(configurations, "shops.default", lambda _: True, missing_ok=True)
            ca = found.webhooks[0].client_config.ca_bundle
            assert ca is not None
            context = ssl.create_default_context(cadata=ca.decode())
            urls = [text.rpartition(" ")[2] for text in caplog.messages if text.startswith("serving webhooks on ")]
            for url in urls:
                async with httpx.AsyncClient(base_url=url, verify=context) as http:
                    assert (await http.post(VALIDATE, json=review(shop(size=0)))).json()["response"]["allowed"]
            assert len(urls) == 2
            leases = client.api(Lease, namespace="default")
            assert len(await leases.list()) == 3
            stop.set()
    assert [lease.name for lease in await leases.list()] == ["operator"]  # replicas that have ended are not waited for
    nursery.cancel_scope.cancel()


async def test_a_replica_without_a_certificate_is_not_ready_and_can_be_stopped(client: Client) -> None:
    stop = trio.Event()
    server = own_server()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(server.run, client, stop=stop))
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert "shops-webhook" in server.not_ready_reason()
            stop.set()


@pytest.mark.parametrize(
    "options",
    [{}, {"service": "a"}, {"certificate": "a"}, {"certificate": "a", "key": "b", "service": "c", "namespace": "d"}],
)
def test_a_server_has_either_files_or_a_service(options: Any) -> None:
    with pytest.raises(ValueError, match="WebhookServer"):
        WebhookServer(Webhooks(), **options)


@pytest.mark.parametrize("wrong", [{"url": "http://shops"}, {"service": "Shops"}, {"namespace": "a.b"}])
def test_what_the_cluster_would_refuse_is_refused_on_each_replica(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: "):
        WebhookServer(Webhooks(), **{"service": "shops", "namespace": "default", **wrong})


def test_a_release_consists_of_numbers() -> None:
    with pytest.raises(ValueError, match="release"):
        own_server(release="v1")
