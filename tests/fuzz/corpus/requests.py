"""Requests that the embedded server did not survive, or answered with too much."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.requests import BASE, WIDGETS, Call

JSON_PATCH = (("Content-Type", "application/json-patch+json"),)
MERGE_PATCH = (("Content-Type", "application/merge-patch+json"),)
JSON = (("Content-Type", "application/json"),)


def patch(*operations: dict[str, Any]) -> Call:
    return Call("PATCH", f"{WIDGETS}/base", headers=JSON_PATCH, body=json.dumps(operations).encode())


def post(body: bytes) -> Call:
    return Call("POST", WIDGETS, headers=JSON, body=body)


def nested(levels: int, opening: bytes = b'{"a":', closing: bytes = b"}") -> bytes:
    new = json.dumps(BASE).replace('"base"', '"new"').encode()
    return new[:-1] + b',"deep":' + opening * levels + b"1" + closing * levels + b"}"


def get(query: str, path: str = WIDGETS) -> Call:
    return Call("GET", path, query)


def raw(data: bytes) -> Call:
    return Call("GET", "/", raw=data)


CASES: Mapping[str, Callable[[], Call]] = {
    "17 copies of the spec into itself": lambda: patch(*[{"op": "copy", "from": "/spec", "path": f"/spec/x{n}"} for n in range(17)]),
    "17 copies of a list into itself": lambda: patch(
        {"op": "add", "path": "/spec/x", "value": ["y" * 3_000]}, *[{"op": "copy", "from": "/spec/x", "path": "/spec/x/-"} for _ in range(17)]
    ),
    "3,000 levels": lambda: post(nested(3_000)),
    "9,000 levels of lists": lambda: post(nested(9_000, b"[", b"]")),
    "100,000 levels": lambda: post(nested(100_000)),
    "100,000 levels that never end": lambda: post(b"[" * 100_000),
    "a merge patch of 3,000 levels": lambda: Call("PATCH", f"{WIDGETS}/base", headers=MERGE_PATCH, body=b'{"a":' * 3_000 + b"1" + b"}" * 3_000),
    "a pointer of 3,000 levels": lambda: patch({"op": "add", "path": "/spec" + "/a" * 3_000, "value": 1}),
    "a JSON patch that nests": lambda: patch(*[{"op": "move", "from": "/spec", "path": "/spec/x"}] * 3),
    "copies that nest 2,000 levels": lambda: patch(*[{"op": "copy", "from": "/metadata/labels", "path": "/metadata/labels" + "/x" * n} for n in range(1, 300)]),
    "a body of 4 MB": lambda: post(b'{"a":"%s"}' % (b"x" * 4_000_000)),
    "a key that is not UTF-8": lambda: post(b'{"metadata":{"name":"new"},"spec":{"\xff":1}}'),
    "half a surrogate": lambda: post(b'{"metadata":{"name":"new"},"spec":{"\\ud800":"\\udfff"}}'),
    "a number beyond floats": lambda: post(b'{"metadata":{"name":"new"},"spec":{"a":1e999}}'),
    "a generation of 5,000 digits": lambda: post(b'{"metadata":{"name":"new","generation":%s}}' % (b"9" * 5_000)),
    "a version of 5,000 digits": lambda: get("watch=1&resourceVersion=" + "9" * 5_000),
    "a timeout of 5,000 digits": lambda: get("watch=1&timeoutSeconds=" + "9" * 5_000),
    "a limit of 5,000 digits": lambda: get("limit=" + "9" * 5_000),
    "a continue token that is JSON": lambda: get("limit=1&continue=eyJ2IjpbXX0"),
    "a continue token of brackets": lambda: get("limit=1&continue=" + "W1tb" * 3_000),
    "a selector of 3,000 brackets": lambda: get("labelSelector=" + "(" * 3_000),
    "a path of 5,000 levels": lambda: get("", "/" + "a/" * 5_000),
    "an Accept without a number": lambda: Call("GET", WIDGETS, headers=(("Accept", "*/*;q=nan"),)),
    "HTTP/2 without TLS": lambda: raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "an upgrade to HTTP/2": lambda: raw(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"),
    "a WebSocket": lambda: raw(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
    "a negative length": lambda: raw(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n"),
    "a HEAD of another version": lambda: raw(b"HEAD / HTTP/3.0\r\nHost: 127.0.0.1\r\n\r\n"),
    "another host": lambda: raw(b"GET /version HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
}  # fmt: skip
