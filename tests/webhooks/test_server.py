"""The server of webhooks: TLS, rotated certificates, and an end that finishes what is under way."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.support.rotated_files import CertificateVolume, rotate
from tests.support.webhooks import CONVERT, VALIDATE, OldShop, Shop, conversion, review, shop
from trioformer import ConfigError
from trioformer._file_changes import LOOK_PERIOD
from trioformer.errors import ListenError
from trioformer.webhooks import AdmissionRequest, Webhooks, WebhookServer

AUTHORITY = trustme.CA()


async def allow(request: AdmissionRequest[Shop]) -> None: ...


@pytest.fixture
def volume(tmp_path: Path) -> CertificateVolume:
    return CertificateVolume(tmp_path, AUTHORITY)


def server_of(volume: CertificateVolume, function: Any = allow, **options: Any) -> WebhookServer:
    webhooks = Webhooks(validate={Shop: function}, **options)
    return WebhookServer(webhooks, "127.0.0.1:0", certificate=volume.certificate, key=volume.key)


def context() -> ssl.SSLContext:
    made = ssl.create_default_context()
    AUTHORITY.configure_trust(made)
    return made


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, verify=context(), timeout=None) as http:
        yield http


async def serial_at(url: str) -> object:
    """Return the serial number of the certificate that a new connection gets."""
    port = httpx.URL(url).port or 0
    async with await trio.open_ssl_over_tcp_stream("127.0.0.1", port, ssl_context=context()) as stream:
        await stream.do_handshake()
        return stream.getpeercert()["serialNumber"]


async def test_a_connection_of_an_api_server_serves_many_reviews(
    nursery: trio.Nursery, volume: CertificateVolume
) -> None:
    url = await nursery.start(server_of(volume).run)
    assert url.startswith("https://127.0.0.1:")
    async with client_of(url) as http:
        for _ in range(3):
            answer = await http.post(VALIDATE, json=review(shop()))
            assert answer.json()["response"] == {"uid": "u1", "allowed": True}
            assert "connection" not in answer.headers
    nursery.cancel_scope.cancel()


async def test_new_connections_use_a_rotated_certificate(
    nursery: trio.Nursery, volume: CertificateVolume, mock_clock: trio.testing.MockClock
) -> None:
    url = await nursery.start(server_of(volume).run)
    first = await serial_at(url)
    volume.issue()
    mock_clock.jump(LOOK_PERIOD)
    second = await serial_at(url)
    assert second != first
    rotate(volume.key, b"half a key")
    mock_clock.jump(LOOK_PERIOD)
    assert await serial_at(url) == second
    nursery.cancel_scope.cancel()


async def test_an_occupied_port_is_an_error_that_names_it(nursery: trio.Nursery, volume: CertificateVolume) -> None:
    url = await nursery.start(server_of(volume).run)
    address = url.removeprefix("https://")
    server = server_of(volume)
    other = WebhookServer(server.webhooks, address, certificate=server.certificate, key=server.key)
    with pytest.raises(ListenError, match=f"cannot listen on {address}: Address already in use"):
        await other.run()
    assert other.not_ready_reason() != ""
    nursery.cancel_scope.cancel()


async def test_a_missing_or_wrong_certificate_is_an_error_that_names_the_argument(volume: CertificateVolume) -> None:
    webhooks = Webhooks(validate={Shop: allow})
    server = WebhookServer(webhooks, "127.0.0.1:0", certificate=volume.path / "no.crt", key=volume.key)
    with pytest.raises(ConfigError, match=r"no\.crt: WebhookServer\.certificate: cannot be read"):
        await server.run()
    server = WebhookServer(webhooks, "127.0.0.1:0", certificate=volume.certificate, key=volume.certificate)
    with pytest.raises(ConfigError, match=r"WebhookServer\.key"):
        await server.run()


@pytest.mark.parametrize("bind", ["9443", "host:70000", "::1:9443"])
def test_an_address_that_is_not_valid_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match="cannot listen on"):
        WebhookServer(Webhooks(), bind, certificate="tls.crt", key="tls.key")


async def test_the_server_is_ready_while_it_serves(nursery: trio.Nursery, volume: CertificateVolume) -> None:
    server = server_of(volume)
    assert server.not_ready_reason() == "the webhooks are not served yet"
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as serving:
            await serving.start(server.run)
            assert server.not_ready_reason() == ""
            scope.cancel()
    assert server.not_ready_reason() != ""


@pytest.mark.parametrize(("megabytes", "has_conversion", "code"), [(6, False, 200), (8, False, 413), (8, True, 200)])
async def test_only_conversions_may_be_large(
    nursery: trio.Nursery, volume: CertificateVolume, megabytes: int, has_conversion: bool, code: int
) -> None:
    def same(obj: Any) -> Any:
        return obj

    options: Any = {"convert": {Shop: {OldShop: (same, same)}}} if has_conversion else {}
    url = await nursery.start(server_of(volume, **options).run)
    large = shop(owner="x" * megabytes * 1024 * 1024)
    async with client_of(url) as http:
        body = conversion("example.com/v1", large) if has_conversion else review(large)
        answer = await http.post(CONVERT if has_conversion else VALIDATE, json=body)
    assert answer.status_code == code
    nursery.cancel_scope.cancel()


# --- the end ----------------------------------------------------------------------------------------------------------


async def slow(request: AdmissionRequest[Shop]) -> None:
    await trio.sleep(request.object.spec.size)


async def test_a_stopped_server_finishes_the_calls_under_way(
    nursery: trio.Nursery, volume: CertificateVolume, mock_clock: trio.testing.MockClock
) -> None:
    stop, answers, ended = trio.Event(), list[httpx.Response](), trio.Event()
    server = server_of(volume, slow)

    async def serve(*, task_status: trio.TaskStatus[str]) -> None:
        await server.run(stop=stop, task_status=task_status)
        ended.set()

    async def call(http: httpx.AsyncClient, size: int) -> None:
        answers.append(await http.post(VALIDATE, json=review(shop(size=size))))

    url = await nursery.start(serve)
    async with client_of(url) as http, client_of(url) as other, trio.open_nursery() as calls:
        await call(other, 0)  # its connection is idle when the server stops
        calls.start_soon(call, http, 8)
        await trio.testing.wait_all_tasks_blocked(0.05)
        stop.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        await call(http, 0)  # the cluster still sends calls to this replica
        mock_clock.jump(server.shutdown_delay)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not ended.is_set()
        with pytest.raises(httpx.ConnectError):
            await call(other, 0)
        mock_clock.jump(8 - server.shutdown_delay)
        await ended.wait()
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert [answer.headers.get("connection") for answer in answers] == [None, "close", "close"]


async def test_calls_that_do_not_finish_are_cancelled_after_the_grace_period(
    nursery: trio.Nursery, volume: CertificateVolume, mock_clock: trio.testing.MockClock
) -> None:
    stop, failures = trio.Event(), list[type[Exception]]()
    server = server_of(volume, slow)
    url = await nursery.start(partial(server.run, stop=stop, shutdown_grace=2.0))

    async def call() -> None:
        async with client_of(url) as http:
            try:
                await http.post(VALIDATE, json=review(shop(size=9)))
            except httpx.HTTPError as error:
                failures.append(type(error))

    async with trio.open_nursery() as calls:
        calls.start_soon(call)
        await trio.testing.wait_all_tasks_blocked(0.05)
        stop.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        mock_clock.jump(server.shutdown_delay)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert failures == []
        mock_clock.jump(2)
    assert len(failures) == 1


async def test_a_client_that_disconnects_cancels_its_function(nursery: trio.Nursery, volume: CertificateVolume) -> None:
    has_begun, has_ended = trio.Event(), trio.Event()

    async def hang(request: AdmissionRequest[Shop]) -> None:
        has_begun.set()
        try:
            await trio.sleep_forever()
        finally:
            has_ended.set()

    url = await nursery.start(server_of(volume, hang).run)
    async with client_of(url) as http, trio.open_nursery() as calls:
        calls.start_soon(partial(http.post, VALIDATE, json=review(shop())))
        await has_begun.wait()
        calls.cancel_scope.cancel()
    with trio.fail_after(5):
        await has_ended.wait()
    nursery.cancel_scope.cancel()


def test_only_a_server_with_a_service_needs_cryptography() -> None:
    code = """
import sys
sys.modules["cryptography"] = None
from trioformer.webhooks import Webhooks, WebhookServer
WebhookServer(Webhooks(), certificate="tls.crt", key="tls.key")
try:
    WebhookServer(Webhooks(), service="hooks", namespace="default")
except ModuleNotFoundError as exc:
    print(exc.name)
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "cryptography\n"
