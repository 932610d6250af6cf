"""HTTP/1.1 framing, read by a second parser: what one response on a connection is (RFC 9112)."""

from __future__ import annotations

import re
import zlib

import attrs

_STATUS = re.compile(rb"HTTP/([0-9]\.[0-9]) ([0-9]{3})(?: ([^\x00\r\n]*))?\Z")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00\r\n]*?)[ \t]*\Z")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[^\r\n]*)?\Z")


MAX_INTERIM = 1_000
"""Responses before the final one that no client should wait for."""


@attrs.frozen
class Parsed:
    """A response as the bytes say."""

    code: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    rest: bytes
    """What follows it."""
    is_strict: bool
    """Whether every parser must accept it."""

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]


class FramingError(Exception):
    """The bytes are not a complete response."""


def parse(data: bytes, *, is_ended: bool) -> Parsed:
    """Parse the final response at the beginning of what a connection sent.

    Raises:
        FramingError: It is not a response, is not complete, or its length is not certain.
    """
    is_strict = True
    for _ in range(MAX_INTERIM):
        head, data = _head(data)
        lines = head.split(b"\n")
        is_strict = is_strict and all(line.endswith(b"\r") for line in lines[:-1]) and len(lines) < 90
        lines = [line.removesuffix(b"\r") for line in lines]
        status = _STATUS.fullmatch(lines[0])
        if status is None:
            raise FramingError("status line")
        is_strict = is_strict and status[1] in (b"1.0", b"1.1") and (status[3] or b"").isalpha()
        code = int(status[2])
        if code < 100:
            raise FramingError("code")
        headers, folded = _fields(lines[1:])
        is_strict = is_strict and not folded and len(head) < 8_000
        if code == 101:
            raise FramingError("another protocol")
        if code >= 200:
            break
        is_strict = False  # how many of them a client accepts is its choice
    else:
        raise FramingError("interim responses")
    names = dict(headers)
    body, rest, is_certain = _body(code, headers, data, is_ended=is_ended, is_old=status[1] < b"1.1")
    is_strict = is_strict and is_certain and b"content-encoding" not in names
    return Parsed(code, tuple(headers), body, rest, is_strict)


def _head(data: bytes) -> tuple[bytes, bytes]:
    end = re.search(rb"\n\r?\n", data)
    if end is None:
        raise FramingError("the head does not end")
    return data[: end.start() + 1].removesuffix(b"\n"), data[end.end() :]


def _fields(lines: list[bytes]) -> tuple[list[tuple[bytes, bytes]], bool]:
    headers: list[tuple[bytes, bytes]] = []
    folded = False
    for line in lines:
        if line[:1] in (b" ", b"\t") and headers:
            headers[-1] = (headers[-1][0], headers[-1][1] + b" " + line.strip())
            folded = True
            continue
        field = _FIELD.fullmatch(line)
        if field is None:
            raise FramingError("field line")
        headers.append((field[1].lower(), field[2]))
    return headers, folded


def _body(
    code: int, headers: list[tuple[bytes, bytes]], data: bytes, *, is_ended: bool, is_old: bool
) -> tuple[bytes, bytes, bool]:
    """Return the body, what follows, and whether there is only one reading."""
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    lengths = [value for name, value in headers if name == b"content-length"]
    if code in (204, 304):
        return b"", data, not codings and not lengths
    if codings:
        if [coding.lower() for coding in codings] != [b"chunked"]:
            raise FramingError("coding")
        body, rest, is_certain = _chunked(data)
        return body, rest, is_certain and not lengths and not is_old
    if lengths:
        numbers = {number.strip() for value in lengths for number in value.split(b",")}
        if len(numbers) != 1 or not re.fullmatch(rb"[0-9]{1,18}", length := numbers.pop()):
            raise FramingError("length")
        size = int(length)
        if len(data) < size:
            raise FramingError("the body ends early")
        return data[:size], data[size:], len(lengths) == 1 and b"," not in lengths[0]
    if not is_ended:
        raise FramingError("the body does not end")
    return data, b"", True


def _chunked(data: bytes) -> tuple[bytes, bytes, bool]:
    body = bytearray()
    is_certain = True
    while True:
        line, found, data = data.partition(b"\r\n")
        size = _SIZE.fullmatch(line)
        if not found or size is None:
            raise FramingError("chunk size")
        is_certain = is_certain and size[2] is None and line == line.strip() and len(line) < 10
        number = int(size[1], 16)
        if number == 0:
            break
        if data[number : number + 2] != b"\r\n":
            raise FramingError("chunk")
        body += data[:number]
        data = data[number + 2 :]
    if data.startswith(b"\r\n"):
        return bytes(body), data[2:], is_certain
    trailer, rest = _head(data)
    _fields([line.removesuffix(b"\r") for line in trailer.split(b"\n")])
    return bytes(body), rest, False


def decompressed(parsed: Parsed) -> bytes | None:
    """Return the body without its content coding; None if that is not certain."""
    codings = [coding for coding in parsed.values(b"content-encoding") if coding.lower() != b"identity"]
    if not codings:
        return parsed.body
    if codings in ([b"gzip"], [b"deflate"]):
        try:
            return zlib.decompressobj(47).decompress(parsed.body)
        except zlib.error:
            return None
    return None
