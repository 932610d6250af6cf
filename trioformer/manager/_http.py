"""What a manager tells over HTTP: ``/healthz``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final
from urllib.parse import parse_qs

import attrs
import trio

from ._health import NOT_FOUND, Check, Page, page_of

try:
    from .. import _serving
except ModuleNotFoundError as exc:
    missing = (exc.name or "hypercorn").partition(".")[0]
    raise ModuleNotFoundError(
        f"http= needs {missing}; install it with `pip install 'trioformer[manager]'`", name=missing
    ) from exc

if TYPE_CHECKING:
    from ..metrics import Metrics

Message: TypeAlias = MutableMapping[str, Any]

STALLED_AFTER: Final = 5.0
"""Seconds that whoever asks may leave an answer unread; more would hold up the end."""


@final
@attrs.frozen(eq=False)
class Pages:
    """Speaks ASGI 3: ``http`` and ``lifespan``."""

    health: Mapping[str, Callable[[], Mapping[str, Check]]]
    """The checks that there are at the moment, by path."""
    metrics: Metrics | None

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Answer one request, or the server that starts and ends."""
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
        elif scope["type"] == "http":
            page = self._page(scope)
            headers = [
                (b"content-type", page.content_type.encode()),
                (b"content-length", str(len(page.body)).encode()),
                (b"x-content-type-options", b"nosniff"),
            ]
            await send({"type": "http.response.start", "status": page.code, "headers": headers})
            await send({"type": "http.response.body", "body": page.body, "more_body": False})

    def _page(self, scope: Message) -> Page:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return Page(405, b"405 method not allowed\n")
        if path == "/metrics" and self.metrics is not None:
            accept = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
            body, content_type = self.metrics.render(",".join(accept))
            return Page(200, body, content_type)
        root, slash, rest = path.partition("/")  # a target such as "*" has no slash, or something before it
        checks = self.health.get(slash + rest.partition("/")[0]) if not root else None
        if checks is None:
            return NOT_FOUND
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return page_of(path, checks(), is_verbose="verbose" in query, excluded=query.get("exclude", ()))


async def listen(bind: str) -> socket.socket:
    """Listen on ``host:port``.

    Raises:
        ValueError: It is not ``host:port``.
        OSError: The address cannot be listened on.
    """
    try:
        return await _serving.open_listener(bind, stalled_after=STALLED_AFTER)
    except OSError as exc:
        raise OSError(exc.errno, f"cannot listen on {bind}: {exc.strerror}") from exc


async def serve(
    pages: Pages, listener: socket.socket, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer requests until cancelled, and close the socket."""
    await _serving.serve_app(pages, listener, task_status=task_status)
