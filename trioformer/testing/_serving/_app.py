"""The embedded API server as an ASGI application: bodies in, answers and watches out.

Every request but a watch is answered by plain code between two checkpoints.
A watch is pumped by its request's own task, beside which one other waits for the client to leave.

An application that returns before its last ``http.response.body`` tells the ASGI server to break the connection; that
is how a watch is reset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from itertools import chain, islice
from typing import Any, TypeAlias, final

import attrs
import trio

from .._storage._kinds import Kinds, Served
from .._storage._status import RefusedError, refusal
from . import _discovery
from ._faults import Faults
from ._requests import RequestRecord, read_request
from ._resources import ResourceRequest, Resources
from ._responses import Response, refused_answer
from ._watching import Watch, Watches

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes that a request's body may have, as in a real server."""
_COMMON_HEADERS = ((b"cache-control", b"no-cache, private"),)


@final
@attrs.define(eq=False)
class Application:
    """Speaks ASGI 3: ``http`` and ``lifespan``."""

    _kinds: Kinds
    _resources: Resources
    _watches: Watches
    _faults: Faults
    _records: deque[RequestRecord]
    served: int = attrs.field(init=False, default=0)
    """How many requests have arrived."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan of the ASGI server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"the embedded API server does not speak {scope['type']}")

    @staticmethod
    async def _lifespan(receive: Receive, send: Send) -> None:
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
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
        try:
            body = await _read_body(receive)
            if body is None:
                return
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            asked = ResourceRequest(record, headers.get("accept", ""), content_type, body)
            result, served = self._answer(asked, headers.get("host", ""))
        except RefusedError as refused:
            result, served = refused_answer(refused), None
        if isinstance(result, Watch) and served is not None:
            await self._watch(result, served, receive, send)
        elif isinstance(result, Response):
            await _send_answer(result, send)

    def _answer(self, asked: ResourceRequest, host: str) -> tuple[Response | Watch, Served | None]:
        self._faults.check(asked.record)
        if asked.record.is_resource:
            return self._resources.answer(asked)
        return _discovery.answer(self._kinds, asked.record, asked.accept, host), None

    async def _watch(self, watch: Watch, served: Served, receive: Receive, send: Send) -> None:
        is_clean = False
        with self._watches.opened(served.resource) as opened:
            await send(_start(200, b"application/json"))

            async def send_frame(frame: bytes) -> None:
                await send({"type": "http.response.body", "body": frame, "more_body": True})

            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
                is_clean = await watch.run(opened, send_frame)
                nursery.cancel_scope.cancel()
        if is_clean:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _read_body(receive: Receive) -> bytes | None:
    """Read a request's body; None when the client left before it was complete."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_LIMIT:
            raise refusal(413)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _start(code: int, content_type: bytes, *headers: tuple[bytes, bytes]) -> Message:
    all_headers = [*_COMMON_HEADERS, (b"content-type", content_type), *headers]
    return {"type": "http.response.start", "status": code, "headers": all_headers}


async def _send_answer(answer: Response, send: Send) -> None:
    chunks: Iterator[bytes] = iter(answer.chunks)
    first = list(islice(chunks, 2))
    headers = [(name.encode(), value.encode()) for name, value in answer.headers]
    if len(first) < 2:  # known as a whole
        headers.append((b"content-length", str(sum(map(len, first))).encode()))
    await send(_start(answer.code, answer.content_type.encode(), *headers))
    for chunk in chain(first, chunks):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
