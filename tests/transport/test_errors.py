"""Errors of connections, TLS and HTTP."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator

import httpx
import pytest
import trio

from tests.support.scripted_http import (
    InMemory,
    response,
)
from trioformer.client import ClientOptions
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport import _failures as failures
from trioformer.transport._errors import (
    CONNECTION_ERRORS,
    SilentConnectionError,
    causes_of,
    connection_failed,
    server_text,
    shows_failing_server,
)
from trioformer.transport._internal import open_transport
from trioformer.transport.http._httpx_transport import from_httpx, httpx_error


async def send(config: ClusterConfig) -> None:
    async with open_transport(config, options=ClientOptions(retries=0)) as transport:
        await transport.request("GET", "/x")


async def failure(config: ClusterConfig) -> ConnectionFailedError:
    with pytest.raises(ConnectionFailedError) as caught:
        await send(config)
    assert "\n" not in str(caught.value)
    assert config.server in str(caught.value)
    assert caught.value.__cause__ is not None
    return caught.value


def subclasses(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    """Yield the classes of httpx."""
    yield kind
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("httpx"):
            yield from subclasses(sub)


HTTPX_ERRORS = sorted(
    {
        *subclasses(httpx.TransportError),
        *subclasses(httpx.HTTPError),
        *subclasses(httpx.StreamError),
        httpx.InvalidURL,
        httpx.CookieConflict,
    },
    key=lambda kind: kind.__name__,
)
assert len(HTTPX_ERRORS) > 20


def make(kind: type[BaseException]) -> Exception:
    if issubclass(kind, httpx.HTTPStatusError):
        return kind("secret", request=httpx.Request("GET", "http://x"), response=httpx.Response(500))
    if issubclass(kind, httpx.StreamError) and kind is not httpx.StreamError:
        return kind()  # type: ignore[call-arg]  # its subclasses have a fixed text
    return kind("the text")  # type: ignore[return-value]  # all of them are exceptions


async def test_every_error_of_httpx_becomes_a_connection_failed_error() -> None:
    for kind in HTTPX_ERRORS:
        error = make(kind)
        http_transport = InMemory([error, error, response(200, "x", error)])
        config = ClusterConfig(server="http://api.test:1")
        async with open_transport(config, http_transport=http_transport, options=ClientOptions(retries=0)) as transport:
            with pytest.raises(ConnectionFailedError, match=r"^http://api\.test:1: ") as first:
                await transport.request("GET", "/x")
            with pytest.raises(ConnectionFailedError):
                async with transport.stream("/x", for_watch=True):
                    pass
            async with transport.stream("/x", for_watch=True) as body:
                await body.receive_some()
                with pytest.raises(ConnectionFailedError):
                    await body.receive_some()
        text = str(first.value)
        assert "\n" not in text
        assert len(text) > len("http://api.test:1: ") + 10
        # The causes of protocol errors quote the response.
        assert error in causes_of(first.value) or "ProtocolError" in kind.__name__
        assert not first.value.refused
        assert not first.value.permanent


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx.ConnectTimeout("x"), failures.ConnectTimeout),
        (httpx.PoolTimeout("x"), failures.TimeoutException),
        (httpx.CloseError("x"), failures.NetworkError),
        (httpx.RemoteProtocolError("x"), failures.RemoteProtocolError),
        (httpx.LocalProtocolError("x"), failures.ProtocolError),
        (httpx.UnsupportedProtocol("x"), failures.TransportError),
        (httpx.InvalidURL("x"), failures.InvalidURL),
        (httpx.StreamConsumed(), failures.TransportError),
        (type("OwnError", (httpx.ReadError,), {})("x"), failures.ReadError),
    ],
)
def test_an_error_of_httpx_becomes_the_failure_with_the_nearest_name(
    error: Exception, expected: type[failures.TransportError]
) -> None:
    made = from_httpx(error)
    assert type(made) is expected
    assert str(made) == str(error)
    cause = ConnectionFailedError("the text")
    cause.__cause__ = made
    again = httpx_error(cause)
    assert isinstance(error, type(again)) or type(again) is httpx.TransportError


async def test_errors_of_sockets_and_tls_become_connection_failed_errors() -> None:
    for error in [
        ConnectionResetError(errno.ECONNRESET, "reset"),
        BrokenPipeError(errno.EPIPE, "pipe"),
        ssl.SSLError(1, "odd"),
        trio.BrokenResourceError("broken"),
        trio.ClosedResourceError(),
        OSError("odd"),
    ]:
        assert isinstance(error, CONNECTION_ERRORS)
        config, http_transport = ClusterConfig(server="http://api.test"), InMemory([error])
        async with open_transport(config, http_transport=http_transport, options=ClientOptions(retries=0)) as transport:
            with pytest.raises(ConnectionFailedError, match=r"^http://api\.test: "):
                await transport.request("GET", "/x")


# --- what was tried, against which server, configured where ---


def test_the_text_names_the_operation_the_server_and_its_configuration() -> None:
    for source, context, server in [
        ("code", None, "https://api.test"),
        ("in-cluster", None, "https://api.test (in-cluster)"),
        ("/home/me/.kube/config", "dev", "https://api.test (context dev of /home/me/.kube/config)"),
    ]:
        for error, problem in [
            (ConnectionRefusedError("refused"), "connection refused; check the port"),
            (socket.gaierror(-2, "Name or service not known"), "the host name cannot be resolved (Name or service"),
            (ssl.SSLCertVerificationError("expired"), "the server's certificate does not verify ("),
            (ssl.SSLError(1, "odd"), "TLS failed ("),
            (failures.ReadTimeout("slow"), "timeout while waiting for the response; "),
            (UnicodeError("no"), "a host name is not valid; "),
        ]:
            config = ClusterConfig(server="https://api.test", source=source, context=context)
            made = connection_failed(error, server_text(config), "get pods/web-0 in namespace shop")
            assert str(made).startswith(f"get pods/web-0 in namespace shop: {server}: {problem}")
            assert str(connection_failed(error, server_text(config))).startswith(f"{server}: {problem}")


async def test_a_refused_connection_has_refused_set() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for host in ("127.0.0.1", "localhost"):
        error = await failure(ClusterConfig(server=f"http://{host}:{port}"))
        assert error.refused
        assert not error.permanent
        assert "connection refused" in str(error)


def test_the_context_of_an_error_is_not_its_cause() -> None:
    error = failures.ReadError("mine")
    error.__context__ = ssl.SSLCertVerificationError("of another connection")
    assert not connection_failed(error, "http://x").permanent


def test_a_connection_that_is_given_up_says_why() -> None:
    for server_failed in [True, False]:
        outer = failures.ReadError("silent")
        outer.__cause__ = RuntimeError(SilentConnectionError("silent for a while", server_failed=server_failed))
        error = connection_failed(outer, "http://x")
        assert str(error) == "http://x: silent for a while"
        assert not error.permanent
        assert shows_failing_server(outer) == server_failed
        assert shows_failing_server(failures.ReadError("lost"))


async def test_the_error_of_a_server_without_tls_suggests_http() -> None:
    async def respond(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, respond, 0)
        error = await failure(ClusterConfig(server=f"https://127.0.0.1:{listeners[0].socket.getsockname()[1]}"))
        assert "http://" in str(error)
        assert not error.permanent
        nursery.cancel_scope.cancel()
