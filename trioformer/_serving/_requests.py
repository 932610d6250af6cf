"""The requests of one connection, which llhttp parses.

llhttp is strict, but it accepts requests that other servers on the way may read in another way.  They are refused.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, NoReturn, TypeAlias, final

import attrs
import httptools

Header: TypeAlias = tuple[bytes, bytes]


@final
@attrs.define(eq=False, repr=False)
class Request:
    """A request with its body."""

    method: str = ""
    target: bytes = b""
    version: str = ""
    """The version of HTTP: 1.0 or 1.1."""
    headers: list[Header] = attrs.field(factory=list)
    """The headers, with names in lower case."""
    body: bytearray = attrs.field(factory=bytearray)
    keeps_alive: bool = False
    """Whether the client can send another request afterwards."""


@final
@attrs.define(eq=False, repr=False)
class RequestParser:
    """The requests that have arrived.  httptools calls the methods whose names begin with ``on_``."""

    _head_size: int
    _body_size: int
    complete: deque[Request] = attrs.field(factory=deque, init=False)
    """The requests that are complete."""
    unread: bytes = attrs.field(default=b"", init=False)
    """The bytes after these requests that are not parsed yet."""
    refusal: int = attrs.field(default=0, init=False)
    """The status of the response to what follows, if that cannot be a request."""
    awaits_continue: bool = attrs.field(default=False, init=False)
    """Whether the client sends the body when it receives the status 100."""
    _phase: Literal["idle", "head", "body"] = attrs.field(default="idle", init=False)
    """What the next bytes belong to."""
    _request: Request = attrs.field(factory=Request, init=False)
    """The request that has begun, or the next one."""
    _framing: bytes = attrs.field(default=b"", init=False)
    """The header that tells the length of its body; empty if it has none."""
    _unused: int = attrs.field(default=0, init=False)
    """How many bytes have arrived since the request began, or since the last part of its body."""
    _llhttp: httptools.HttpRequestParser = attrs.field(
        default=attrs.Factory(httptools.HttpRequestParser, takes_self=True), init=False
    )

    @property
    def has_begun(self) -> bool:
        """Whether a part of the next request has arrived."""
        return bool(self.complete or self.unread) or self._phase != "idle"

    def feed(self, data: bytes) -> None:
        """Parse what has arrived."""
        self._unused += len(data)
        try:
            self._llhttp.feed_data(data)
        except httptools.HttpParserUpgrade as exc:
            rest = data[exc.args[0] :]
            if self._phase == "body":  # llhttp leaves the body to the other protocol
                self._llhttp = httptools.HttpRequestParser(self)
                self.feed(b"POST / HTTP/1.1\r\n%b\r\n\r\n%b" % (self._framing, rest))
            else:
                self.unread = rest
        except httptools.HttpParserError:
            self.refusal = self.refusal or 400
        if self._unused > self._head_size:
            self.refusal = self.refusal or 431

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self._phase == "idle":
            self._phase, self._framing = "head", b""

    def on_url(self, part: bytes) -> None:
        """Add to the target."""
        if self._phase == "head":
            self._request.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header.  Trailers are ignored."""
        if self._phase == "head":
            self._request.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Check the head."""
        if self._phase != "head":
            return
        self._phase, self._unused = "body", 0
        request = self._request
        request.method, request.version = self._llhttp.get_method().decode(), self._llhttp.get_http_version()
        is_newest = request.version == "1.1"
        request.keeps_alive = is_newest and self._llhttp.should_keep_alive()
        hosts = 0
        for name, value in request.headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding":
                if value.lower() != b"chunked" or not is_newest:
                    self._refuse(501)
                self._framing = b"transfer-encoding: chunked"
            elif name == b"content-length" and int(value):
                self._framing = b"content-length: %b" % value
            elif name == b"expect":
                self.awaits_continue = is_newest and value.lower() == b"100-continue"
        if request.version not in ("1.0", "1.1") or hosts > 1 or (is_newest and not hosts):
            self._refuse(400)
        if self._framing and self._llhttp.should_upgrade():
            request.headers = [header for header in request.headers if header[0] != b"upgrade"]

    def on_body(self, part: bytes) -> None:
        """Add to the body."""
        self._request.body += part
        self._unused, self.awaits_continue = 0, False
        if len(self._request.body) > self._body_size:
            self._refuse(413)

    def on_message_complete(self) -> None:
        """End the request, unless llhttp has left its body."""
        if not (self._framing and self._llhttp.should_upgrade()):
            self._phase, self._unused, self.awaits_continue = "idle", 0, False
            self.complete.append(self._request)
            self._request = Request()  # the body of the last one is not kept

    def _refuse(self, code: int) -> NoReturn:
        self.refusal = code
        raise httptools.HttpParserError
