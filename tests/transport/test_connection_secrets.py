"""Tracebacks with local variables, as pytest and Sentry print them, show no credential, wherever a request fails."""

from __future__ import annotations

import base64
import logging
import os
import ssl
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest
import trio
import trustme

from tests.support.scripted_http import CHUNKED, chunk, complete, serving
from trioformer.client import ClientOptions, open_client
from trioformer.errors import ConfigError, UnauthorizedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.http import _messages
from trioformer.transport.http._sockets import TLSStream

CA = trustme.CA()
OTHER_CA = trustme.CA()
CLIENT = CA.issue_cert("client@test")
TOKEN = "t0k3n-0f-a-us3r"
PASSWORD = "passw0rd-0f-a-us3r"
KEY_LINE = CLIENT.private_key_pem.bytes().splitlines()[1].decode()
SECRETS = (TOKEN, PASSWORD, base64.b64encode(f"jo:{PASSWORD}".encode()).decode(), KEY_LINE)
USERS: list[dict[str, Any]] = [{"token": TOKEN}, {"username": "jo", "password": PASSWORD}]


def check(error: BaseException) -> None:
    """Check the tracebacks of an error and its causes, from the first frame that is not one of a test."""
    found = list(errors_of(error))
    for each in found:
        while each.__traceback__ is not None and is_of_a_test(each.__traceback__.tb_frame):
            each.__traceback__ = each.__traceback__.tb_next
    shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "self = " in shown
    lines = [line for line in shown.splitlines() if any(secret in line for secret in SECRETS)]
    assert lines == []


def is_of_a_test(frame: FrameType) -> bool:
    return str(frame.f_globals["__name__"]).startswith("tests.")


def errors_of(error: BaseException | None) -> list[BaseException]:
    if error is None:
        return []
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [error, *(each for one in (error.__cause__, error.__context__, *inner) for each in errors_of(one))]


def server_tls(authority: trustme.CA = CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def request(transport: Transport) -> None:
    await transport.request("GET", "/x")


async def watch(transport: Transport) -> None:
    async with transport.stream("/x", for_watch=True) as body:
        while await body.receive_some():
            pass


async def probe(transport: Transport) -> None:
    await transport.obtain_credential()
    await transport.health.prepare()  # a watch ignores the error, and a probe of a silent watch reports it
    assert transport.health._last is not None
    assert transport.health._last.error is not None
    raise transport.health._last.error


Send: TypeAlias = Callable[[Transport], Awaitable[None]]


async def raised_by(send: Send, config: ClusterConfig) -> BaseException:
    try:
        async with open_transport(config, options=ClientOptions(retries=1)) as transport:
            await send(transport)
    except Exception as exc:  # noqa: BLE001  # whatever it is
        return exc
    raise AssertionError("it did not fail")


def config_of(server: str, user: dict[str, Any]) -> ClusterConfig:
    chain = b"".join(blob.bytes() for blob in CLIENT.cert_chain_pems)
    return ClusterConfig(
        server=server,
        ca_data=CA.cert_pem.bytes(),
        client_certificate_data=chain,
        client_key_data=CLIENT.private_key_pem.bytes(),
        **user,
    )


@pytest.mark.parametrize(("send", "user"), [(request, USERS[0]), (watch, USERS[1])])
async def test_a_bad_response_shows_no_credential(send: Send, user: dict[str, Any]) -> None:
    for steps in [
        [b""],
        [b"junk\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"],
        [CHUNKED + chunk(b"one"), b"junk\r\n"],
    ]:
        async with serving(*steps, tls=server_tls()) as server:
            check(await raised_by(send, config_of(server.url, user)))


async def test_a_failed_probe_shows_no_credential() -> None:
    for steps in [[b""], [b"junk\r\n\r\n"], [complete(b"", "401 Unauthorized")[:-9]]]:
        async with serving(*steps, tls=server_tls()) as server:
            server.scripts_probes = True
            check(await raised_by(probe, config_of(server.url, USERS[0])))


async def test_a_response_that_does_not_come_shows_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_messages, "READ_PATIENCE", 0.05)
    async with serving(None, tls=server_tls()) as server:
        error = await raised_by(request, config_of(server.url, USERS[0]))
        assert "timeout while waiting" in str(error)
        check(error)


async def test_a_request_that_cannot_be_written_shows_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    for send in [request, watch, probe]:
        for kind in [trio.TooSlowError, KeyError]:

            async def fail(self: TLSStream, data: bytes, kind: type[Exception] = kind) -> None:
                del data  # the frame of this function is not the library's
                await trio.lowlevel.checkpoint()
                raise kind("no")

            monkeypatch.setattr(TLSStream, "_send_now", lambda _, data: data)
            monkeypatch.setattr(TLSStream, "send_all", fail)
            async with serving(None, tls=server_tls()) as server:
                check(await raised_by(send, config_of(server.url, USERS[0])))


async def test_a_request_that_is_interrupted_shows_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: TLSStream, data: bytes) -> None:
        del data  # the frame of this function is not the library's
        await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt

    monkeypatch.setattr(TLSStream, "_send_now", lambda _, data: data)
    monkeypatch.setattr(TLSStream, "send_all", fail)
    async with serving(tls=server_tls()) as server, open_transport(config_of(server.url, USERS[0])) as transport:
        with pytest.raises(KeyboardInterrupt) as caught:
            await request(transport)
    check(caught.value)


async def test_a_401_shows_no_credential() -> None:
    for user in USERS:
        status = b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized"}'
        async with (
            serving(complete(status, "401 Unauthorized"), tls=server_tls()) as server,
            open_client(config_of(server.url, user)) as client,
        ):
            with pytest.raises(UnauthorizedError) as caught:
                await client.api(ConfigMap, namespace="default").get("x")
        check(caught.value)


async def test_credentials_that_are_not_valid_are_not_shown() -> None:
    for user in [{"token": f"{TOKEN}\n"}, {"username": "jo:e", "password": PASSWORD}]:
        check(await raised_by(request, config_of("https://127.0.0.1:1", user)))


async def test_a_token_file_that_is_not_valid_shows_no_credential(tmp_path: Path) -> None:
    for text in [f"{TOKEN} é", "", TOKEN]:
        file = tmp_path / "token"
        file.write_text(text)
        config = ClusterConfig(server="https://127.0.0.1:1", token_file=str(file))
        check(await raised_by(request, config))


async def test_a_key_that_is_not_valid_is_not_shown() -> None:
    for fields in [
        {"client_key_data": CLIENT.private_key_pem.bytes()[:-40]},
        {"client_key_data": CLIENT.private_key_pem.bytes()},
        {"client_certificate_data": b"no"},
    ]:
        other = OTHER_CA.issue_cert("other@test").cert_chain_pems[0].bytes()
        given = {"client_certificate_data": other, "client_key_data": CLIENT.private_key_pem.bytes(), **fields}
        error = await raised_by(request, ClusterConfig(server="https://127.0.0.1:1", **given))
        assert isinstance(error, ConfigError)
        check(error)


async def test_a_key_that_cannot_be_written_to_a_file_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    def fail_for_the_second(*arguments: Any) -> object:
        if opened:
            raise OSError(28, "No space left on device")
        opened.append(open_file(*arguments))  # the certificate
        return opened[0]

    open_file = os.fdopen
    monkeypatch.setattr("os.fdopen", fail_for_the_second)
    check(await raised_by(request, config_of("https://127.0.0.1:1", {})))


async def test_the_debug_log_of_a_request_shows_no_credential(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with serving(tls=server_tls()) as server, open_transport(config_of(server.url, USERS[0])) as transport:
            await request(transport)
            await transport.health.prepare()
            assert any(TOKEN.encode() in head for head in server.heads)
    assert [secret for secret in SECRETS if secret in caplog.text] == []
