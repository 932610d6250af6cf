"""A request that is to be sent, perhaps more than once, and its body."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final, final
from urllib.parse import quote, urlencode

import attrs
import httpx

from ._request_headers import Header

CONNECT_PATIENCE: Final = 30.0
"""Seconds for a TCP connection (client-go dials for 30 s); a TLS handshake has 10."""
WRITE_PATIENCE: Final = 60.0
"""Seconds that the server may take to accept a part of a request."""
READ_PATIENCE: Final = 90.0
"""Seconds without a byte of the response; the API server itself ends a request after 60."""

# The extension ``timeout`` of a request.  A watch has no read timeout: it is silent for as long as nothing changes.
_REQUEST_PATIENCE: Final = {"connect": CONNECT_PATIENCE, "read": READ_PATIENCE, "write": WRITE_PATIENCE, "pool": None}
_WATCH_PATIENCE: Final = {"connect": CONNECT_PATIENCE, "read": None, "write": WRITE_PATIENCE, "pool": None}
# Infinite is no limit either; ``_network.RESUMABLE`` says what the difference is.
_RESUMABLE_PATIENCE: Final = {"connect": CONNECT_PATIENCE, "read": math.inf, "write": WRITE_PATIENCE, "pool": None}

_SAFE: Final = "/%?:@!$&'()*+,;=[]"
"""What is not quoted in a path, which is quoted already and may have a query; a ``#`` would begin a fragment."""

# What needs no quoting is most of what is sent.
_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+").fullmatch
_PLAIN_QUERY: Final = re.compile(r"[A-Za-z]+=[A-Za-z0-9._-]+(?:&[A-Za-z]+=[A-Za-z0-9._-]+)*")


@final
@attrs.frozen(kw_only=True)
class Outgoing:
    """A request, which may be sent more than once."""

    method: str
    path: str
    params: Mapping[str, str] | None
    headers: list[Header]
    accepts_gzip: bool
    content: bytes | None = attrs.field(default=None, repr=False)
    limit: str | None = None
    """The field of the limits for the body; None to leave the body to the caller."""
    where: str
    for_watch: bool = False
    resumable: bool = False

    def target(self) -> bytes:
        """Return the path and the query as they are sent, of any length; dots in the path are not resolved."""
        path = self.path if _PLAIN(self.path) else quote(self.path, safe=_SAFE)
        if not self.params:
            return path.encode()
        query = "&".join([f"{name}={value}" for name, value in self.params.items()])
        return f"{path}?{query if _PLAIN_QUERY.fullmatch(query) else urlencode(self.params)}".encode()

    @property
    def patience(self) -> Mapping[str, float | None]:
        """The timeouts, as httpcore takes them."""
        return _RESUMABLE_PATIENCE if self.resumable else _WATCH_PATIENCE if self.for_watch else _REQUEST_PATIENCE


@final
class Content(httpx.AsyncByteStream):
    """The body of a request, in one piece.

    httpx's own class is an async generator.
    A request that is cancelled while it is sent leaves the generator suspended, for the garbage collector to find.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._data)


class _Once:
    def __init__(self, data: bytes) -> None:
        self._rest = [data] if data else []

    def __aiter__(self) -> _Once:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop()


@final
class Requests:
    """Makes httpx's requests of those to one server."""

    __slots__ = ("_extensions", "_prefix", "_server", "_url")

    def __init__(self, server: str, extensions: Mapping[str, object]) -> None:
        self._server = server
        self._extensions = extensions
        self._url: httpx.URL | None = None
        self._prefix = b""

    def of(self, outgoing: Outgoing, *, has_targets: bool) -> httpx.Request:
        """Make a request: with the URL of the server and the target beside it, or with a URL of its own.

        To parse a URL takes httpx as long as the rest of a request, and it refuses more than 64 KiB and resolves dots.

        Args:
            outgoing: What to send.
            has_targets: Whether the transport takes the target from the extensions, as httpcore does.
        """
        url: str | httpx.URL = self._server + outgoing.path
        params = outgoing.params or None
        extensions: dict[str, object] = {**self._extensions, "timeout": outgoing.patience}
        if has_targets:
            if self._url is None:
                self._url = httpx.URL(f"{self._server}/")
                self._prefix = self._url.raw_path[:-1]
            url, params, extensions["target"] = self._url, None, self._prefix + outgoing.target()
        request = httpx.Request(
            outgoing.method,
            url,
            params=params,
            content=outgoing.content,
            headers=outgoing.headers,
            extensions=extensions,
        )
        request.stream = Content(outgoing.content or b"")
        return request
