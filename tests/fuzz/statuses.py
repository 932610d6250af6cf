"""Statuses, headers and single objects, as the responses to every request of a client."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs

from trioformer import open_client
from trioformer.client import Client
from trioformer.errors import StatusError, TrioformerError
from trioformer.models import KubernetesObject, encode, from_dict

from .engine import Fuzzer
from .http_memory import Headers, MemoryServer, Reply, cut
from .json_text import NotJSONError, depth, mutate, mutate_text, read, write
from .objects import CONFIGS, KINDS, NAMESPACE, new_object, new_status
from .oracle import Oracle
from .secrets import CONTENT

# apimachinery, pkg/apis/meta/v1/types.go: the reasons, and the codes that servers send them with.
REASONS = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Expired": 410,
    "Gone": 410,
    "RequestEntityTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
    "Timeout": 504,
}
CODES = (200, 200, 201, 202, 204, 206, 207, 226, 299, 300, 301, 302, 304, 307, 308, 418, 499, 502, 599, 600, 999)
RETRY_AFTER = (
    b"1", b"0", b"-1", b"3600", b"999999999", b"9" * 400, b"1e9", b" 5 ", b"5, 6", b"0x10", b"\xd9\xa3", b"", b"inf",
    b"nan", b"Wed, 21 Oct 2215 07:28:00 GMT", b"5\x00", "٣".encode(), b"+5", b"1_000",
)  # fmt: skip
LOCATIONS = (
    b"https://login.example/?token=" + CONTENT.encode(),
    b"https://admin:" + CONTENT.encode() + b"@login.example/",
    b"https://login.example/#access_token=" + CONTENT.encode(),
    b"//" + CONTENT.encode() + b"@evil/",
    b"/\x1b[2J",
    b"\xe2\x80\xae/gnp",
    b"https://" + b"a" * 20_000,
    b"http://[::1",
    b"",
)
WORDS = (
    "not found",
    "\x1b]0;owned\x07\x1b[2J",
    "a\u202eb\u2066c",
    "x" * 20_000,
    "line\r\nline",
    "\x00",
    "\u2028",
    "",
    "ü" * 9_000,
    "not found",
    "denied",
    "timeout",
)

MINIMAL = {"metadata": {"name": "web-1", "namespace": NAMESPACE}}
OPERATIONS = (
    "get",
    "create",
    "replace",
    "patch",
    "list",
    "watch",
    "version",
    "discover",
    "resources",
    "scale",
    "delete",
)


@attrs.frozen
class Exchange:
    """A request, the kind it is about, and the response to it."""

    operation: str
    kind: str
    reply: Reply


class Statuses(Fuzzer[Exchange]):
    """Sends one request for each input."""

    name = "statuses"

    def __init__(self) -> None:
        self._server = MemoryServer()
        self._clients: list[Client] = []

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        async with (
            open_client(CONFIGS[0], http_transport=self._server) as one,
            open_client(CONFIGS[1], http_transport=self._server) as other,
        ):
            self._clients = [one, other]
            yield

    def generate(self, rng: random.Random) -> Exchange:
        operation, kind = rng.choice(OPERATIONS), rng.choice(list(KINDS))
        if operation in ("create", "replace") and kind == "PartialObjectMetadata":
            kind = "Pod"
        reason = rng.choice(list(REASONS))
        code = REASONS[reason] if rng.random() < 0.6 else rng.choice(CODES)
        body = _body(rng, code, reason, operation, kind)
        return Exchange(operation, kind, Reply(code, *_headers_and_pieces(rng, body)))

    async def check(self, given: Exchange, oracle: Oracle) -> None:
        self._server.respond = lambda request: given.reply
        client = self._clients[len(given.reply.body) % 2]
        result = await oracle.call(lambda: _send(client, given))
        oracle.raise_problem()
        is_encoded = given.reply.header(b"content-encoding") not in (None, b"identity")
        try:
            document: Any = None if is_encoded else read(given.reply.body)
        except NotJSONError:
            document = None
        if isinstance(result, StatusError):
            _check_status(result, given.reply, document, oracle)
        elif isinstance(result, TrioformerError):
            oracle.expect(given.reply.code < 400, "an error of the server is not a StatusError", result)
        else:
            oracle.expect(given.reply.code < 300, f"code {given.reply.code // 100}xx is taken for a success", given)
            _check_result(result, given, document, oracle)


def _body(rng: random.Random, code: int, reason: str, operation: str, kind: str) -> bytes:
    is_failure = code >= 300
    choice = rng.random()
    if choice < (0.75 if is_failure else 0.15):
        document = new_status(rng, code, reason)
        if rng.random() < 0.3:
            document["message"] = rng.choice(WORDS)
        if rng.random() < 0.2:
            document["details"] = {
                "causes": [{"message": rng.choice(WORDS), "field": rng.choice(WORDS)}] * rng.choice((1, 300))
            }
    elif choice < 0.85:
        document = _document(rng, operation, kind)
    else:
        texts = (
            b"",
            b"no backend",
            b"<html><title>Log in \x1b[2J</title>" + b"x" * 5_000,
            b"ok\n",
            b"\xff\xfe",
            b"null",
            b"[]",
            b"{}",
            b'"text"',
        )
        return rng.choice(texts) if rng.random() < 0.8 else rng.choice(WORDS).encode()
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
        mutate(rng, document)
    text = write(document)
    # What does not begin like JSON is the server's words to the user, so nothing secret is in it.
    if rng.random() < 0.15:
        changed = mutate_text(rng, text)
        return changed if code < 300 or changed[:1] in b"{[" else changed.replace(CONTENT.encode(), b"content")
    return text


def _document(rng: random.Random, operation: str, kind: str) -> Any:
    if operation == "version":
        return {
            "major": rng.choice(("1", 1, "9" * 30, "-1", "٣")),
            "minor": "36+",
            "gitVersion": "v1.36.3",
            "platform": "linux/amd64",
            "novel": CONTENT,
        }
    if operation == "discover":
        resource = {
            "name": rng.choice(("widgets", "widgets#", "../../api/v1/secrets", "a b", "", "widgets/status", "W", "é")),
            "kind": "Widget",
            "namespaced": True,
            "verbs": ["list", "get"],
            "shortNames": ["w"],
        }
        return {"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [resource], "novel": CONTENT}
    if operation == "resources":
        resource = {
            "resource": rng.choice(("widgets", "widgets#", "../../api/v1/secrets", "a b", "", "W", "é", 3, None)),
            "responseKind": rng.choice(({"kind": "Widget"}, {"kind": "../W"}, {"kind": 3}, {}, None, "Widget")),
            "scope": "Namespaced",
            "verbs": ["list", "get"],
            "subresources": rng.choice(([{"subresource": "status"}, {"subresource": "../x"}, 3], None, "x")),
            "novel": CONTENT,
        }
        name = rng.choice(("v1", "../v1", "v1#", "", 1))
        version = {"version": name, "resources": [resource], "freshness": rng.choice(("Current", "Stale", 3))}
        group = {"metadata": rng.choice(({"name": "example.com"}, {"name": "../x"}, {}, None)), "versions": [version]}
        return {"kind": "APIGroupDiscoveryList", "items": [group], "novel": CONTENT}
    if operation == "list":
        items = [new_object(rng, kind, number) for number in range(rng.choice((0, 1, 3)))]
        return {"kind": f"{kind}List", "metadata": {"resourceVersion": "5"}, "items": items}
    if operation == "scale":
        return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "web-1"}, "spec": {"replicas": 3}}
    return new_object(rng, kind, 1, typed=rng.random() < 0.9)


def _headers_and_pieces(rng: random.Random, body: bytes) -> tuple[Headers, tuple[bytes, ...]]:
    headers = [
        (
            b"content-type",
            rng.choice((b"application/json", b"text/plain", b"text/html; charset=\xff", b"", b"x" * 9_000)),
        )
    ]
    if rng.random() < 0.3:
        headers.append((b"retry-after", rng.choice(RETRY_AFTER)))
    if rng.random() < 0.2:
        headers.append((b"location", rng.choice(LOCATIONS)))
    if rng.random() < 0.15:
        encoding = rng.choice((b"gzip", b"deflate", b"br", b"zstd", b"identity", b"gzip, gzip", b"x", b"", b"\xff"))
        headers.append((b"content-encoding", encoding))
        if rng.random() < 0.6:
            body = {b"gzip": gzip.compress, b"deflate": zlib.compress}.get(encoding, lambda data: data)(body)
    if rng.random() < 0.1:
        headers += [
            (b"warning", b'299 - "' + rng.choice(WORDS).encode()[:9_000] + b'"'),
            (b"set-cookie", b"a=" + CONTENT.encode()),
        ]
    if rng.random() < 0.01:
        headers += [(b"x-%d" % number, b"y") for number in range(1_000)]
    rng.shuffle(headers)
    return tuple(headers), cut(rng, body)


async def _send(client: Client, given: Exchange) -> Any:
    api = client.api(KINDS[given.kind], NAMESPACE)
    match given.operation:
        case "get":
            return await api.get("web-1")
        case "create":
            return await api.create(from_dict(KINDS[given.kind], MINIMAL))
        case "replace":
            return await api.replace(from_dict(KINDS[given.kind], MINIMAL))
        case "patch":
            return await api.patch("web-1", {"metadata": {"labels": {"a": "b"}}})
        case "delete":
            return await api.delete("web-1")
        case "scale":
            return await api.get("web-1", subresource="scale")
        case "list":
            return await api.list_page()
        case "watch":
            async with api.watch() as events:
                return [event async for event in events]
        case "version":
            return await client.version()
        case "resources":
            return await client.api_resources()
        case _:
            return await client.discover("example.com/v1", "Widget")


def _check_status(error: StatusError, reply: Reply, document: Any, oracle: Oracle) -> None:
    """Check that the class of an error is that of its reason, or of its code, and that numbers are bounded."""
    oracle.expect(
        type(error.code) is int and 100 <= error.code <= 999, "StatusError.code is not an HTTP code", error.code
    )
    after = error.details.retry_after_seconds
    oracle.expect(type(after) is int and 0 <= after < 2**31, "retry_after_seconds is not bounded", after)
    for each in (error.status_message, error.reason, *attrs.astuple(error.details, recurse=False)[:4]):
        oracle.text(each, "a text of a StatusError")
    for cause in error.details.causes:
        for each in (cause.reason, cause.message, cause.field):
            oracle.text(each, "a text of a StatusCause")
    # Of a longer error only the beginning is read, and one of more levels is not decoded.
    is_short = len(reply.body) < 200_000 and depth(document) < 100
    if reply.code >= 400 and is_short and isinstance(document, dict) and document.get("kind") == "Status":
        reason = document.get("reason")
        if isinstance(reason, str) and reason in REASONS:
            oracle.expect(error.reason == reason, "an error has not the reason of its Status", (error, reason))
        oracle.expect(
            not error.is_unexpected_server_error or b"Unexpected" in reply.body, "a Status is taken for another body"
        )


def _check_result(result: Any, given: Exchange, document: Any, oracle: Oracle) -> None:
    """Check that what was returned is what the body says."""
    if isinstance(document, dict) and document.get("kind") == "Status" and given.operation != "delete":
        oracle.expect(document.get("status") != "Failure", "a Status of Failure is taken for a success", given)
    if isinstance(result, KubernetesObject):
        oracle.secrets(repr(result.metadata.name), "repr of a name")
        if document is not None and given.kind != "PartialObjectMetadata":
            oracle.expect(read(encode(result)) == document, "an object is not that of the response", encode(result))
