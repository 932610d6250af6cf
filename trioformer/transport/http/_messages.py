"""Encode and parse the heads of HTTP/1.1 requests and responses.

h11 takes 150 µs for the heads of a request and its response, which is half of the total cost of a request. It also
copies each chunk of a body. This module implements only a small part of the grammar, and takes only 15 µs. Tests
compare its results with those of h11.
This module is stricter than h11, because it rejects folded header lines.

Errors never quote received data, because it may contain a part of a Secret.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, final
from urllib.parse import quote, urlencode

import attrs

from ...kubeconfig import Impersonation
from .._errors import InvalidResponseError

CONNECT_PATIENCE: Final = 30.0
"""The maximum number of seconds for opening a TCP connection (also 30 s in client-go). A TLS handshake may take 10
s."""
WRITE_PATIENCE: Final = 60.0
"""The maximum number of seconds that the server takes to accept a request."""
READ_PATIENCE: Final = 90.0
"""The maximum number of seconds without any data in a response. The API server itself ends a request after 60 s."""
SWITCHED: Final = 101
"""The status of a response that switches the connection to another protocol."""

_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n\0]*)?\r?\n")
TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE: Final = re.compile(rf"({TOKEN.pattern}):([^\r\n\0]*)\r?\n")
_LINES: Final = re.compile(rf"(?:{_LINE.pattern})*+\r?\n")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_ID: Final = re.compile(r"[!-~]{1,64}")
"""A request ID that kube-apiserver accepts from a client, usually a UUID."""
_BODILESS: Final = (204, 304)


Header: TypeAlias = tuple[bytes, bytes]

NOT_IN_A_HEADER: Final = re.compile(rb"[\r\n\0]")
_SAFE: Final = "/%?:@!$&'()*+,;=[]"
"""The characters, except ``#``, that remain unquoted in a path. The path is already quoted, and may have a query."""
_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+").fullmatch  # most paths need no quoting
_WITH_BODY: Final = ("POST", "PUT", "PATCH")

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NOT_IN_A_NAME: Final = re.compile(rb"[^0-9A-Za-z!#$&'*+.^_`|~-]")
"""The characters that a header name must not contain (RFC 9110), and ``%``, which begins an escape."""

_MAX_MADE: Final = 64
"""The maximum number of cached combinations. A program uses only a few, unless its raw requests have their own
headers."""


@final
class Headers:
    """Constant headers of requests, encoded once.

    Raises:
        ValueError: The value of a header contains a line break.
    """

    __slots__ = ("encoded", "items")

    def __init__(self, items: Iterable[Header]) -> None:
        self.items: Final = tuple(items)
        if any(NOT_IN_A_HEADER.search(part) for item in self.items for part in item):
            raise ValueError("a header must not contain a line break")
        self.encoded: Final = b"".join(b"%b: %b\r\n" % item for item in self.items)


@final
@attrs.frozen
class RequestHeaders:
    """The headers of all requests from a client, except for those from its httpx client (``_raw_requests.py``)."""

    user_agent: str
    """The ``User-Agent``."""
    uses_gzip: bool = False
    """Whether to request compressed responses where the program can read them."""
    impersonation: tuple[Header, ...] = ()
    """The headers of the user that the requests act as."""

    _made: dict[tuple[str, str | None, bool], Headers] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    """The headers of sent requests."""

    def of(self, *, accept: str, content_type: str | None, accepts_gzip: bool) -> Headers:
        """Return the headers of a request."""
        key = (accept, content_type, accepts_gzip)
        if (made := self._made.get(key)) is not None:
            return made
        headers = [
            (b"Accept", accept.encode()),
            (b"Accept-Encoding", b"gzip" if accepts_gzip else b"identity"),
            (b"User-Agent", self.user_agent.encode()),
            *self.impersonation,
        ]
        if content_type is not None:
            headers.append((b"Content-Type", content_type.encode()))
        if len(self._made) >= _MAX_MADE:
            self._made.clear()
        made = self._made[key] = Headers(headers)
        return made


def impersonation_headers(impersonation: Impersonation) -> tuple[Header, ...]:
    """Return the headers for a request that acts as another user."""
    if not impersonation.user:
        raise ValueError("impersonation requires a user, even with groups, a UID or extra attributes")
    headers = [(b"Impersonate-User", _value("user", impersonation.user))]
    if impersonation.uid:
        headers.append((b"Impersonate-Uid", _value("UID", impersonation.uid)))
    headers += [(b"Impersonate-Group", _value("group", group)) for group in impersonation.groups]
    for key, values in impersonation.extra.items():
        if not key:
            raise ValueError("an extra attribute for impersonation must have a key")
        given = key.encode(errors="surrogatepass")
        name = b"Impersonate-Extra-" + _NOT_IN_A_NAME.sub(lambda found: b"%%%02X" % found[0][0], given)
        headers += [(name, _value(f"extra attribute {key!r}", value)) for value in values]
    return tuple(headers)


def _value(what: str, value: str) -> bytes:
    if _CONTROLS.search(value) or value != value.strip(" \t"):
        raise ValueError(
            f"the {what} to impersonate must not contain control characters, nor begin or end with a space: {value!r}"
        )
    return value.encode()


@final
@attrs.frozen(kw_only=True, eq=False)
class Request:
    """A request, which may be sent more than once."""

    method: str
    """Such as ``GET``."""
    path: str
    """The quoted path relative to the server's URL, with a leading slash."""
    headers: Headers
    """The headers; ``Authorization`` is added when the request is sent."""
    params: Mapping[str, str] | None = None
    """The query."""
    content: bytes | None = attrs.field(default=None, repr=False)
    """The body."""
    accepts_gzip: bool = False
    """Whether the body of the response may be compressed."""
    limit: str | None = None
    """The field of the limits for the body of the response, or None if the caller reads the body."""
    where: str
    """The operation, for errors and logs."""
    for_watch: bool = False
    """Whether the request is a watch, which is silent while nothing changes."""
    resumable: bool = False
    """Whether the watch may be ended if its connection cannot be verified."""
    read_patience: float | None = attrs.field(factory=lambda: READ_PATIENCE)
    """The maximum number of seconds without any data in the response, unless the request is a watch. None means no
    limit."""
    has_authorization: bool = False
    """Whether the headers already include ``Authorization``."""

    @property
    def is_watch(self) -> bool:
        """Whether this request is a watch with GET, which ends when certificates change.

        A write with a streamed response does not end then.
        """
        return self.for_watch and self.method == "GET"

    @property
    def what(self) -> str:
        """The operation if it is known, and otherwise the method and the path."""
        return self.where or f"{self.method} {self.path}"

    @property
    def patience(self) -> float | None:
        """The maximum time in seconds without any data in the response.

        None means no limit, and infinity stands for a resumable watch.
        """
        return math.inf if self.resumable else None if self.for_watch else self.read_patience

    def target(self, prefix: str = "") -> bytes:
        """Return the path and the query in the form in which they are sent.

        The path includes the path of the server's URL.

        Dot segments are not resolved.
        """
        path = self.path if _PLAIN(self.path) else quote(self.path, safe=_SAFE)
        query = f"?{urlencode(self.params)}" if self.params else ""
        return f"{prefix}{path}{query}".encode()

    def encode(self, host: bytes, target: bytes, more: Iterable[Header] = ()) -> bytes:
        """Encode the request, with the target and the additional headers.

        If a proxy forwards the request, the target is a URL.
        """
        parts = [self.method.encode(), b" ", target, b" HTTP/1.1\r\nHost: ", host, b"\r\n", self.headers.encoded]
        parts += [b"%b: %b\r\n" % header for header in more]
        if self.content is not None or self.method in _WITH_BODY:
            parts.append(b"Content-Length: %d\r\n" % len(self.content or b""))
        return b"".join((*parts, b"\r\n", self.content or b""))


class Framing(enum.Enum):
    """How the end of a body is found."""

    SIZED = "after as many bytes as Content-Length says"
    CHUNKED = "after the last chunk"
    UNTIL_CLOSE = "when the server closes the connection"


@final
@attrs.frozen(kw_only=True)
class Head:
    """The head of a response."""

    code: int
    """The status code."""
    headers: dict[str, str] = attrs.field(repr=False)
    """The headers, with names in lower case; repeated headers are joined."""
    warnings: list[str] = attrs.field(repr=False)
    """The values of ``Warning``, not joined."""
    framing: Framing
    length: int = 0
    """The length of a sized body in bytes."""
    keeps_alive: bool = True
    """Whether the server keeps the connection open."""


def end_of_head(data: bytes, begin: int = 0) -> int:
    """Return the position of the end of a head, searching from ``begin``. Return 0 if the end has not arrived."""
    found = _BLANK_LINE.search(data, begin)
    return 0 if found is None else found.end()


def read_head(data: bytes, *, is_alone: bool = False) -> Head:
    """Parse the head of a response. If ``is_alone`` is true, no body follows, regardless of the headers."""
    decoded = decode(data)
    status = _STATUS.match(decoded)
    if status is None:
        raise InvalidResponseError("the status line is not valid")
    headers, warnings = join_headers(split_lines(decoded, status.end()))
    code, framing, length = int(status[2]), Framing.UNTIL_CLOSE, 0
    if is_alone or code in _BODILESS:
        framing = Framing.SIZED
    elif (encoding := headers.get("transfer-encoding")) is not None:
        if encoding.lower() != "chunked":
            raise InvalidResponseError("Transfer-Encoding is not valid")
        framing = Framing.CHUNKED
    elif (text := headers.get("content-length")) is not None:
        sizes = set(text.replace(" ", "").split(","))  # a proxy may repeat it
        if len(sizes) > 1 or _LENGTH.fullmatch(size := sizes.pop()) is None:
            raise InvalidResponseError("Content-Length is not valid")
        framing, length = Framing.SIZED, int(size)
    keeps_alive = status[1] == "1" and "close" not in headers.get("connection", "").lower()
    return Head(code=code, headers=headers, warnings=warnings, framing=framing, length=length, keeps_alive=keeps_alive)


def decode(data: bytes) -> str:
    """Decode a head or a part of a head. A warning may be encoded in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def join_headers(items: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Return the headers for a `Head`, and separately the values of the ``Warning`` headers."""
    headers: dict[str, str] = {}
    warnings: list[str] = []
    for given, padded in items:
        name, value = given.lower(), padded.strip(" \t")
        if name == "warning":
            warnings.append(value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers, warnings


def split_lines(text: str, begin: int = 0) -> list[tuple[str, str]]:
    """Return the names and values of the header lines before the empty line."""
    if _LINES.fullmatch(text, begin) is None:
        raise InvalidResponseError("a header is not valid")
    return _LINE.findall(text, begin)


def request_id_in(headers: Mapping[str, str]) -> str:
    """Return the ID of the request in kube-apiserver's audit log, or an empty string if there is no valid ID."""
    found = headers.get("audit-id", "")
    return found if _ID.fullmatch(found) else ""


@final
@attrs.frozen
class Response:
    """A complete response."""

    code: int
    """The HTTP status code."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: bytes = attrs.field(repr=False)
    """The body as sent."""
    server: str = "the configured address"
    """The server and its configuration source, for errors."""
    credential: str = "unknown"
    """The kind of credential, for errors; not a secret."""
    history: str = ""
    """The earlier attempts, for a note in errors; empty if the request was sent once."""
