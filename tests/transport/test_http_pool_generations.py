"""Rotated certificates: new connections use the new ones, and neither a request nor a watch fails for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing
import trustme
from trio.testing import wait_all_tasks_blocked

from tests.support.rotated_files import rotate
from tests.support.scripted_http import CHUNKED, END, AtStep, Loopback, Step, chunk, complete, suspended_generators
from trioformer._file_changes import LOOK_PERIOD
from trioformer._secret import Secret
from trioformer.client import open_client
from trioformer.errors import ConfigError, ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.auth._credentials import ClientCertificate, Credential
from trioformer.transport.http._body import MIN_WATCH
from trioformer.transport.http._network import Network
from trioformer.transport.http._pool import Pool

Clock = trio.testing.MockClock

OLD, NEW = trustme.CA(), trustme.CA()
USERS = {authority: authority.issue_cert("client@test") for authority in (OLD, NEW)}
SERVERS = {authority: authority.issue_cert("127.0.0.1") for authority in (OLD, NEW)}


def pem(*authorities: trustme.CA) -> bytes:
    return b"".join(authority.cert_pem.bytes() for authority in authorities)


def chain(user: trustme.LeafCert) -> bytes:
    return b"".join(blob.bytes() for blob in user.cert_chain_pems)


def certificate(authority: trustme.CA) -> ClientCertificate:
    """What a plugin returns."""
    user = USERS[authority]
    return ClientCertificate(Secret(chain(user)), Secret(user.private_key_pem.bytes()))


def respond(head: bytes) -> Iterable[Step]:
    path = head.split(b" ")[1]
    if path.startswith(b"/slow"):
        return [30.0, complete(b"slow")]
    if path.startswith(b"/held"):
        return [None]  # its headers come with its first event
    if path.startswith(b"/short"):
        return [CHUNKED + chunk(b"one\n"), END]
    if b"Initial" in path or path.startswith(b"/busy"):
        return [CHUNKED, *([chunk(b"more\n"), 10.0] * 8)]
    if b"watch" in path:
        return [CHUNKED + chunk(b"one\n") + chunk(b"half"), None]
    return [complete(b"hello")]


def tls_of(server: trustme.CA, *, clients: trustme.CA | None = None) -> ssl.SSLContext:
    """Make the settings of a server; with ``clients``, one that refuses all others with an alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    SERVERS[server].configure_cert(context)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        clients.configure_trust(context)
    return context


@attrs.define(eq=False)
class Cluster:
    """A server with TLS, and a client whose certificates are in files."""

    server: Loopback
    directory: Path
    clock: Clock

    @property
    def config(self) -> ClusterConfig:
        return ClusterConfig(
            server=self.server.url,
            ca_file=str(self.directory / "ca"),
            client_certificate_file=str(self.directory / "chain"),
            client_key_file=str(self.directory / "key"),
        )

    def rotate(self, *authorities: trustme.CA, user: trustme.CA = OLD, age: float = 10.0, look: bool = True) -> None:
        """Write the files, and let the time pass until they are looked at again."""
        rotate(self.directory / "ca", pem(*authorities), age=age)
        rotate(self.directory / "chain", chain(USERS[user]), age=age)
        rotate(self.directory / "key", USERS[user].private_key_pem.bytes(), age=age)
        if look:
            self.clock.jump(LOOK_PERIOD)


@pytest.fixture
async def cluster(tmp_path: Path, mock_clock: Clock, nursery: trio.Nursery) -> AsyncGenerator[Cluster, None]:
    server = Loopback(respond, tls=tls_of(OLD), keep_alive=True, sends_alerts=True)
    await nursery.start(server.run)
    made = Cluster(server, tmp_path, mock_clock)
    made.rotate(OLD, look=False)
    yield made
    nursery.cancel_scope.cancel()
    assert suspended_generators() == []


@attrs.define(eq=False)
class Watch:
    """A watch that is read, and what it received."""

    received: bytes = b""
    ended_at: float | None = None
    was_cut_off: bool | None = None

    async def run(self, transport: Transport, path: str = "/watch") -> None:
        async with transport.stream(path, for_watch=True, resumable=True) as body:
            while data := await body.receive_some():
                self.received += data
            self.ended_at, self.was_cut_off = trio.current_time(), body.is_cut_off


@asynccontextmanager
async def watching(transport: Transport, path: str = "/watch") -> AsyncGenerator[Watch, None]:
    async with trio.open_nursery() as nursery:
        watch = Watch()
        nursery.start_soon(watch.run, transport, path)
        await wait_all_tasks_blocked(0.05)
        yield watch
        nursery.cancel_scope.cancel()


async def hello(transport: Transport) -> None:
    assert (await transport.request("GET", "/x")).body == b"hello"


# --- authorities ---


async def test_a_new_authority_is_trusted_and_the_connection_is_replaced(cluster: Cluster, mock_clock: Clock) -> None:
    """client-go: TestCARotationConnectionBehavior."""
    async with open_transport(cluster.config) as transport:
        await hello(transport)
        await hello(transport)
        assert cluster.server.connections == 1
        cluster.server.tls = tls_of(NEW)
        cluster.rotate(NEW)
        await hello(transport)
        assert cluster.server.connections == 2
        await cluster.server.wait_until_open(1)  # the idle one was closed
        await hello(transport)
        assert cluster.server.connections == 2


async def test_an_authority_that_was_removed_is_not_trusted_any_more(cluster: Cluster, mock_clock: Clock) -> None:
    """An open connection to such a server is not used, either."""
    cluster.rotate(OLD, NEW, look=False)
    async with open_transport(cluster.config) as transport:
        await hello(transport)
        cluster.rotate(NEW)
        with pytest.raises(ConnectionFailedError, match="does not verify"):
            await hello(transport)
        await cluster.server.wait_until_open(0)


async def test_a_connection_that_is_being_opened_does_not_trust_a_removed_authority(
    cluster: Cluster, mock_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, is_held, go_on = Network.connect, trio.Event(), trio.Event()

    async def connect_slowly(self: Network, *args: str | int, **options: object) -> object:
        is_held.set()
        await go_on.wait()
        return await connect(self, *args, **options)  # type: ignore[arg-type]  # the arguments are passed on unchanged

    async def refused() -> None:
        with pytest.raises(ConnectionFailedError, match="does not verify"):
            await hello(transport)

    monkeypatch.setattr(Network, "connect", connect_slowly)
    cluster.rotate(OLD, NEW, look=False)
    async with open_transport(cluster.config) as transport, trio.open_nursery() as nursery:
        nursery.start_soon(refused)
        await is_held.wait()
        cluster.rotate(NEW)
        transport._generations.current(Credential())
        go_on.set()


# --- requests ---


async def test_a_request_in_flight_finishes_and_its_connection_is_closed(cluster: Cluster, mock_clock: Clock) -> None:
    bodies: list[bytes] = []

    async def slow() -> None:
        bodies.append((await transport.request("GET", "/slow")).body)

    async with open_transport(cluster.config) as transport, trio.open_nursery() as nursery:
        nursery.start_soon(slow)
        await wait_all_tasks_blocked(0.05)
        cluster.server.tls = tls_of(NEW)
        cluster.rotate(NEW)
        await hello(transport)
        await cluster.server.wait_until_open(2)
        cluster.clock.jump(30)
        await cluster.server.wait_until_open(1)
        assert bodies == [b"slow"]


@pytest.mark.parametrize("kind", ["the client refuses", "the server refuses"])
async def test_a_refused_certificate_is_read_again_and_the_request_sent_again(
    kind: str, cluster: Cluster, mock_clock: Clock
) -> None:
    """Also when the files were written this moment, and not looked at for less than a second."""
    async with open_transport(cluster.config) as transport:
        if kind == "the client refuses":
            cluster.server.tls = tls_of(NEW)
        else:
            cluster.server.tls = tls_of(OLD, clients=NEW)
        with pytest.raises(ConnectionFailedError, match="certificate"):
            await hello(transport)
        cluster.rotate(NEW, OLD, user=NEW, age=0, look=False)
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(hello, transport)


async def test_a_certificate_that_is_refused_again_is_an_error(cluster: Cluster, mock_clock: Clock) -> None:
    async with open_transport(cluster.config) as transport:
        cluster.server.tls = tls_of(OLD, clients=NEW)
        cluster.rotate(OLD, NEW, age=0, look=False)  # not the one that is refused
        with pytest.raises(ConnectionFailedError, match="rejected the client certificate") as caught:
            await hello(transport)
        assert caught.value.permanent
        assert cluster.server.connections == 2


async def test_after_a_401_changed_certificates_are_read_immediately(cluster: Cluster, mock_clock: Clock) -> None:
    """kube-apiserver refuses a client certificate with a 401, and not with an alert."""
    cluster.server.script = lambda _: [complete(b"no", "401 Unauthorized")]
    async with open_transport(cluster.config) as transport:
        assert (await transport.request("GET", "/x")).code == 401
        assert len(cluster.server.heads) == 1, "it is not sent again for nothing"
        first = transport._generations.present
        cluster.rotate(OLD, user=NEW, age=0, look=False)
        assert (await transport.request("GET", "/x")).code == 401
        assert transport._generations.present is not first
        assert len(cluster.server.heads) == 3
        assert not transport._generations.reject(transport._generations.present)


async def test_all_requests_that_an_expired_certificate_fails_are_sent_again(
    cluster: Cluster, mock_clock: Clock
) -> None:
    replies: list[list[Step]] = [[30.0, complete(b"no", "401 Unauthorized")] for _ in range(5)]
    cluster.server.script = lambda _: replies.pop() if replies else [complete(b"hello")]
    async with open_transport(cluster.config) as transport, trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(hello, transport)
        await wait_all_tasks_blocked(0.05)
        cluster.rotate(OLD, user=NEW, age=0, look=False)
        cluster.clock.jump(30)


async def test_a_401_to_an_older_certificate_of_a_plugin_does_not_bring_it_back(
    cluster: Cluster, mock_clock: Clock
) -> None:
    replies: list[list[Step]] = [[30.0, complete(b"no", "401 Unauthorized")]]
    cluster.server.script = lambda _: replies.pop() if replies else [complete(b"hello")]
    config = ClusterConfig(server=cluster.server.url, ca_data=pem(OLD))
    async with open_transport(config) as transport, trio.open_nursery() as nursery:
        transport._credentials = plugin = Plugin(Credential(certificate=certificate(OLD)))
        nursery.start_soon(hello, transport)
        await wait_all_tasks_blocked(0.05)
        plugin.latest = Credential(certificate=certificate(NEW))
        await hello(transport)
        present = transport._generations.present
        cluster.clock.jump(30)
        await wait_all_tasks_blocked(0.05)
        assert transport._generations.present is present
        assert cluster.server.connections == 2


# --- watches ---


async def test_watches_on_old_connections_end_without_an_error(cluster: Cluster, mock_clock: Clock) -> None:
    async with open_transport(cluster.config) as transport, watching(transport) as watch:
        assert watch.received == b"one\nhalf"
        cluster.clock.jump(60)
        cluster.rotate(OLD, NEW)
        await hello(transport)
        await wait_all_tasks_blocked(0.05)
        assert (watch.ended_at, watch.was_cut_off) == (trio.current_time(), True)
        assert cluster.server.closed_by_peer == 1


async def test_a_watch_that_has_just_begun_ends_a_second_later(cluster: Cluster, mock_clock: Clock) -> None:
    """Whoever watches takes a shorter one for a server that refuses watches."""
    async with open_transport(cluster.config) as transport, watching(transport) as watch:
        cluster.rotate(OLD, NEW)
        await hello(transport)
        await wait_all_tasks_blocked(0.05)
        assert watch.ended_at is None
        await cluster.server.wait_until_open(2)  # that of the request, and that of the probes
        cluster.clock.jump(MIN_WATCH - LOOK_PERIOD)
        await wait_all_tasks_blocked(0.05)
        assert watch.ended_at is not None


async def test_an_idle_connection_of_watches_ends_with_the_others(cluster: Cluster, mock_clock: Clock) -> None:
    """The pool looks at it, closed already, when the watch on the other one ends."""
    async with open_transport(cluster.config) as transport, watching(transport) as watch:
        async with transport.stream("/short", for_watch=True, resumable=True) as body:
            assert await body.receive_some() == b"one\n"
            assert await body.receive_some() == b""
        cluster.clock.jump(30)
        cluster.rotate(OLD, NEW)
        await hello(transport)
        await wait_all_tasks_blocked(0.05)
        assert watch.was_cut_off


async def test_a_watch_without_a_response_yet_is_sent_again(cluster: Cluster, mock_clock: Clock) -> None:
    async with open_transport(cluster.config) as transport, watching(transport, "/held") as watch:
        cluster.rotate(OLD, NEW)
        await hello(transport)
        await wait_all_tasks_blocked(0.05)
        assert [head.split(b" ")[1] for head in cluster.server.heads].count(b"/held") == 2
        assert watch.ended_at is None


@pytest.mark.parametrize("is_connected", [False, True])
async def test_a_rotation_at_any_step_does_not_fail_a_watch_that_is_opened(
    cluster: Cluster, mock_clock: Clock, is_connected: bool
) -> None:
    async with open_transport(cluster.config) as transport:
        await hello(transport)

        async def change(now: trio.Event, *authorities: trustme.CA) -> None:
            await now.wait()
            cluster.rotate(*authorities)
            transport._generations.current(Credential())  # as another request does

        mock_clock.rate = 10.0  # one that has begun ends a second later
        for step in range(1, 41):
            if is_connected:
                async with transport.stream("/watch", for_watch=True, resumable=True) as body:
                    assert await body.receive_some()
            now = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(change, now, *((OLD, NEW) if step % 2 else (OLD,)))
                await wait_all_tasks_blocked()
                with AtStep(step, now.set):
                    async with transport.stream("/watch", for_watch=True, resumable=True) as body:
                        assert await body.receive_some() or body.is_cut_off
                now.set()


async def test_a_program_whose_only_watch_is_busy_notices_it(cluster: Cluster, mock_clock: Clock) -> None:
    async with open_transport(cluster.config) as transport, watching(transport, "/busy") as watch:
        cluster.rotate(NEW, look=False)
        for number in range(2, 5):
            assert (watch.received.count(b"more"), watch.ended_at) == (number - 1, None)
            cluster.clock.jump(10)
            await wait_all_tasks_blocked(0.05)
        assert (watch.ended_at, watch.was_cut_off) == (trio.current_time(), True)


async def test_a_program_that_only_watches_notices_it_with_the_next_probe(cluster: Cluster, mock_clock: Clock) -> None:
    async with open_transport(cluster.config) as transport, watching(transport) as watch:
        cluster.rotate(NEW, look=False)
        cluster.server.tls = tls_of(NEW)
        cluster.clock.jump(29)
        await wait_all_tasks_blocked(0.05)
        assert watch.ended_at is None
        cluster.clock.jump(1)
        await wait_all_tasks_blocked(0.05)
        assert watch.ended_at is not None


async def test_the_probe_connection_is_replaced_before_those_of_the_watches(
    cluster: Cluster, mock_clock: Clock
) -> None:
    async with open_transport(cluster.config) as transport, watching(transport):
        assert cluster.server.probe_connections == 1
        cluster.server.tls = tls_of(NEW)
        cluster.rotate(NEW)
        async with watching(transport) as second:
            assert cluster.server.probe_connections == 2
            for _ in range(10):
                cluster.clock.jump(30)
                await wait_all_tasks_blocked(0.05)
            assert second.ended_at is None, "an older probe connection vouches for it"


# --- certificates of plugins ---


async def test_a_plugins_certificate_is_used_and_a_new_one_replaces_the_connections(
    cluster: Cluster, mock_clock: Clock
) -> None:
    """client-go: TestTLSCredentials"""
    cluster.server.tls = tls_of(OLD, clients=NEW)
    config = ClusterConfig(server=cluster.server.url, ca_data=pem(OLD))
    async with open_transport(config) as transport:
        generations = transport._generations
        with pytest.raises(ConnectionFailedError):
            await hello(transport)
        plugin = Plugin(Credential(certificate=certificate(NEW)))
        transport._credentials = plugin
        await hello(transport)
        present = generations.present
        await hello(transport)
        plugin.latest = Credential(certificate=plugin.latest.certificate)
        await hello(transport)
        assert generations.present is present, "another token alone replaces no connection"
        plugin.latest = Credential(certificate=certificate(NEW))
        await hello(transport)
        assert generations.present is not present
        plugin.latest = Credential(certificate=ClientCertificate(Secret(b"junk"), Secret(b"junk")))
        with pytest.raises(ConfigError, match="the certificate of the credential plugin does not contain a valid"):
            await hello(transport)


@attrs.define(eq=False)
class Plugin:
    """A source of credentials."""

    latest: Credential

    async def get(self) -> Credential:
        return self.latest

    def reject(self, credential: Credential) -> None:
        assert credential is not self.latest

    def in_use(self) -> AbstractContextManager[None]:
        return nullcontext()


# --- streams of raw requests ---


async def test_an_endless_stream_that_a_rotation_ends_is_an_error(cluster: Cluster, mock_clock: Clock) -> None:
    """Nobody resumes it, so its reader must not take the end for that of the body."""
    lines: list[str] = []
    ended: list[str] = []

    async def follow() -> None:
        async with client.stream("GET", "/watch", endless=True) as stream:
            lines.append(await anext(stream.lines()))
            with pytest.raises(ConnectionFailedError, match="the certificates of this client have changed") as caught:
                await stream.receive_some()
            ended.append(str(caught.value))

    async with open_client(cluster.config) as client, trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await wait_all_tasks_blocked(0.05)
        cluster.clock.jump(60)
        cluster.rotate(OLD, NEW)
        await client.request("GET", "/x")
        await wait_all_tasks_blocked(0.05)
        assert lines == ["one"]
        assert [text.startswith("GET /watch: https://127.0.0.1:") for text in ended] == [True]
        nursery.cancel_scope.cancel()


# --- ends ---


async def test_all_generations_are_closed_with_the_client(cluster: Cluster, mock_clock: Clock) -> None:
    ended: list[str] = []

    async def slow() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await transport.request("GET", "/slow")
        ended.append("slow")

    async with trio.open_nursery() as nursery:
        async with open_transport(cluster.config) as transport:
            for authorities in ((OLD, NEW), (NEW, OLD), (OLD,)):
                nursery.start_soon(slow)
                await wait_all_tasks_blocked(0.05)
                cluster.rotate(*authorities)
            await hello(transport)
            assert len(transport._generations._retired) == 3
        await wait_all_tasks_blocked(0.05)
        assert ended == ["slow"] * 3
        cluster.clock.jump(30)  # the server does not notice it while it sleeps
        await cluster.server.wait_until_open(0)


async def test_empty_generations_are_forgotten(cluster: Cluster, mock_clock: Clock) -> None:
    async with open_transport(cluster.config) as transport:
        for number in range(10):
            cluster.rotate(*((OLD, NEW) if number % 2 else (OLD,)))
            await hello(transport)
            assert len(transport._generations._retired) <= 2
            async with transport.stream("/short", for_watch=True, resumable=True) as body:
                while await body.receive_some():
                    pass  # to its end: the connection is idle then
        assert isinstance(transport._generations.present.requests, Pool)
