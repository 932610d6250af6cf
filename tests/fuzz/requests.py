"""Requests to the embedded server: as ASGI messages, and as bytes on a socket."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, unquote

import attrs
import trio

from trioformer.models import ResourceInfo
from trioformer.testing import APIServer
from trioformer.testing._serve_http import serve_http

from .engine import Fuzzer
from .json_text import NotJSONError, Raw, deep, mutate, mutate_text, read, write
from .oracle import Oracle
from .patches import PatchError, apply, merge
from .secrets import CONTENT

WIDGET = ResourceInfo(
    group="example.com",
    version="v1",
    kind="Widget",
    plural="widgets",
    namespaced=True,
    subresources=("status", "scale"),
)
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
BASE = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "base", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"size": 3, "key": CONTENT, "parts": [{"name": "a"}, {"name": "b", "list": [1, 2, [3]]}], "a/b": {"~c": 1}},
}
AS_KUBE_APISERVER = (b"resourceVersion: Invalid value", b"Too large resource version", b"the spec replicas field")
"""Messages with codes from 500 on: to a watch from a version that is not a number, to a version of the future, and to the
scale of a custom object without replicas."""
MAX_RESPONSE = 8_000_000
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PRI", "X" * 300, "")
PATHS = (
    f"{WIDGETS}/base", WIDGETS, f"{WIDGETS}/base/status", f"{WIDGETS}/base/scale", f"{WIDGETS}/base/../x", f"{WIDGETS}/%2e%2e/x",
    f"{WIDGETS}/a%2Fb", "/apis/example.com/v1/widgets", "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/pods/x/log", "/api/v1/namespaces/default/pods/x/eviction", "/api/v1/nodes/x", "/version", "/livez",
    "/apis", "/apis/example.com", "/apis/example.com/v1", "/api", "/openapi/v3", "/", "//", "", "*", "/api/v1//pods", "/\x00", "/é", "/\ud800",
    "/" + "a/" * 5_000, f"{WIDGETS}/{'n' * 5_000}", "/api/v1/namespaces/\x1b[2J/pods", f"{WIDGETS}/base/status/x", "/apis/../api/v1/secrets",
)  # fmt: skip
QUERIES = (
    "limit={n}", "limit={n}&continue={n}", "continue=e30", "continue=eyJ2IjoibWV0YSJ9", "labelSelector={s}", "fieldSelector={s}",
    "resourceVersion={n}", "resourceVersionMatch=Exact&resourceVersion={n}", "resourceVersionMatch={s}", "watch=1&timeoutSeconds={n}",
    "watch=true&resourceVersion={n}", "watch={s}", "sendInitialEvents=true&watch=1&resourceVersionMatch=NotOlderThan", "dryRun={s}",
    "propagationPolicy={s}", "gracePeriodSeconds={n}", "fieldManager={s}", "pretty={s}", "&&&=", "%zz=%", "a" * 9_000, "watch=1&limit=1",
    "allowWatchBookmarks={s}&watch=1", "timeout={s}",
)  # fmt: skip
NUMBERS = (
    "0",
    "1",
    "-1",
    "9" * 30,
    "9" * 5_000,
    "1e5",
    "0x1",
    "",
    " 1",
    "٣",
    "1_0",
    "nan",
    "inf",
    "2147483648",
    "18446744073709551616",
    "True",
)
WORDS = (
    "a=b",
    "a in (b)",
    "a in (",
    "!a",
    "metadata.name=base",
    "spec.x=1",
    "=",
    "a=b,",
    "x" * 9_000,
    "é",
    "\x00",
    "(" * 3_000,
    "All",
    "true",
)
TYPES = (
    "application/json", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "text/plain", "", "application/json; charset=\xff", "multipart/form-data", "application/yaml", "a" * 9_000,
)  # fmt: skip
ACCEPTS = ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html", "*/*;q=nan", "application/json;q=-1", ";;;", "", "a/b" * 3_000)  # fmt: skip


@attrs.frozen
class Call:
    """A request; and what plain Python says about it."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    spec: Any = None
    """The spec that the object has afterwards, if the request succeeds; None if that is not known."""
    raw: bytes | None = None
    """The bytes on a socket, in place of the rest."""


class Requests(Fuzzer[Call]):
    """Sends one request to a server that has one object."""

    name = "requests"
    is_virtual = False

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        async with trio.open_nursery() as nursery:
            self._server = APIServer()
            self._server.register(WIDGET)
            url: str = await nursery.start(serve_http, self._server)
            self._port = int(url.rpartition(":")[2])
            yield
            nursery.cancel_scope.cancel()

    def generate(self, rng: random.Random) -> Call:
        call = _call(rng)
        if rng.random() >= 0.05:
            return call
        head = f"{call.method} {call.path}?{call.query} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        fields = "".join(f"{name}: {value}\r\n" for name, value in call.headers)
        data = f"{head}{fields}Content-Length: {len(call.body)}\r\n\r\n".encode("utf-8", "replace") + call.body
        return attrs.evolve(call, raw=_broken(rng, data), spec=None)

    async def check(self, given: Call, oracle: Oracle) -> None:
        for obj in self._server.list(WIDGET):
            self._server.delete(WIDGET, obj["metadata"]["name"], namespace=obj["metadata"]["namespace"])
        self._server.create(BASE)
        if given.raw is not None:
            await self._check_socket(given.raw, oracle)
            return
        code, body = await self._send(given, oracle)
        self._check_response(given, code, body, oracle)
        if code in (200, 201) and given.spec is not None:
            stored = [obj.get("spec") for obj in self._server.list(WIDGET)]
            oracle.expect(
                rounded(given.spec) in rounded(stored),
                "the spec that is stored is not that of the request",
                (given, stored),
            )
        for obj in self._server.list(WIDGET):
            oracle.expect(len(json.dumps(obj)) < MAX_RESPONSE, "an object is stored that is too large")

    async def _send(self, given: Call, oracle: Oracle) -> tuple[int, bytes]:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": given.method,
            "scheme": "http",
            "path": unquote(given.path, errors="replace"),
            "raw_path": quote(given.path, errors="replace").encode(),
            "query_string": given.query.encode("utf-8", "replace"),
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1")]
            + [
                (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
                for name, value in given.headers
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        parts = [given.body[:7], given.body[7:]] if len(given.body) > 7 else [given.body]
        messages = [{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts]
        sent: list[Any] = []

        async def receive() -> Any:
            await trio.lowlevel.checkpoint()
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            await trio.lowlevel.checkpoint()
            sent.append(message)
            if len(sent) > 5_000:
                raise AssertionError("a response without end")

        await oracle.call(lambda: self._server.asgi_app(scope, receive, send), ())
        if not sent:
            return 0, b""
        oracle.expect([each["type"] for each in sent].count("http.response.start") == 1, "a response has several heads")
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])

    @staticmethod
    def _check_response(given: Call, code: int, body: bytes, oracle: Oracle) -> None:
        oracle.counts[f"HTTP {code // 100}xx"] += 1
        oracle.expect(len(body) < MAX_RESPONSE, "a response is not bounded", len(body))
        is_expected = code in (200, 201, 202) or 400 <= code < 500 or any(text in body for text in AS_KUBE_APISERVER)
        oracle.expect(is_expected, f"the response is HTTP {code}", (given, body[:500]))
        if code >= 400 and given.path.startswith("/api"):
            status = read(body)
            oracle.expect(status.get("kind") == "Status", "an error is not a Status", body[:300])
            oracle.expect(status.get("code") == code, "a Status has another code", (code, body[:300]))
            oracle.expect(len(body) < 30_000, "a Status is not bounded", len(body))

    async def _check_socket(self, raw: bytes, oracle: Oracle) -> None:
        """Send bytes on a connection; the server answers or closes it, and serves the next connection."""
        received = await self._exchange(raw, is_ended=True)
        if received:
            oracle.expect(received.startswith(b"HTTP/1.1 "), "an answer that is not HTTP/1.1", received[:200])
            code = received[9:12]
            oracle.counts[f"socket {code.decode('ascii', 'replace')}"] += 1
            oracle.expect(b"Traceback" not in received, "a traceback in a response", received[-300:])
            is_expected = not code.startswith(b"5") or code in (b"501", b"505")
            is_expected = is_expected or any(text in received for text in AS_KUBE_APISERVER)
            oracle.expect(is_expected, f"the response is HTTP {code!r}", (raw[:300], received[:300]))
        received = await self._exchange(
            b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", is_ended=False
        )
        oracle.expect(received.startswith(b"HTTP/1.1 200 "), "the server does not serve any more", received[:200])

    async def _exchange(self, data: bytes, *, is_ended: bool) -> bytes:
        received = bytearray()
        stream = await trio.open_tcp_stream("127.0.0.1", self._port)
        async with stream:
            with trio.move_on_after(0.3 if is_ended else 10):
                try:
                    await stream.send_all(data)
                    if is_ended:
                        await stream.send_eof()
                    while len(received) < MAX_RESPONSE and (part := await stream.receive_some()):
                        received += part
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass
        return bytes(received)


def _call(rng: random.Random) -> Call:
    choice = rng.random()
    if choice < 0.2:
        return _write(rng)
    if choice < 0.35:
        patch = _merge_patch(rng)
        return _patched(rng, "application/merge-patch+json", patch, lambda found: merge(BASE, found))
    if choice < 0.6:
        return _patched(rng, "application/json-patch+json", _json_patch(rng), lambda found: apply(BASE, found))
    if choice < 0.65:
        return Call("PATCH", f"{WIDGETS}/base", headers=(("Content-Type", TYPES[3]),), body=write(_merge_patch(rng)))
    template = rng.choice(QUERIES) if rng.random() < 0.7 else ""
    query = template.replace("{n}", rng.choice(NUMBERS)).replace("{s}", rng.choice(WORDS))
    path = PATHS[1] if rng.random() < 0.4 else rng.choice(PATHS)
    headers = (("Accept", rng.choice(ACCEPTS)), ("Content-Type", rng.choice(TYPES)))
    body = write(BASE) if rng.random() < 0.3 else rng.choice((b"", b"{}", b"null", b"\xff", write(deep(rng))))
    method = rng.choice(METHODS) if rng.random() < 0.5 else "GET"
    return Call(method, path, query, headers, body)


def _write(rng: random.Random) -> Call:
    """Create or replace an object."""
    made = json.loads(json.dumps(BASE))
    is_new = rng.random() < 0.6
    if is_new:
        made["metadata"]["name"] = "new"
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        mutate(rng, made)
    body = write(made)
    if rng.random() < 0.2:
        body = mutate_text(rng, body)
    method, path = ("POST", WIDGETS) if is_new else ("PUT", f"{WIDGETS}/base")
    return Call(method, path, headers=(("Content-Type", "application/json"),), body=body, spec=_spec_in(body))


def _spec_in(body: bytes) -> Any:
    try:
        found = read(body)
    except NotJSONError:
        return None
    return found.get("spec") if isinstance(found, dict) else None


def _patched(rng: random.Random, content_type: str, patch: Any, model: Any) -> Call:
    body = write(patch)
    if rng.random() < 0.1:
        body = mutate_text(rng, body)
    try:
        after = model(read(body))
        spec = after.get("spec") if isinstance(after, dict) else None
    except (NotJSONError, PatchError, RecursionError):
        spec = None
    return Call("PATCH", f"{WIDGETS}/base", headers=(("Content-Type", content_type),), body=body, spec=spec)


def _merge_patch(rng: random.Random) -> Any:
    patch: Any = {
        "spec": rng.choice(
            ({"size": 4}, {"parts": None}, {"key": {"a": None, "b": 1}}, {"new": {"x": [None]}}, None, 7, [])
        )
    }
    if rng.random() < 0.5:
        patch["metadata"] = rng.choice(
            ({"labels": {"a": "b"}}, {"name": "other"}, None, {"labels": None}, {"resourceVersion": "7"}, {"uid": "x"})
        )
    if rng.random() < 0.3:
        patch["spec"] = {"deep": deep(rng)}
    if rng.random() < 0.3:
        mutate(rng, patch)
    return patch


def _json_patch(rng: random.Random) -> Any:
    if rng.random() < 0.02:
        return _bomb(rng)
    pointers = (
        "/spec/size",
        "/spec/parts",
        "/spec/parts/0",
        "/spec/parts/-",
        "/spec/parts/1/list/2",
        "/spec/a~1b/~0c",
        "/spec",
        "/spec/new",
    )
    odd = (
        "",
        "/",
        "spec",
        "/metadata/name",
        "/spec/parts/00",
        "/spec/parts/+1",
        "/spec/parts/9",
        "/spec/~2",
        "/spec/parts/١",
        "/" * 3_000,
    )
    operations: list[Any] = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        operation: dict[str, Any] = {"op": rng.choice(("add", "remove", "replace", "move", "copy", "test"))}
        operation["path"] = rng.choice(pointers) if rng.random() < 0.85 else rng.choice(odd)
        if operation["op"] in ("move", "copy"):
            operation["from"] = rng.choice(pointers)
        else:
            operation["value"] = rng.choice((1, None, "x", {"a": [1]}, [], 3, {"name": "a"}, True, 1.0))
        operations.append(operation)
    if rng.random() < 0.2:
        mutate(rng, operations)
    return operations


def _bomb(rng: random.Random) -> Any:
    """Copies that double the document each time, or put it into itself."""
    times = rng.choice((5, 12, 16))
    if rng.random() < 0.5:
        return [{"op": "copy", "from": "/spec", "path": f"/spec/x{number}"} for number in range(times)]
    return [{"op": "add", "path": "/spec/x", "value": Raw(b'["' + b"y" * 50 + b'"]')}] + [
        {"op": "copy", "from": "/spec/x", "path": "/spec/x/-"} for number in range(times)
    ]


def _broken(rng: random.Random, data: bytes) -> bytes:
    """Break the bytes of a request."""
    match rng.randrange(9):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1:
            return data.replace(
                b"Content-Length: ",
                rng.choice((b"Content-Length: -", b"Content-Length: 9", b"Content-Length : ", b"X: ")),
            )
        case 2:
            return data.replace(b"Content-Length: ", b"Transfer-Encoding: chunked\r\nContent-Length: ")
        case 3:
            return data.replace(
                b"Host: 127.0.0.1",
                rng.choice((b"Host: evil.example", b"X: y", b"Host: a\r\nHost: b", b"Host: \xff", b"Host:")),
            )
        case 4:
            return data.replace(
                b" HTTP/1.1", rng.choice((b" HTTP/0.9", b" HTTP/1.0", b" HTTP/3.0", b"", b" HTTP/1.1 x", b"\xff"))
            )
        case 5:
            return data.replace(
                b"\r\n\r\n",
                b"\r\nUpgrade: "
                + rng.choice((b"h2c", b"websocket"))
                + b"\r\nConnection: Upgrade\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
                1,
            )
        case 6:
            return rng.choice(
                (
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                    b"\x16\x03\x01\x02\x00\x01",
                    b"\r\n\r\n",
                    b"\x00" * 99,
                    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000,
                )
            )
        case 7:
            return data + data
        case _:
            return mutate_text(rng, data)


def rounded(value: Any) -> Any:
    """Round numbers as JSON in Go does: one that is not an integer of 64 bits is a float."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value
