"""Limits of what a server may send."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

import httpx
import pytest
import trio

from tests.support.scripted_http import CHUNKED, Body, InMemory, Step, chunk, response, serving
from trioformer.client import ClientOptions
from trioformer.errors import ConnectionFailedError, LimitExceededError, TrioformerError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport._limits import DEFAULT_LIMITS, Limits

SECRET = b"Zm9vYmFyLXNlY3JldA"
MEMORY = ClusterConfig(server="http://memory")


# --- the options ---


def test_a_limit_must_be_positive() -> None:
    for name in [field.name for field in Limits.__attrs_attrs__]:  # type: ignore[attr-defined]  # attrs adds it
        for value in [0, -1]:
            with pytest.raises(ValueError, match=name):
                Limits(**{name: value})


# --- bodies ---


async def request(transport: Transport) -> bytes:
    return (await transport.request("GET", "/x")).body


async def read_list(transport: Transport) -> bytes:
    body = b""
    async with transport.stream("/x", for_watch=False) as stream:
        while chunk := await stream.receive_some():
            body += chunk
    return body


async def test_a_body_that_is_too_long_is_not_read_further() -> None:
    for pieces in [[b"x" * 11], [b"x" * 5, b"x" * 5, b"x"], [b"x"] * 1_000 + [None]]:
        body = Body(pieces)
        limits = Limits(object_bytes=10)
        http_transport = InMemory([httpx.Response(200, stream=body)])
        async with open_transport(
            MEMORY, http_transport=http_transport, options=ClientOptions(limits=limits)
        ) as transport:
            with pytest.raises(
                LimitExceededError,
                match=r"^http://memory: the body is too long \(the limit is Limits\.object_bytes=10\)",
            ) as caught:
                await request(transport)
        assert caught.value.limit == "object_bytes"


async def test_other_tasks_run_while_tiny_chunks_are_received() -> None:
    http_transport = InMemory([response(200, *[b"x"] * 1_000)])
    ran = 0

    async def run() -> None:
        nonlocal ran
        while True:
            await trio.lowlevel.checkpoint()
            ran += 1

    async with open_transport(MEMORY, http_transport=http_transport) as transport, trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await read_list(transport)
        nursery.cancel_scope.cancel()
    assert ran >= 10


# --- heads, over a socket ---

HEAD = b"HTTP/1.1 200 OK\r\n"


async def watch(transport: Transport) -> None:
    async with transport.stream("/x", for_watch=True) as stream:
        while await stream.receive_some():
            pass


async def failure(*script: Step, limits: Limits = DEFAULT_LIMITS, for_watch: bool = False) -> TrioformerError:
    async with (
        serving(*script) as server,
        open_transport(ClusterConfig(server=server.url), options=ClientOptions(limits=limits, retries=1)) as transport,
    ):
        with pytest.raises(TrioformerError) as caught:
            await (watch if for_watch else request)(transport)
    assert str(caught.value).startswith(f"{server.url}: ")
    return caught.value


async def test_heads_and_trailers_have_a_limit() -> None:
    for for_watch in [True, False]:
        for script in [
            [HEAD + b"a: " + b"x" * 70_000 + b"\r\n\r\n"],
            [HEAD + b"a: b\r\n" * 20_000 + b"\r\n"],
            [CHUNKED, chunk(b"{}"), b"0\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"],
        ]:
            error = await failure(*script, for_watch=for_watch)
            assert isinstance(error, LimitExceededError)
            assert error.limit == "header_bytes"
            assert "raise the limit: ClientOptions(limits=Limits(header_bytes=…))" in str(error)


# --- invalid responses ---

INVALID = {
    "status line": b"HTTP/1.1 200 OK\x00%b\r\n\r\n",
    "status 000": b"HTTP/1.1 000 %b\r\n\r\n",
    "no status": b"HTTP/1.1 %b\r\n\r\n",
    "HTTP/0.9": b"%b",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00%b",
    "header": HEAD + b"%b\r\n\r\n",
    "header name": HEAD + b"%b\xe9: x\r\n\r\n",
    "header value": HEAD + b"X: %b\x00\r\n\r\n",
    "length": HEAD + b"Content-Length: %b\r\n\r\n",
    "negative length": HEAD + b"X: %b\r\nContent-Length: -1\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n%b",
    "encoding": HEAD + b"Transfer-Encoding: %b\r\n\r\n",
    "size": CHUNKED + b"%b\r\n",
    "long chunk": CHUNKED + b"1\r\n%b\r\n",
    "trailer": CHUNKED + b"0\r\n%b\r\n\r\n",
    "short": HEAD + b"Content-Length: 500\r\n\r\n%b",
}


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def test_an_error_quotes_no_byte_of_an_invalid_response() -> None:
    for for_watch in [True, False]:
        for template in INVALID.values():
            error = await failure(template.replace(b"%b", SECRET), for_watch=for_watch)
            assert isinstance(error, ConnectionFailedError)
            for each in chain(error):
                assert SECRET.decode() not in f"{each!s} {each!r}"
                for frame, _ in traceback.walk_tb(each.__traceback__):
                    if not str(frame.f_globals["__name__"]).startswith("tests."):
                        assert SECRET.decode() not in repr(frame.f_locals)
            assert re.search(
                r"(incomplete or invalid HTTP/1\.1 response \([A-Za-z/ -]+\); check that it is an API server"
                r"|the connection closed before the end of the body; try again)(; after 2 attempts)?$",
                str(error),
            )
