"""HTTP endpoints of a manager: ``/healthz``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final
from urllib.parse import parse_qs

import attrs
import trio

from ._health import NOT_FOUND, HealthCheck, Response, health_response

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
"""Seconds that a client may leave a response unread; a longer time would delay the shutdown."""


@final
@attrs.frozen(eq=False)
class Endpoints:
    """An ASGI 3 application for the scopes ``http`` and ``lifespan``."""

    health: Mapping[str, Callable[[], Mapping[str, HealthCheck]]]
    """Functions that return the current checks, by path."""
    metrics: Metrics | None

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Respond to one request, or to the startup and shutdown of the server."""
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
        elif scope["type"] == "http":
            response = self._respond(scope)
            headers = [
                (b"content-type", response.content_type.encode()),
                (b"content-length", str(len(response.body)).encode()),
                (b"x-content-type-options", b"nosniff"),
            ]
            await send({"type": "http.response.start", "status": response.code, "headers": headers})
            await send({"type": "http.response.body", "body": response.body, "more_body": False})

    def _respond(self, scope: Message) -> Response:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return Response(405, b"405 method not allowed\n")
        if path == "/metrics" and self.metrics is not None:
            accept = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
            body, content_type = self.metrics.render(",".join(accept))
            return Response(200, body, content_type)
        root, slash, rest = path.partition("/")  # a request target such as "*" does not begin with a slash
        checks = self.health.get(slash + rest.partition("/")[0]) if not root else None
        if checks is None:
            return NOT_FOUND
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return health_response(path, checks(), is_verbose="verbose" in query, excluded=query.get("exclude", ()))


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
    endpoints: Endpoints, listener: socket.socket, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve until cancelled, and close the socket."""
    await _serving.serve_app(endpoints, listener, task_status=task_status)
