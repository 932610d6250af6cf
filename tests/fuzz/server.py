"""Requests to the embedded API server: changed objects of every kind, and patches of every type.

A refused request changes nothing.  After an accepted one, every object can be read in every encoding, and a watch
delivers the change.
"""

from __future__ import annotations

import copy
import functools
import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs
import trio
import yaml

from tests.e2e.manifest_set import BUILTIN, custom_kinds
from tests.support.server_errors import is_expected
from trioformer._asgi import Message
from trioformer.models._internal import object_of
from trioformer.testing import APIServer
from trioformer.testing._storage._kinds import ServedKind

from .engine import Fuzzer
from .json_text import deep, mutate, mutate_text, odd_value, places, write
from .oracle import Oracle

JSON_TYPE, PROTOBUF, YAML = "application/json", "application/vnd.kubernetes.protobuf", "application/yaml"
TABLE, METADATA = (f"application/json;as={each};g=meta.k8s.io;v=v1" for each in ("Table", "PartialObjectMetadata"))
PATCHES = tuple(f"application/{each}" for each in ("merge-patch+json", "json-patch+json", "strategic-merge-patch+json"))
APPLY = "application/apply-patch+yaml"
SUFFIXES = ("", "", "", "", "/status", "/status", "/scale", "/binding", "/eviction", "/token", "/finalize", "/approval",
            "/resize", "/ephemeralcontainers", "/log", "/unknown")  # fmt: skip
QUERIES = ("", "", "", "dryRun=All", "fieldValidation=Strict", "fieldManager=b", "force=true", "resourceVersion=1")
REQUESTS = 10
"""The requests of one input, which are sent to one server."""


@attrs.frozen
class Request:
    """A request for an object, or for the collection if there is no name."""

    method: str
    suffix: str
    query: str
    content_type: str
    body: bytes


@attrs.frozen
class Requests:
    """An object, and the requests that follow its creation."""

    kind: tuple[str, str]
    obj: dict[str, Any]
    following: tuple[Request, ...]


@functools.cache
def samples() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the definitions of custom kinds, and an object of each kind."""
    definitions, objects = custom_kinds()
    rich = Path(BUILTIN).with_name("contract") / "rich_objects.yaml"
    for path in (*sorted(BUILTIN.iterdir()), rich):
        objects += [json.loads(json.dumps(each, default=str)) for each in yaml.safe_load_all(path.read_text()) if each]
    return definitions, objects


class Server(Fuzzer[Requests]):
    """Creates an object, and sends requests that change it."""

    name = "server"

    def generate(self, rng: random.Random) -> Requests:
        obj = rng.choice(samples()[1])
        following = tuple(_request(rng, obj) for _ in range(REQUESTS - 1))
        return Requests((obj["apiVersion"], obj["kind"]), obj, following)

    async def check(self, given: Requests, oracle: Oracle) -> None:
        server = APIServer()
        for definition in samples()[0]:
            server.create(definition)
        served = server._kinds.find_kind(*given.kind)
        assert served is not None
        namespace = given.obj["metadata"].get("namespace", "default") if served.info.namespaced else None
        if namespace is not None and namespace != "default":
            server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        collection = served.info.path(namespace=namespace)
        first = Request("POST", "", "", JSON_TYPE, json.dumps(given.obj).encode())
        for request in (first, *given.following):
            is_create = request.method == "POST" and not request.suffix
            path = collection if is_create else f"{collection}/{given.obj['metadata']['name']}{request.suffix}"
            await self._check(server, served, namespace, path, request, oracle)

    async def _check(
        self, server: APIServer, served: ServedKind, namespace: str | None, path: str, request: Request, oracle: Oracle
    ) -> None:
        collection = served.info.path(namespace=namespace)
        revision = server.statistics().revision
        what = (request.method, path, request.query, request.content_type, request.body[:600])
        if await send(server, path, request, oracle):
            return
        changes = [each for each in server._storage.changes(served.resource) if each.revision > revision]
        if not changes or server._kinds.find_kind(served.info.api_version, served.info.kind) is None:
            return
        for accept in (JSON_TYPE, YAML, TABLE, *([PROTOBUF] if served.is_builtin else [])):
            for read in (
                collection,
                *(f"{collection}/{key.rpartition('/')[2]}" for key in _keys(server, served, namespace)),
            ):
                code, kind, data = await ask(server, "GET", read, accept=accept)
                oracle.expect(code == 200, f"an object cannot be read in {accept}", (*what, read, data))
                _decode(kind, data)
            if accept != YAML:
                query = urlencode({"watch": 1, "resourceVersion": revision, "timeoutSeconds": 1})
                code, kind, data = await ask(server, "GET", collection, query, accept=accept)
                oracle.expect(code == 200, "a watch is refused", (*what, data))
                events = len(data.splitlines()) if PROTOBUF not in kind else _frames(data)
                oracle.expect(events == len(changes), "a watch does not deliver the change", (*what, data, accept))


async def send(server: APIServer, path: str, request: Request, oracle: Oracle) -> bool:
    """Send a request that must not fail in the server; returns whether the response says that it changes nothing."""
    before, revision = _state(server), server.statistics().revision
    what = (request.method, path, request.query, request.content_type, request.body[:600])
    code, _, answer = await ask(server, request.method, path, request.query, request.content_type, request.body)
    oracle.counts["returned" if code < 300 else "refused"] += 1
    oracle.expect(code < 500 or is_expected(json.loads(answer)), f"{code} for {request.method}", (*what, answer))
    # A delete may have options in its body, and then the query does not count.
    changes_nothing = code >= 300 or ("dryRun=All" in request.query and request.method != "DELETE")
    if changes_nothing:
        oracle.expect(_state(server) == before, "a refused request or a dry run changes something", (*what, code))
        oracle.expect(server.statistics().revision == revision, "the revision has changed", what)
    return changes_nothing


def _state(server: APIServer) -> dict[str, dict[str, tuple[int, bytes]]]:
    return {
        resource: {key: (stored.revision, stored.body) for key, stored in objects.items()}
        for resource, objects in server._storage.objects().items()
        if objects
    }


def _keys(server: APIServer, served: ServedKind, namespace: str | None) -> list[str]:
    keys = server._storage.objects().get(served.resource, ())
    return [key for key in keys if key.rpartition("/")[0] == (namespace or "")][-2:]


def _decode(kind: str, data: bytes) -> None:
    if PROTOBUF in kind:
        assert data.startswith(b"k8s\x00")
    elif YAML in kind:
        assert isinstance(yaml.load(data, yaml.CSafeLoader), dict)
    else:
        assert isinstance(json.loads(data), dict)


def _frames(data: bytes) -> int:
    count = 0
    while data:
        data = data[4 + int.from_bytes(data[:4], "big") :]
        count += 1
    return count


async def ask(
    server: APIServer,
    method: str,
    path: str,
    query: str = "",
    content_type: str = JSON_TYPE,
    body: bytes = b"",
    *,
    accept: str = JSON_TYPE,
) -> tuple[int, str, bytes]:
    """Send a request, and return the code, the content type and the body of the response."""
    headers = [(b"accept", accept.encode()), (b"content-type", content_type.encode())]
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers}
    received = iter([{"type": "http.request", "body": body}])
    sent: list[Message] = []

    async def receive() -> Message:
        message = next(received, None)
        return await trio.sleep_forever() if message is None else message

    async def send(message: Message) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    await server._app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"].decode(), b"".join(m["body"] for m in sent[1:])


def _request(rng: random.Random, obj: dict[str, Any]) -> Request:
    method = rng.choice(("PUT", "PUT", "PATCH", "PATCH", "PATCH", "PATCH", "PATCH", "POST", "DELETE"))
    suffix, query = rng.choice(SUFFIXES), rng.choice(QUERIES)
    changed = copy.deepcopy(obj)
    for _ in range(rng.choice((0, 0, 1, 1, 3))):
        mutate(rng, changed)
    if method == "PATCH":
        content_type = rng.choice((*PATCHES, *PATCHES, APPLY, APPLY, "application/apply-patch+cbor"))
        value: Any = changed
        if content_type == PATCHES[1]:
            value = [_operation(rng, obj) for _ in range(rng.choice((1, 1, 2, 3)))]
        else:
            if content_type == APPLY:
                query = f"fieldManager=a&{query}"
            for container, key in rng.sample(at := places(value), min(len(at), rng.choice((0, 2, 5)))):
                if isinstance(container, dict) and key in container:
                    if content_type == PATCHES[2] and rng.random() < 0.5:
                        directive = rng.choice(
                            ("$patch", f"$setElementOrder/{key}", f"$deleteFromPrimitiveList/{key}", "$retainKeys")
                        )
                        container[directive] = rng.choice(
                            ("delete", "replace", "merge", [key], [{"name": "a"}], odd_value(rng))
                        )
                    else:
                        del container[key]
    else:
        content_type = rng.choice((JSON_TYPE, JSON_TYPE, YAML, PROTOBUF))
        value = changed
        if method == "POST" and not suffix and isinstance(value.get("metadata"), dict):
            value["metadata"]["name"] = rng.choice(("b", "c", obj["metadata"]["name"]))
        if method == "DELETE" or suffix in ("/eviction", "/binding", "/token", "/scale"):
            value = {"metadata": {"name": obj["metadata"]["name"]}, "spec": {"replicas": 2, "audiences": ["a"]}, "target": {"name": "n"}, "propagationPolicy": rng.choice(("Orphan", "Foreground", "Background")), "gracePeriodSeconds": 0}  # fmt: skip
            for _ in range(rng.choice((0, 1, 2))):
                mutate(rng, value)
    body = write(value)
    try:
        if content_type == PROTOBUF:
            body = object_of(json.loads(body)) or b"k8s\x00"
        elif content_type == YAML:
            body = yaml.safe_dump(json.loads(body)).encode()
    except Exception:  # noqa: BLE001  # the changed object cannot be written so
        body = b"k8s\x00" + body if content_type == PROTOBUF else body
    return Request(method, suffix, query, content_type, mutate_text(rng, body) if rng.random() < 0.1 else body)


def _operation(rng: random.Random, obj: dict[str, Any]) -> dict[str, Any]:
    paths = [_pointer(obj, rng) for _ in range(2)]
    made = {
        "op": rng.choice(("add", "remove", "replace", "test", "copy", "move", "x")),
        "path": paths[0],
        "from": paths[1],
    }
    made["value"] = rng.choice((odd_value, deep, lambda _: {}, lambda _: "a"))(rng)
    if rng.random() < 0.05:
        mutate(rng, made)
    return made


def _pointer(value: Any, rng: random.Random) -> str:
    pointer = ""
    while isinstance(value, dict | list) and value and rng.random() < 0.8:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value = value[key]
        pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
    return pointer + rng.choice(("", "", "", "/-", "/x", "/0", "/01"))
