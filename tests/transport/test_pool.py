"""The transport of httpx: it never sends to a server that is not verified, and raises httpx's errors only."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import h11
import httpcore
import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.support.scripted_http import CHUNKED, END, chunk, serving, suspended_generators
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._httpcore_errors import clear_locals, to_httpx
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport._pool import Connections

CA = trustme.CA()
OTHER_CA = trustme.CA()


def server_tls(authority: trustme.CA = CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def request(transport: Transport) -> None:
    await transport.request("POST", "/x", content=b"{}")


async def read_list(transport: Transport) -> None:
    async with transport.stream("/x", for_watch=False):
        pass


async def watch(transport: Transport) -> None:
    async with transport.stream("/x", for_watch=True):
        pass


async def ask_for_the_version(transport: Transport) -> None:
    await transport.server_version(lambda _: (1, 36))


Send: TypeAlias = Callable[[Transport], Awaitable[None]]


@pytest.mark.parametrize("send", [request, read_list, watch, ask_for_the_version])
async def test_nothing_is_sent_to_a_server_whose_certificate_is_of_an_unknown_ca(send: Send) -> None:
    async with serving(tls=server_tls(OTHER_CA)) as server:
        config = ClusterConfig(server=server.url, ca_data=CA.cert_pem.bytes(), token="s3cret")
        async with open_transport(config) as transport:
            with pytest.raises(ConnectionFailedError, match="certificate does not verify") as caught:
                await send(transport)
        assert caught.value.permanent
        assert (server.heads, server.probes) == ([], 0)


async def test_without_tls_settings_the_system_authorities_verify_a_server() -> None:
    async with serving(tls=server_tls()) as server, client(None) as http:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get(server.url)
        assert server.heads == []


def test_no_module_turns_verification_off_or_replaces_a_part_of_httpx() -> None:
    package = Path(__file__).resolve().parents[2] / "trioformer"
    sources = {path.name: path.read_text() for path in package.rglob("*.py")}
    assert [name for name, text in sources.items() if "verify=False" in text] == []
    assert [name for name, text in sources.items() if "CERT_NONE" in text] == ["_tls.py"]
    # It reads SSLKEYLOGFILE.  The control plane of tests may.
    assert [name for name, text in sources.items() if "create_default_context(" in text] == ["_certificates.py"]
    assert Connections.__bases__ == (httpx.AsyncBaseTransport,)


@asynccontextmanager
async def client(context: ssl.SSLContext | None) -> AsyncGenerator[httpx.AsyncClient, None]:
    transport = Connections(context, socket_options=[], idle_period=60)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
        yield http
    assert transport.connections == []


async def test_a_client_of_httpx_sends_and_receives_over_it() -> None:
    context = ssl.create_default_context(cadata=CA.cert_pem.bytes().decode())
    steps = [CHUNKED + chunk(b"one") + chunk(b"two"), END]
    async with serving(*steps, tls=server_tls(), keep_alive=True) as server, client(context) as http:
        for _ in range(2):
            response = await http.post(f"{server.url}/a%2Fb?c=d", content=b"body", headers={"X-Name": "value"})
            assert (response.status_code, response.content, response.http_version) == (200, b"onetwo", "HTTP/1.1")
        assert server.connections == 1
        assert server.heads[0].startswith(b"POST /a%2Fb?c=d HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"X-Name: value\r\n" in server.heads[0]
    assert suspended_generators() == []


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([b""], httpx.RemoteProtocolError),
        ([b"junk\r\n\r\n"], httpx.RemoteProtocolError),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"], httpx.RemoteProtocolError),
        ([CHUNKED + chunk(b"one"), b"junk\r\n"], httpx.RemoteProtocolError),
        ([CHUNKED + chunk(b"one"), None], httpx.ReadTimeout),
        ([None], httpx.ReadTimeout),
    ],
)
async def test_errors_of_a_response_are_those_of_httpx(
    steps: list[bytes | None], expected: type[httpx.TransportError]
) -> None:
    async with serving(*steps) as server, client(None) as http:
        with pytest.raises(httpx.TransportError) as caught:
            await http.get(server.url, timeout=httpx.Timeout(None, read=0.05))
        assert type(caught.value) is expected


async def test_a_connection_that_cannot_be_opened_is_an_error_of_httpx() -> None:
    async with serving() as server:
        pass
    async with client(None) as http:
        for url in (server.url, "http://a..b", f"http://{'a' * 64}.test"):
            with pytest.raises(httpx.ConnectError):
                await http.get(url)
        with pytest.raises(httpx.UnsupportedProtocol):
            await http.get("ftp://127.0.0.1")


def exceptions_of(module: object) -> list[type[Exception]]:
    found = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Exception)]
    return [each for each in found if each is not h11.ProtocolError]  # which cannot be made


@pytest.mark.parametrize("kind", [*exceptions_of(httpcore), *exceptions_of(h11)], ids=str)
def test_every_error_of_httpcore_and_h11_has_its_error_of_httpx(kind: type[Exception]) -> None:
    error = to_httpx(kind("text"))
    assert error is not None
    assert str(error) == "text"
    assert type(error).__name__ == kind.__name__ or kind is httpcore.ConnectionNotAvailable


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), trio.ClosedResourceError()])
def test_other_exceptions_pass_unchanged(error: BaseException) -> None:
    assert to_httpx(error) is None


async def test_a_timeout_of_the_caller_is_not_an_error_of_httpx() -> None:
    async with serving(None) as server, client(None) as http:
        with pytest.raises(trio.TooSlowError):
            with trio.fail_after(0.05):
                await http.get(server.url, timeout=None)
    assert suspended_generators() == []


async def test_frames_that_still_run_or_are_not_of_the_network_keep_their_variables() -> None:
    async def suspended() -> None:
        mine = "kept"
        try:
            {}[mine]
        except KeyError as exc:
            errors.append(exc)
            await trio.sleep_forever()

    errors: list[Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(suspended)
        await trio.testing.wait_all_tasks_blocked()
        error = httpcore.ReadError()
        error.__context__ = errors[0]
        errors[0].__cause__ = error  # errors may refer to each other
        clear_locals(error)
        traceback = errors[0].__traceback__
        assert traceback is not None
        assert traceback.tb_frame.f_locals["mine"] == "kept"
        nursery.cancel_scope.cancel()
