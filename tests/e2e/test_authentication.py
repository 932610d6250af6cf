"""Every way to authenticate and to connect, against kube-apiserver; and all of them while they are rotated."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import trio
import trustme

from tests.e2e.credentials import (
    SETTLED,
    USERS,
    Authorities,
    AuthorityUser,
    CertificatePluginUser,
    CertificateUser,
    PluginUser,
    TokenFileUser,
    User,
    credential_id,
    make_namespace_of_users,
    whoami,
    write_at_once,
)
from tests.e2e.steady_load import PER_MINUTE, WATCHES, SteadyLoad
from tests.support.proxies import Proxy, Scheme, proxy
from trioformer import Client, ConnectionFailedError, ObjectMeta, TrioformerError, open_client
from trioformer.client import ClientOptions
from trioformer.errors import UnauthorizedError
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.control_plane import ControlPlane

ROUTES: tuple[Scheme | None, ...] = (None, "http", "https", "socks5")
PROXY_USER = ("proxy-user", "proxy-p4ss/word")
MAX_DELAY = 2.0
"""Seconds that a watch may be behind."""


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    return Authorities(tmp_path_factory.mktemp("authorities"))


@pytest.fixture(scope="module")
def server(assets: Path, authorities: Authorities) -> Iterator[ControlPlane]:
    """A control plane that also accepts client certificates of the tests' authority."""
    control_plane = ControlPlane(assets=assets, api_server_flags=[authorities.flag])

    async def start() -> None:
        await control_plane.__aenter__()
        with (control_plane.directory / "ca.crt").open("ab") as file:
            file.write(authorities.clients.cert_pem.bytes())
        await control_plane.stop_api_server()
        await control_plane.start_api_server()

    trio.run(start)
    yield control_plane
    trio.run(control_plane.__aexit__, None, None, None)


@pytest.fixture
async def administrator(server: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(kubeconfig=server.kubeconfig) as client:
        yield client


@asynccontextmanager
async def routed(scheme: Scheme | None, authorities: Authorities) -> AsyncIterator[Proxy | None]:
    """Run a proxy that requires credentials; None is no proxy."""
    async with AsyncExitStack() as stack:
        if scheme is None:
            yield None
            return
        tls = authorities.proxy_context() if scheme == "https" else None
        yield await stack.enter_async_context(proxy(scheme, tls=tls, user=PROXY_USER))


async def make(
    kind: type[User], tmp_path: Path, server: ControlPlane, authorities: Authorities, administrator: Client
) -> User:
    namespace = await make_namespace_of_users(administrator)
    return kind(tmp_path / kind.__name__.lower(), authorities, administrator, server.url, namespace)


@pytest.mark.parametrize("scheme", ROUTES, ids=lambda scheme: scheme or "direct")
@pytest.mark.parametrize("kind", USERS, ids=lambda kind: kind.__name__)
async def test_each_user_connects_by_each_route(
    kind: type[User],
    scheme: Scheme | None,
    server: ControlPlane,
    authorities: Authorities,
    administrator: Client,
    tmp_path: Path,
) -> None:
    user = await make(kind, tmp_path, server, authorities, administrator)
    with trio.fail_after(30):
        async with routed(scheme, authorities) as through:
            await user.begin(proxy=through.url if through else None)
            async with open_client(kubeconfig=user.kubeconfig) as client:
                found = await whoami(client)
                assert (found.username, credential_id(found)) == (user.name, user.used[-1])
                configs = client.api(ConfigMap, namespace=user.namespace)
                listing = await configs.list()
                async with configs.watch(resource_version=listing.resource_version) as events:
                    await configs.create(ConfigMap(metadata=ObjectMeta(name="made")))
                    event = await anext(aiter(events))
                assert (event.type, event.object.name) == ("ADDED", "made")
    if through is not None:
        assert set(through.targets) == {server.url.removeprefix("https://")}
        assert through.connections >= 2  # one for requests, and one for the watch
        assert through.refused == 0


ROTATED: list[tuple[type[User], Scheme | None]] = [
    (CertificateUser, None),
    (TokenFileUser, "http"),
    (PluginUser, "https"),
    (CertificatePluginUser, None),
    (AuthorityUser, "socks5"),
]


@pytest.mark.parametrize(
    ("rotations", "period"), [(2, 4.0), pytest.param(12, 10.0, marks=pytest.mark.long)], ids=["short", "long"]
)
@pytest.mark.parametrize(
    ("kind", "scheme"), ROTATED, ids=[f"{kind.__name__}-{scheme or 'direct'}" for kind, scheme in ROTATED]
)
async def test_a_credential_is_rotated_and_no_request_and_no_watch_notices(
    kind: type[User],
    scheme: Scheme | None,
    rotations: int,
    period: float,
    server: ControlPlane,
    authorities: Authorities,
    administrator: Client,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    record_property: pytest.RecordProperty,
) -> None:
    """What a rotation replaces is invalid soon: a certificate five seconds after it, a token within ten."""
    caplog.set_level(logging.WARNING, logger="trioformer")
    user = await make(kind, tmp_path, server, authorities, administrator)
    lifetime = timedelta(seconds=period + 5)  # files that were just written are read after two seconds
    with trio.fail_after(rotations * period + 60):
        async with routed(scheme, authorities) as through:
            await user.begin(lifetime, proxy=through.url if through else None)
            async with open_client(kubeconfig=user.kubeconfig) as client:
                load = SteadyLoad(client, administrator, user.namespace)
                async with trio.open_nursery() as nursery:
                    await nursery.start(load.run)
                    begin = trio.current_time()
                    for number in range(1, rotations + 1):
                        await trio.sleep_until(begin + number * period)
                        await user.rotate(lifetime)
                    await trio.sleep(period)
                    seconds = trio.current_time() - begin
                    await load.finish(nursery)
    figures = {
        "requests a minute": round(load.requests / seconds * 60),
        "failures": len(load.failures),
        "slowest request": round(load.slowest, 3),
        "longest delay of a watch": max(load.delays),
        "retries reported by watches": len(load.retries),
        "credentials": len(load.credentials),
        "warnings": len(caplog.records),
    }
    record_property("figures", json.dumps(figures))
    print(kind.__name__, figures)
    assert load.failures == []
    assert [delay for delay in load.delays if delay > MAX_DELAY] == []
    assert load.requests >= 0.99 * PER_MINUTE * seconds / 60
    assert len(load.watchers) == WATCHES
    assert list(load.credentials) == (user.used or list(load.credentials)[:1])
    assert [record.getMessage() for record in caplog.records] == []
    assert load.retries == []
    if kind is AuthorityUser:
        # Connections that were made with an authority that was taken away are not used any more.
        assert through is not None
        assert len(through.targets) >= WATCHES * (1 + rotations)


async def error_within(seconds: float, client: Client) -> TrioformerError:
    """Send requests until one fails; returns the error."""
    with trio.fail_after(seconds):
        while True:
            try:
                await whoami(client)
            except TrioformerError as error:
                return error
            await trio.sleep(0.1)


async def test_an_authority_that_was_taken_away_is_trusted_no_longer(
    server: ControlPlane, authorities: Authorities, administrator: Client, tmp_path: Path
) -> None:
    user = await make(AuthorityUser, tmp_path, server, authorities, administrator)
    assert isinstance(user, AuthorityUser)
    await user.begin()
    async with open_client(kubeconfig=user.kubeconfig, options=ClientOptions(retries=0)) as client:
        await whoami(client)
        trusted = user.bundle.read_bytes()
        write_at_once(user.bundle, trustme.CA().cert_pem.bytes())
        error = await error_within(5, client)
        assert isinstance(error, ConnectionFailedError)
        assert error.permanent
        assert "certificate" in error.message
        assert server.url in error.message
        write_at_once(user.bundle, trusted)
        await trio.sleep(SETTLED)
        assert (await whoami(client)).username == user.name


async def test_a_certificate_that_expires_while_in_use_is_a_401_until_it_is_replaced(
    server: ControlPlane, authorities: Authorities, administrator: Client, tmp_path: Path
) -> None:
    user = await make(CertificateUser, tmp_path, server, authorities, administrator)
    await user.begin(timedelta(seconds=3))
    async with open_client(kubeconfig=user.kubeconfig) as client:
        assert (await whoami(client)).username == user.name
        error = await error_within(8, client)
        assert isinstance(error, UnauthorizedError)
        assert error.code == 401
        await user.rotate()
        await trio.sleep(SETTLED)
        assert (await whoami(client)).username == user.name
