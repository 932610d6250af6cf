"""The embedded API server as an ASGI application.

Most requests are handled synchronously, without a checkpoint between reading the body and sending the response.
A watch or a followed log is streamed in one task, while a second task waits for the client to disconnect.
A request for exec, attach or port-forward becomes a WebSocket.  A WebSocket requires the ASGI extension ``UPGRADE``,
which the in-memory transport and `serve_http` support.

To reset a watch, the application returns before it has sent the last ``http.response.body``, and the ASGI server
breaks the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypeAlias, final

import attrs
import trio

from ..._asgi import Message, Receive, Send, until_disconnect
from ...client._internal import PROTOBUF
from .._storage._bodies import MAX_BYTES
from .._storage._field_checks import warning_headers
from .._storage._kinds import Kinds, ServedKind
from .._storage._status import APIStatusError, status_error
from .._storage._webhook_calls import Answers
from . import _discovery
from ._access import Access
from ._faults import Faults
from ._logs import TEXT, LogStream
from ._messages import as_frame, encode
from ._negotiation import encoding_of
from ._pod_processes import UPGRADE, ProcessRequest, accept
from ._port_forwards import PortForwardRequest
from ._requests import RequestRecord, read_request
from ._resources import ResourceRequest, Resources, Result
from ._responses import JSON_TYPE, Response, error_response
from ._watching import Watch, Watches
from ._webhook_client import WebhookClient

Run: TypeAlias = Callable[[Callable[[bytes], Awaitable[None]]], Coroutine[Any, Any, bool]]
"""Sends a stream, and returns whether the stream is complete."""
Headers: TypeAlias = tuple[tuple[str, str], ...]

_STREAMS: Final = ("/log", "/exec", "/attach", "/portforward")
"""The ends of the paths of requests whose responses are not complete at once."""
_COMMON_HEADERS = ((b"cache-control", b"no-cache, private"),)


@final
@attrs.define(eq=False)
class Application:
    """The ASGI 3 application, for the scopes ``http`` and ``lifespan``."""

    _kinds: Kinds
    _resources: Resources
    _webhooks: WebhookClient
    _watches: Watches
    _followers: Watches
    _faults: Faults
    _records: deque[RequestRecord]
    _access: Access
    served: int = attrs.field(init=False, default=0)
    """The number of received requests."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan events of the ASGI server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"the embedded API server does not support {scope['type']}, only http and lifespan")

    def reset_streams(self) -> None:
        """Break the connections of all watches and all requests that follow logs."""
        for streams in (self._watches, self._followers):
            streams.end("reset", resource=None, status=None)

    @staticmethod
    async def _lifespan(receive: Receive, send: Send) -> None:
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        received = self._receive(scope)
        result: Result
        try:
            body = await _read_body(receive)
            if body is None:
                return
            held, error = self._faults.take(received.record)
            if held and await _disconnects_within(held, receive):
                return
            if error is not None:
                raise error
            if self._resources.may_call_webhooks:
                handled = await self._handle_with_webhooks(received, body, receive)
                if handled is None:
                    return
                result, served = handled
            else:
                result, served = self._handle(received, body)
        except APIStatusError as error:
            result, served = received.refuse(error), None
        record = received.record
        if isinstance(result, ProcessRequest | PortForwardRequest):
            record.set_code(101)
            try:
                socket = await accept(result.protocols, received.headers, (scope.get("extensions") or {}).get(UPGRADE))
            except APIStatusError as error:
                await send_response(await encode(received.refuse(error)), send)
                return
            try:
                await result.run(socket)
            finally:
                await socket.aclose()
        elif isinstance(result, Watch) and served is not None:
            with self._watches.register(served.resource) as opened:
                run: Run = partial(result.run, opened)
                media_type = JSON_TYPE
                if result.is_protobuf:
                    run, media_type = _in_messages(run), f"{PROTOBUF};stream=watch"
                await _stream(run, media_type.encode(), warning_headers(received.warnings), receive, send)
        elif isinstance(result, LogStream):
            with self._followers.register(result.resource) as opened:
                await _stream(partial(result.run, opened), TEXT.encode(), (), receive, send)
        elif isinstance(result, Response):
            await send_response(await encode(result), send)

    def respond(self, scope: Message, body: bytes) -> Response | None:
        """Handle a request without a checkpoint.

        Return None if the response may be a stream, or a fault or a webhook may concern the request.
        """
        if (
            self._faults.pending
            or self._resources.may_call_webhooks
            or b"watch=" in scope["query_string"]
            or scope["path"].endswith(_STREAMS)
        ):
            return None
        received = self._receive(scope)
        try:
            if len(body) > MAX_BYTES:
                raise status_error(413)
            result, _ = self._handle(received, body)
        except APIStatusError as error:
            return received.refuse(error)
        return result if isinstance(result, Response) else None

    def _receive(self, scope: Message) -> _Received:
        """Record the head of a request."""
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        record = read_request(
            scope["method"],
            scope["path"],
            scope["query_string"],
            user_agent=headers.get("user-agent", ""),
            time=trio.current_time(),
        )
        self.served += 1
        self._records.append(record)
        return _Received(record, headers, scope)

    async def _handle_with_webhooks(
        self, received: _Received, body: bytes, receive: Receive
    ) -> tuple[Result, ServedKind | None] | None:
        """Handle a request, and call the webhooks that it needs.  Return None if the client disconnects meanwhile."""

        def handle(answers: Answers) -> tuple[Result, ServedKind | None]:
            received.warnings.clear()
            return self._handle(received, body, answers)

        return await until_disconnect(receive, partial(self._webhooks.run, handle))

    def _handle(
        self, received: _Received, body: bytes, answers: Answers | None = None
    ) -> tuple[Result, ServedKind | None]:
        record, headers = received.record, received.headers
        accepted = headers.get("accept", "")
        caller = self._access.admit(received.scope, record)
        if record.is_resource:
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            user, query = caller.user.info(), received.scope["query_string"]
            admission = answers and self._resources.admission(record, user, received.warnings, answers)
            request = ResourceRequest(record, accepted, content_type, body, caller, query, received.warnings, admission)
            result, served = self._resources.handle(request)
        else:
            result, served = _discovery.handle(self._kinds, record, accepted, headers.get("host", "")), None
        if isinstance(result, Response):
            return received.finished(result), served
        record.set_code(200)
        return result, served


@final
@attrs.define(eq=False)
class _Received:
    """The head of a request."""

    record: RequestRecord
    headers: dict[str, str]
    scope: Message
    warnings: list[str] = attrs.field(factory=list)

    def refuse(self, error: APIStatusError) -> Response:
        """Return the response for an error."""
        return self.finished(error_response(error, encoding=encoding_of(self.headers.get("accept", ""))))

    def finished(self, response: Response) -> Response:
        """Return a response with the warnings, and record its code."""
        self.record.set_code(response.code)
        if not self.warnings:
            return response
        return attrs.evolve(response, headers=(*response.headers, *warning_headers(self.warnings)))


async def _disconnects_within(seconds: float, receive: Receive) -> bool:
    """Wait for a number of seconds, but return True immediately if the client disconnects."""
    with trio.move_on_after(seconds):
        await receive()  # after the body only a disconnect can follow
        return True
    return False


def _in_messages(run: Run) -> Run:
    """Return a function that calls ``run`` and converts each line that it sends to a protobuf frame."""
    return lambda send: run(lambda line: send(as_frame(line)))


async def _stream(
    run: Run,
    content_type: bytes,
    headers: Headers,
    receive: Receive,
    send: Send,
) -> None:
    """Stream the output of ``run`` until it returns or the client disconnects."""
    await send(_start(200, content_type, *_encoded(headers)))

    async def send_frame(frame: bytes) -> None:
        await send({"type": "http.response.body", "body": frame, "more_body": True})

    if await until_disconnect(receive, partial(run, send_frame)):
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _read_body(receive: Receive) -> bytes | None:
    """Read the body of a request.  Return None if the client disconnects before the body is complete."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BYTES:
            raise status_error(413)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _start(code: int, content_type: bytes, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": code, "headers": _all_headers(content_type, headers)}


def _all_headers(content_type: bytes, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [*_COMMON_HEADERS, (b"content-type", content_type), *headers]


def complete(response: Response) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
    """Return the headers and the body of a response in one piece, or None if it has several or must be converted."""
    if response.encoding != JSON_TYPE or not isinstance(response.chunks, list):
        return None
    body = b"".join(response.chunks)
    headers = [*_encoded(response.headers), (b"content-length", str(len(body)).encode())]
    return _all_headers(response.content_type.encode(), headers), body


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


async def send_response(response: Response, send: Send) -> None:
    """Send a complete response."""
    chunks: Iterator[bytes] = iter(response.chunks)
    first = list(islice(chunks, 2))
    headers = _encoded(response.headers)
    if len(first) < 2:  # the whole body
        headers.append((b"content-length", str(sum(map(len, first))).encode()))
    await send(_start(response.code, response.content_type.encode(), *headers))
    for chunk in chain(first, chunks):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
