"""Responses that were quoted, believed, or not bounded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.http_memory import Reply
from tests.fuzz.secrets import CONTENT
from tests.fuzz.statuses import Exchange

JSON = (b"content-type", b"application/json")


def status(
    code: int = 403, *, http: int | None = None, operation: str = "get", kind: str = "Pod", **members: Any
) -> Exchange:
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Forbidden",
        "code": code,
        **members,
    }
    return Exchange(operation, kind, Reply(code if http is None else http, (JSON,), (json.dumps(document).encode(),)))


def reply(code: int, body: bytes, *headers: tuple[bytes, bytes], operation: str = "get") -> Exchange:
    return Exchange(operation, "Secret", Reply(code, (JSON, *headers), (body,)))


SECRET = b'{"kind":"Secret","data":{"password":"%s"}}' % CONTENT.encode()

CASES: Mapping[str, Callable[[], Exchange]] = {
    "a message with the escape sequences of a terminal": lambda: status(message="\x1b]0;owned\x07\x1b[2Jgone"),
    "a message that changes the direction": lambda: status(message="a\u202eb\u2066c\u2028d"),
    "a message with half a surrogate": lambda: reply(500, b'{"kind":"Status","status":"Failure","message":"\\ud800","code":500}'),
    "a message of 300,000 characters": lambda: status(message="x" * 300_000),
    "a plain text of 300,000 characters": lambda: reply(500, b"x" * 300_000),
    "300 causes of 9,000 characters": lambda: status(422, details={"causes": [{"message": "ü" * 9_000, "field": "\x1b[2J"}] * 300}),
    "a reason and a name with control characters": lambda: status(reason="\x1b[2J", details={"name": "\x00", "kind": "\u202e"}),
    "a code beyond 64 bits": lambda: status(2**64, http=500),
    "a negative code": lambda: status(-7, http=500),
    "a retryAfterSeconds of 5,000 digits": lambda: reply(429, b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":%s}}' % (b"9" * 5_000)),
    "a retryAfterSeconds of 68 years": lambda: status(429, details={"retryAfterSeconds": 2**31}),
    "a Retry-After of 400 digits": lambda: reply(429, b"slow down", (b"retry-after", b"9" * 400)),
    "a Retry-After in Arabic digits": lambda: reply(429, b"slow down", (b"retry-after", "٣".encode())),
    "a Failure with HTTP 200": lambda: status(403, http=200),
    "a Failure with HTTP 201 for a create": lambda: status(403, http=201, operation="create"),
    "a Failure with HTTP 200 for a patch": lambda: status(409, http=200, operation="patch"),
    "a Failure with HTTP 200 for a list": lambda: status(410, http=200, operation="list"),
    "a Failure with HTTP 200 for a version": lambda: status(403, http=200, operation="version"),
    "a Failure with HTTP 200 for discovery": lambda: status(403, http=200, operation="discover"),
    "JSON that is no Status with HTTP 403": lambda: reply(403, SECRET),
    "JSON that is no Status with HTTP 504 to a version": lambda: reply(504, SECRET, operation="version"),
    "JSON that is cut off with HTTP 403": lambda: reply(403, SECRET[:-5]),
    "a redirect with a password": lambda: reply(302, b"", (b"location", b"https://a:%s@login/" % CONTENT.encode())),
    "a redirect without a scheme with a password": lambda: reply(307, b"", (b"location", b"//%s@login/" % CONTENT.encode())),
    "a redirect with a token in its fragment": lambda: reply(302, b"", (b"location", b"/cb#access_token=%s" % CONTENT.encode())),
    "a redirect with a token in its query": lambda: reply(302, b"", (b"location", b"/cb?access_token=%s" % CONTENT.encode())),
    "a redirect with escape sequences": lambda: reply(302, b"", (b"location", b"/\x1b[2J")),
    "a redirect to 20,000 characters": lambda: reply(301, b"", (b"location", b"https://" + b"a" * 20_000)),
    "a body that is not gzip as it says": lambda: reply(200, SECRET, (b"content-encoding", b"gzip")),
    "the same with HTTP 500": lambda: reply(500, b"Oops", (b"content-encoding", b"gzip")),
    "a page of 30 MB in 30 KB": lambda: reply(200, gzip.compress(b" " * 30_000_000), (b"content-encoding", b"gzip")),
    "an object of 1,100 levels": lambda: reply(200, b'{"metadata":{"name":"a"},"spec":%s1%s}' % (b'{"a":' * 1_100, b"}" * 1_100)),
    "an object of 100,000 levels": lambda: reply(200, b'{"metadata":{"name":"a"},"spec":%s1%s}' % (b'{"a":' * 100_000, b"}" * 100_000)),
    "a Status of 100,000 levels": lambda: reply(500, b'{"kind":"Status","details":%s%s}' % (b"[" * 100_000, b"]" * 100_000)),
    "a version of 100,000 levels": lambda: reply(200, b"[" * 100_000 + b"]" * 100_000, operation="version"),
    "a resource list of 100,000 levels": lambda: reply(200, b"[" * 100_000 + b"]" * 100_000, operation="discover"),
    "a list of API groups of 100,000 levels": lambda: reply(200, b'{"kind":"APIGroupDiscoveryList","items":%s%s}' % (b"[" * 100_000, b"]" * 100_000), operation="resources"),
    "a plural that is a path among all resources": lambda: reply(
        200,
        b'{"kind":"APIGroupDiscoveryList","items":[{"versions":[{"version":"v1","resources":['
        b'{"resource":"../secrets","responseKind":{"kind":"Widget"}}]}]}]}',
        operation="resources",
    ),
    "a plural that is a path": lambda: reply(
        200,
        b'{"resources":[{"name":"../../api/v1/secrets","kind":"Widget","namespaced":true,"verbs":["list"]}]}',
        operation="discover",
    ),
    "HTML with escape sequences in its title": lambda: reply(200, b"<html><title>\x1b[2J \xe2\x80\xae</title></html>"),
    "a number beyond floats in an object": lambda: reply(200, b'{"metadata":{"name":"a"},"spec":1e999}'),
    "a key that is not UTF-8": lambda: reply(200, b'{"metadata":{"name":"a","labels":{"\xff":"b"}},"\xff":1}'),
}  # fmt: skip
