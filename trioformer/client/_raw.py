"""Requests to any path and to health endpoints: the implementation of :meth:`Client.request` and related methods."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias, cast, final
from urllib.parse import quote, unquote_to_bytes, urlencode

import attrs

from .._util import NoPublicConstructor
from ..errors import ConnectionFailedError
from ..models import Model, encode
from ..models._internal import decode, dumps, plain
from ..transport import Limits
from ..transport._internal import ByteStream, Response, Transport, limit_error
from .bodies._responses import check, raise_failure, status_error, streamed_status_error, unexpected_response
from .bodies._wire_format import JSON, complete_lines

RequestBody: TypeAlias = bytes | str | Model | Mapping[str, object] | Sequence[object]
"""The body of a request. Bytes and strings are sent unchanged. Models, mappings and sequences are sent as JSON."""

QueryParams: TypeAlias = Mapping[str, str | int | bool | Sequence[str] | None]
"""The query parameters of a request.

A parameter with a sequence is sent once for each item, and a parameter with None is omitted. Booleans are sent as
``true`` and ``false``.
"""

_ANY: Final = f"{JSON}, */*"
_METHOD: Final = re.compile(r"[A-Z]+")
_NO_PATH: Final = re.compile(r"[\x00-\x20\x7f#?\\\ud800-\udfff]|%(?![0-9A-Fa-f]{2})")
_CHECK: Final = re.compile(r"^\[([+-])\](\S+) ?(.*?)\s*$", re.MULTILINE)
_ENDPOINTS: Final = ("healthz", "livez", "readyz")


@final
@attrs.frozen
class RawResponse(metaclass=NoPublicConstructor):
    """A successful response, as returned by :meth:`Client.request`."""

    code: int
    """The HTTP status code, from 200 to 206."""
    headers: Mapping[str, str]
    """The headers of the response, with names in lower case."""
    body: bytes = attrs.field(repr=lambda body: f"<{len(body)} bytes>")
    """The body as the server sent it. To decode it to an object, call :func:`~trioformer.models.from_json`."""
    _response: Response = attrs.field(repr=False, eq=False)
    _where: str = attrs.field(repr=False, eq=False)

    @property
    def text(self) -> str:
        """The body as text. Bytes that are not valid UTF-8 are replaced by U+FFFD."""
        return self.body.decode(errors="replace")

    def json(self) -> object:
        """Decode the body as JSON, and return dictionaries, lists, strings, numbers, booleans or None.

        Raises:
            UnexpectedResponseError: The body is not JSON, or is nested too deeply.
        """
        try:
            return decode(self.body)
        except (ValueError, RecursionError) as exc:
            raise unexpected_response(self._response, self._where, "not JSON") from exc


@final
@attrs.define(eq=False, repr=False)
class RawStream(metaclass=NoPublicConstructor):
    """The body of a response, for one task that reads it while it arrives. :meth:`Client.stream` opens the body.

    ``async for chunk in stream`` iterates over chunks of any size. ``async for line in stream.lines()`` iterates over
    lines.
    """

    code: int
    """The HTTP status code, from 200 to 206."""
    headers: Mapping[str, str]
    """The headers of the response, with names in lower case."""
    _body: ByteStream
    _limits: Limits
    _where: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._where}: HTTP {self.code}>"

    async def receive_some(self) -> bytes:
        """Return the next bytes of the body, or ``b""`` at the end of the body.

        Raises:
            ConnectionFailedError: The body ended early, possibly because the client's certificates have changed.
            trio.ClosedResourceError: The ``async with`` block of the stream has ended, or an earlier call was
                cancelled.

        Cancellation:
            The connection is closed, so nothing more can be received.
        """
        data = await self._body.receive_some()
        if not data and self._body.is_cut_off:
            what = "the certificates of this client have changed, so the stream was closed; send the request again"
            raise ConnectionFailedError(f"{self._where}: {self._body.server}: {what}")
        return data

    def __aiter__(self) -> RawStream:
        return self

    async def __anext__(self) -> bytes:
        if chunk := await self.receive_some():
            return chunk
        raise StopAsyncIteration

    def lines(self) -> RawLines:
        """Return an iterator over the lines of the body as strings without line endings.

        The last line may have no line ending. If a line is longer than ``Limits.object_bytes``, the iterator raises
        :class:`~trioformer.errors.LimitExceededError`.
        """
        return RawLines._create(self, self._limits, self._where)


@final
@attrs.define(eq=False, repr=False)
class RawLines(metaclass=NoPublicConstructor):
    """An asynchronous iterator over the lines of a response body, as returned by :meth:`RawStream.lines`."""

    _stream: RawStream
    _limits: Limits
    _where: str
    _lines: list[bytes] = attrs.field(factory=list, init=False)  # in reverse order
    _begin: bytearray = attrs.field(factory=bytearray, init=False)

    def __aiter__(self) -> RawLines:
        return self

    async def __anext__(self) -> str:
        while not self._lines:
            chunk = await self._stream.receive_some()
            if not chunk and not self._begin:
                raise StopAsyncIteration
            self._lines = complete_lines(self._begin, chunk or b"\n")[::-1]
            if max(map(len, (self._begin, *self._lines))) > self._limits.object_bytes:
                raise limit_error(self._where, "object_bytes", self._limits.object_bytes, "a line is too long")
        return self._lines.pop().removesuffix(b"\r").decode(errors="replace")


@final
@attrs.frozen(kw_only=True)
class HealthCheck:
    """The result of one check of a health endpoint."""

    name: str
    """The name of the check, such as ``etcd`` or ``poststarthook/rbac/bootstrap-roles``."""
    is_ok: bool
    """Whether the check succeeded. An excluded check counts as a success."""
    is_excluded: bool
    """Whether the request excluded the check."""
    text: str
    """The server's text about the check, such as ``ok`` or ``failed: reason withheld``."""


@final
@attrs.frozen(kw_only=True)
class Health:
    """The health of a server, as reported by one of its health endpoints."""

    endpoint: str
    """The name of the endpoint, such as ``readyz``."""
    is_ok: bool
    """Whether all checks succeeded. Excluded checks are ignored."""
    checks: tuple[HealthCheck, ...] = ()
    """The checks, in the server's order. The tuple is empty if the server does not list its checks."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        return tuple(one.name for one in self.checks if not one.is_ok)


async def request(
    transport: Transport,
    method: str,
    path: str,
    *,
    params: QueryParams | None,
    body: RequestBody | None,
    content_type: str | None,
    accept: str | None,
) -> RawResponse:
    """Send a request to any path, as :meth:`Client.request` describes."""
    where = _where(method, path)
    content, content_type = _content(body, content_type)
    path, accept = path + _query(params), accept or _ANY
    response = await transport.request(
        method, path, content=content, content_type=content_type, accept=accept, where=where
    )
    check(response, method=method, where=where)
    raise_failure(response, response.body, where=where)
    return RawResponse._create(response.code, response.headers, response.body, response, where)


@asynccontextmanager
async def stream(
    transport: Transport,
    method: str,
    path: str,
    *,
    params: QueryParams | None,
    body: RequestBody | None,
    content_type: str | None,
    accept: str | None,
    endless: bool,
) -> AsyncGenerator[RawStream, None]:
    """Send a request to any path and stream the response, as :meth:`Client.stream` describes."""
    where = _where(method, path)
    content, content_type = _content(body, content_type)
    async with transport.stream(
        path + _query(params),
        method=method,
        content=content,
        content_type=content_type,
        accept=accept or _ANY,
        for_watch=endless,
        where=where,
    ) as received:
        if not 200 <= received.code <= 206:
            raise await streamed_status_error(received, method=method, where=where)
        yield RawStream._create(received.code, received.headers, received, transport.limits, where)


async def health(transport: Transport, endpoint: str, exclude: Collection[str]) -> Health:
    """Request a health endpoint, as :meth:`Client.health` describes."""
    if isinstance(exclude, str):
        raise TypeError(f"exclude must be a collection of names, not a string; write exclude=[{exclude!r}]")
    kind, _, name = endpoint.partition("/")
    if kind not in _ENDPOINTS or (not name and "/" in endpoint):
        known = ", ".join(_ENDPOINTS)
        raise ValueError(f"a health endpoint must be one of {known}, or a check such as readyz/etcd, not {endpoint!r}")
    where = f"GET /{endpoint}"
    path = f"/{quote(endpoint)}" + _query({"verbose": "", "exclude": list(exclude)})
    response = await transport.request("GET", path, accept="text/plain, */*", where=where)
    text = response.body.decode(errors="replace")
    checks = tuple(_checks_in(text))
    if response.code != 200 and not (response.code >= 500 and (checks or f"{kind} check failed" in text)):
        raise status_error(response, method="GET", where=where)
    if response.code == 200 and not checks and text.strip() != "ok":
        raise_failure(response, response.body, where=where)
        raise unexpected_response(response, where, "not the response of a health endpoint")
    return Health(endpoint=endpoint, is_ok=response.code == 200, checks=checks)


def _checks_in(text: str) -> list[HealthCheck]:
    return [
        HealthCheck(name=name, is_ok=sign == "+", is_excluded=sign == "+" and said.startswith("excluded"), text=said)
        for sign, name, said in _CHECK.findall(text)
    ]


def _where(method: str, path: str) -> str:
    """Check the method and the path, and return a description of the request for error messages.

    The description omits the query, because it may contain secrets.
    """
    if not _METHOD.fullmatch(method):
        raise ValueError(f"a method must consist of upper-case letters, such as GET, not {method!r}")
    if not path.startswith("/"):
        raise ValueError("a path must begin with a slash, as in /apis/apps/v1; omit the server's URL")
    if _NO_PATH.search(path):
        raise ValueError("a path must be quoted and must not contain a query or fragment; pass the query as params")
    # A proxy or the server may resolve "configmaps/." to the whole collection.
    if not {b".", b".."}.isdisjoint(unquote_to_bytes(path).split(b"/")):
        raise ValueError("a path must not contain segments '.' or '..', even as %2e: they can select another object")
    return f"{method} {path}"


def _query(params: QueryParams | None) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in (params or {}).items():
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, str | int):
            pairs.append((name, str(value)))
        elif value is not None:
            pairs += [(name, each) for each in value]
    return f"?{urlencode(pairs)}" if pairs else ""


def _content(body: RequestBody | None, content_type: str | None) -> tuple[bytes | None, str | None]:
    if body is None:
        return None, None
    if isinstance(body, bytes):
        content = body
    elif isinstance(body, str):
        content = body.encode()
    elif isinstance(body, Model):
        content = encode(body)
    else:
        content = dumps(plain(cast("object", body)))
    return content, JSON if content_type is None else content_type
