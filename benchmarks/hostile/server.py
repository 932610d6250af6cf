"""A server that sends what it wants, in a process of its own: ``python -m hostile.server NAME`` prints its URL.

Only the standard library: a thread for each connection, and bytes.
A responder is given the request line, and yields the bytes of the response, its head included; then the connection is
closed.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

Responder = Callable[[str], Iterable[bytes]]
RESPONDERS: dict[str, Responder] = {}

MB = 1024**2
LIST = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"%s},"items":['
EMPTY = LIST % b"" + b"]}"


def responder(respond: Responder) -> Responder:
    RESPONDERS[respond.__name__] = respond
    return respond


def fixed(make: Callable[[], Iterable[bytes]]) -> None:
    """Add a response that is made once, before the first request."""
    made = functools.cache(lambda: list(make()))
    RESPONDERS[make.__name__] = lambda target: made()


def head(code: int = 200, *fields: str, content_type: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {code} Something", f"Content-Type: {content_type}", "Connection: close", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body: bytes, code: int = 200, *fields: str, content_type: str = "application/json") -> list[bytes]:
    return [head(code, f"Content-Length: {len(body)}", *fields, content_type=content_type), body]


def chunked(pieces: Iterable[bytes], code: int = 200, *fields: str) -> Iterator[bytes]:
    yield head(code, "Transfer-Encoding: chunked", *fields)
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def item(number: int, rest: bytes = b"") -> bytes:
    return b'{"metadata":{"name":"c%d","namespace":"default","uid":"u%d","resourceVersion":"%d"}%s}' % (
        number,
        number,
        number + 1,
        rest,
    )


def a_list(items: Iterable[bytes], *, continue_token: str = "", version: bytes = b"7") -> bytes:
    token = b',"continue":"%s"' % continue_token.encode() if continue_token else b""
    return (LIST % token).replace(b'"7"', b'"%s"' % version) + b",".join(items) + b"]}"


def squeezed(pieces: Iterable[bytes], *, wbits: int = 31) -> bytes:
    compressor = zlib.compressobj(9, wbits=wbits)
    return b"".join(map(compressor.compress, pieces)) + compressor.flush()


def tiny_items(size: int) -> Iterator[bytes]:
    yield LIST % b""
    for _ in range(size // (3 * MB)):
        yield b"{}," * MB
    yield b"{}]}"


def spaces(size: int) -> Iterator[bytes]:
    yield LIST % b""
    for _ in range(size // MB):
        yield b" " * MB
    yield b"]}"


# --- compression ------------------------------------------------------------------------------------------------------


@fixed
def gzip_items() -> Iterable[bytes]:
    return whole(squeezed(tiny_items(30 * MB)), 200, "Content-Encoding: gzip")


@fixed
def gzip_spaces() -> Iterable[bytes]:
    return whole(squeezed(spaces(400 * MB)), 200, "Content-Encoding: gzip")


@fixed
def gzip_twice() -> Iterable[bytes]:
    return whole(gzip.compress(squeezed(spaces(500 * MB)), 9), 200, "Content-Encoding: gzip, gzip")


@fixed
def deflate() -> Iterable[bytes]:
    return whole(squeezed(spaces(400 * MB), wbits=15), 200, "Content-Encoding: deflate")


@fixed
def brotli() -> Iterable[bytes]:
    return whole(EMPTY, 200, "Content-Encoding: br")


@fixed
def zstd() -> Iterable[bytes]:
    return whole(EMPTY, 200, "Content-Encoding: zstd")


@fixed
def gzip_lie() -> Iterable[bytes]:
    return whole(EMPTY, 200, "Content-Encoding: gzip")


@fixed
def unsaid_gzip() -> Iterable[bytes]:
    return whole(squeezed(spaces(400 * MB)))


@fixed
def gzip_error() -> Iterable[bytes]:
    return whole(squeezed(spaces(400 * MB)), 500, "Content-Encoding: gzip")


@responder
def gzip_members(target: str) -> Iterator[bytes]:
    return chunked(itertools.repeat(gzip.compress(b"") * 3_000), 200, "Content-Encoding: gzip")


# --- lists ------------------------------------------------------------------------------------------------------------


def nested(levels: int) -> Responder:
    def respond(target: str) -> Iterable[bytes]:
        value = b'{"a":' * levels + b"1" + b"}" * levels
        rows = b"[" * levels + b"]" * levels
        return whole(a_list([item(1), item(2, b',"data":' + value), item(3, b',"spec":' + rows), item(4)]))

    return respond


for levels in (1_000, 10_000, 100_000):
    RESPONDERS[f"nested_{levels}"] = nested(levels)


@fixed
def nested_items() -> Iterable[bytes]:
    deep = b"[" * 100_000 + b"]" * 100_000
    return whole(a_list(item(number, b',"spec":' + deep) for number in range(100)))


@fixed
def unclosed_brackets() -> Iterable[bytes]:
    return whole(LIST % b"" + b"[" * 30 * MB)


@fixed
def long_item() -> Iterable[bytes]:
    return whole(a_list([item(1, b',"data":{"a":"' + b"x" * 100 * MB + b'"}')]))


@fixed
def wide_item() -> Iterable[bytes]:
    members = b",".join(b'"k%d":"v"' % number for number in range(6_000_000))
    return whole(a_list([item(1, b',"data":{' + members + b"}")]))


@fixed
def wide_item_below() -> Iterable[bytes]:
    """Just below the limit of an item, with as many members as fit."""
    members = b",".join(b'"k%d":0' % number for number in range(1_300_000))
    return whole(a_list([item(1, b',"data":{' + members + b"}")]))


@fixed
def deceptive_items_below() -> Iterable[bytes]:
    return whole(a_list([item(1, b',"data":[' + b'{},{"metadata":{"name":1}},' * 600_000 + b"1]")]))


@fixed
def long_list_of_undecodable() -> Iterable[bytes]:
    return whole(a_list([b"{}"] * 300_000))


@fixed
def flood_of_undecodable() -> Iterable[bytes]:
    return whole(b"".join(tiny_items(60 * MB)))


@fixed
def long_names() -> Iterable[bytes]:
    names = (b"x" * MB + b"%d" % number for number in range(20))
    return whole(a_list(b'{"metadata":{"name":"%s","namespace":"%s"},"data":[]}' % (name, name) for name in names))


@fixed
def many_labels() -> Iterable[bytes]:
    labels = b",".join(b'"k%d":"v"' % number for number in range(1_000_000))
    return whole(a_list([b'{"metadata":{"name":"c","namespace":"default","labels":{' + labels + b"}}}"]))


@fixed
def many_items() -> Iterable[bytes]:
    return whole(a_list(map(item, range(1_000_000))))


@fixed
def deceptive_items() -> Iterable[bytes]:
    """Text in an item that looks like the beginning of the next one, so that each guess of the cut is wrong."""
    return whole(a_list([item(1, b',"data":[' + b'{},{"metadata":{"name":1}},' * 1_000_000 + b"1]")]))


@responder
def endless_chunk_extension(target: str) -> Iterable[bytes]:
    yield head(200, "Transfer-Encoding: chunked")
    yield b"5;"
    yield from itertools.repeat(b"x" * 65_536)


@responder
def endless_page_prefix(target: str) -> Iterable[bytes]:
    return itertools.chain([head(), b'{"kind":"'], itertools.repeat(b"x" * 65_536))


# --- pages ------------------------------------------------------------------------------------------------------------

_pages = itertools.count()


@responder
def long_continue(target: str) -> Iterable[bytes]:
    return whole(a_list([], continue_token="x" * 5 * MB + str(next(_pages))))


# --- watches ----------------------------------------------------------------------------------------------------------


def watched(pieces: Callable[[], Iterable[bytes]]) -> Responder:
    """List nothing, then watch."""

    def respond(target: str) -> Iterable[bytes]:
        return chunked(pieces()) if "watch=" in target else whole(EMPTY)

    return respond


def frame(obj: bytes, type_: bytes = b"ADDED") -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_, obj)


def typed(number: int, rest: bytes = b"") -> bytes:
    return b'{"kind":"ConfigMap","apiVersion":"v1",' + item(number, rest)[1:]


def nested_frames() -> Iterator[bytes]:
    for levels in (1_000, 10_000, 100_000, 1_000_000):
        yield frame(typed(levels, b',"data":' + b'{"a":' * levels + b"1" + b"}" * levels))
        yield frame(typed(levels + 1, b',"spec":' + b"[" * levels + b"]" * levels))


WATCHES: dict[str, Responder] = {
    "frame_without_end": watched(lambda: itertools.chain([b'{"type":"ADDED"'], itertools.repeat(b"x" * 65_536))),
    "blank_lines_without_end": watched(lambda: itertools.repeat(b"\n" * 65_536)),
    "nested_frames": watched(nested_frames),
    "nested_15_mb": watched(lambda: [frame(typed(1, b',"spec":' + b"[" * 7_500_000 + b"]" * 7_500_000))]),
    "long_frames": watched(lambda: [frame(typed(1, b',"data":{"a":"' + b"x" * 15_000_000 + b'"}'))] * 5),
    "tiny_frames": watched(lambda: [frame(typed(1)) * 1_000 for _ in range(300)]),
    "unknown_frames": watched(lambda: [b'{"type":"NEW","object":{}}\n' * 1_000 for _ in range(200)]),
    "error_frame": watched(
        lambda: [frame(b'{"kind":"Status","code":500,"message":"' + b"x" * 10_000_000 + b'"}', b"ERROR")]
    ),
    "long_version_frame": watched(
        lambda: [frame(typed(1).replace(b'"resourceVersion":"2"', b'"resourceVersion":"%s"' % (b"9" * 10_000)))]
    ),
}
RESPONDERS |= WATCHES


def silence() -> Iterator[bytes]:
    """A watch without events, for the informers of bombs that are lists."""
    yield head(200, "Transfer-Encoding: chunked")
    time.sleep(60)


# --- heads and slow bodies --------------------------------------------------------------------------------------------


@fixed
def long_head() -> Iterable[bytes]:
    return whole(EMPTY, 200, *(f"X-{number}: {'x' * 1_000}" for number in range(64)))


@fixed
def many_headers() -> Iterable[bytes]:
    return whole(EMPTY, 200, *(f"X-{number}: y" for number in range(10_000)))


@fixed
def short_headers() -> Iterable[bytes]:
    return whole(EMPTY, 200, *("a:b" for _ in range(12_000)))


@responder
def endless_head(target: str) -> Iterable[bytes]:
    return itertools.chain([head()[:-2]], itertools.repeat(b"X-More: " + b"x" * 1_000 + b"\r\n"))


@responder
def endless_status_line(target: str) -> Iterable[bytes]:
    return itertools.chain([b"HTTP/1.1 200 "], itertools.repeat(b"x" * 65_536))


# --- errors -----------------------------------------------------------------------------------------------------------


def status(code: int = 500, **members: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, **members}).encode()


@responder
def endless_error(target: str) -> Iterable[bytes]:
    return itertools.chain([head(500, content_type="text/plain")], itertools.repeat(b"no way " * 10_000))


@fixed
def html_error() -> Iterable[bytes]:
    page = b"<html><head><title>Bad gateway</title></head><body>" + b"<p>x</p>" * (100 * MB // 8)
    return whole(page, 502, content_type="text/html")


@fixed
def html_success() -> Iterable[bytes]:
    return whole(b"<html><title>" + b"<" * 30 * MB, content_type="text/html")


@fixed
def long_status() -> Iterable[bytes]:
    return whole(status(message="\x1b[2J" + "x" * 300_000, reason="y" * 300_000), 500)


@fixed
def many_causes() -> Iterable[bytes]:
    causes = [{"reason": "FieldValueInvalid", "message": "x", "field": f"f{number}"} for number in range(1_000_000)]
    return whole(status(422, reason="Invalid", message="x", details={"causes": causes}), 422)


@fixed
def nested_status() -> Iterable[bytes]:
    return whole(b'{"kind":"Status","details":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 500)


@fixed
def huge_retry_after() -> Iterable[bytes]:
    return whole(status(429, reason="TooManyRequests"), 429, f"Retry-After: {'9' * 10_000}")


@fixed
def huge_numbers() -> Iterable[bytes]:
    details = b'{"retryAfterSeconds":1e400}'
    body = b'{"kind":"Status","status":"Failure","code":%s,"details":%s}' % (b"9" * 10_000, details)
    return whole(body, 503)


@responder
def long_versions(target: str) -> Iterable[bytes]:
    if "watch=" in target:
        return chunked(iter(lambda: time.sleep(0.1) or b"\n", None))
    version = b"9" * 10_000
    first = item(1).replace(b'"resourceVersion":"2"', b'"resourceVersion":"%s"' % version)
    return whole(a_list([first], version=version))


@responder
def long_discovery(target: str) -> Iterable[bytes]:
    yield head()
    yield b'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"'
    for _ in range(100):
        yield b"x" * MB
    yield b'"}]}'


@fixed
def many_resources() -> Iterable[bytes]:
    resource = b'{"name":"widgets%d","singularName":"","namespaced":true,"kind":"Widget%d","verbs":["get"]}'
    resources = b",".join(resource % (number, number) for number in range(150_000))
    return whole(b'{"kind":"APIResourceList","groupVersion":"v1","resources":[' + resources + b"]}")


@fixed
def nested_discovery() -> Iterable[bytes]:
    return whole(b'{"kind":"APIResourceList","resources":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@responder
def long_object(target: str) -> Iterable[bytes]:
    yield head()
    yield typed(1)[:-1] + b',"data":{"a":"'
    yield from itertools.repeat(b"x" * MB, 400)
    yield b'"}}'


@fixed
def nested_object() -> Iterable[bytes]:
    return whole(typed(1, b',"data":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000))


VERSION = whole(b'{"major":"1","minor":"36","gitVersion":"v1.36.3"}')

# --- the server -------------------------------------------------------------------------------------------------------


def serve_one(connection: socket.socket, respond: Responder) -> None:
    with connection, suppress(OSError):
        received = b""
        while b"\r\n\r\n" not in received:
            if not (data := connection.recv(65_536)):
                return
            received += data
        target = received.split(b" ", 2)[1].decode("latin-1")
        is_silent = "watch=" in target and respond not in WATCHES.values()
        for piece in VERSION if target == "/version" else silence() if is_silent else respond(target):
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass


def main(name: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    respond = RESPONDERS[name]
    respond("/")  # what is made once is made now
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve_one, args=(connection, respond), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
