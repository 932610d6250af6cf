"""Lists, watches and errors in protobuf: objects beside broken ones."""

from __future__ import annotations

import random
from typing import Any

import attrs

from trioformer.client import Undecodable
from trioformer.models import KubernetesObject
from trioformer.models._internal import envelope_of, event_of, object_of, open_envelope, read_level, tagged
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import Pod, Secret

from .http_memory import ClientFuzzer, Reply, cut
from .items import check_undecodable, exercise
from .objects import metadata, new_object, new_status
from .oracle import Oracle
from .secrets import CONTENT

PROTOBUF = b"application/vnd.kubernetes.protobuf"
HEADERS = ((b"content-type", PROTOBUF),)
KINDS: dict[str, type[KubernetesObject]] = {
    "Pod": Pod,
    "Secret": Secret,
    "CustomResourceDefinition": CustomResourceDefinition,
}
VERSIONS = {"CustomResourceDefinition": "apiextensions.k8s.io/v1"}
SCHEMA = {
    "type": "object",
    "default": {"a": CONTENT},
    "maximum": 1.5,
    "required": ["a"],
    "properties": {"a": {"items": {"type": "string"}, "additionalProperties": True, "enum": [1, "x"]}},
}


@attrs.frozen
class Exchange:
    """A response, and what asks for it."""

    kind: str
    request: str
    """``list``, ``watch`` or ``get``."""
    items: tuple[tuple[bytes, bool], ...]
    """The messages of the objects, and whether each is good."""
    reply: Reply
    is_changed: bool
    """Whether something around the objects was changed."""


class Messages(ClientFuzzer[Exchange]):
    """Lists or watches once, or gets an error."""

    name = "messages"

    def generate(self, rng: random.Random) -> Exchange:
        kind = rng.choice(list(KINDS))
        request = rng.choice(("list", "list", "watch", "watch", "get"))
        if request == "get":
            code = rng.choice((404, 409, 410, 500))
            body = _status(rng, code, "NotFound")
            body = mutate_bytes(rng, body) if rng.random() < 0.7 else body
            return Exchange(kind, request, (), Reply(code, HEADERS, cut(rng, body)), is_changed=True)
        chance = rng.choice((0.0, 0.3, 0.6, 1.0))
        items = tuple(_item(rng, kind, number, chance) for number in range(rng.choice((0, 1, 2, 4))))
        version = VERSIONS.get(kind, "v1")
        if request == "list":
            content = tagged(1, tagged(2, b"77")) + b"".join(tagged(2, data) for data, _ in items)
            body = envelope_of(version, f"{kind}List", content)
        else:
            body = b"".join(
                _framed(event_of(rng.choice(("ADDED", "MODIFIED", "DELETED")), envelope_of(version, kind, data)))
                for data, _ in items
            )
        is_changed = rng.random() < 0.3
        if is_changed:
            body = _changed(rng, request, body)
        return Exchange(kind, request, items, Reply(200, HEADERS, cut(rng, body)), is_changed)

    async def check(self, given: Exchange, oracle: Oracle) -> None:
        self._server.respond = lambda request: given.reply
        api = self._client.api(KINDS[given.kind], None if given.kind in VERSIONS else "default")
        reported: list[Undecodable] = []
        found: list[Any] = []

        async def watch() -> None:
            async with api.watch(on_undecodable=reported.append) as stream:
                async for event in stream:
                    found.append(event.object)  # those before an error count

        if given.request == "watch":
            ended = await oracle.call(watch)
        elif given.request == "list":
            ended = await oracle.call(lambda: api.list(on_undecodable=reported.append))
            found += [] if isinstance(ended, Exception) else ended
        else:
            ended = await oracle.call(lambda: api.get("web-1"))
            oracle.expect(isinstance(ended, Exception), "an error response is not an error")
        check_undecodable(reported, oracle)
        if not given.is_changed:
            oracle.expect(not isinstance(ended, Exception), "objects are refused because of one", ended)
            oracle.expect(len(found) + len(reported) == len(given.items), "an object is neither delivered nor reported")
            good = [data for data, is_good in given.items if is_good]
            oracle.expect(_contains(found, good), "a good object beside bad ones is not delivered", (found, good))
        for obj in found:
            exercise(obj, oracle)


def _contains(found: list[KubernetesObject], good: list[bytes]) -> bool:
    """Whether the good objects were delivered in their order."""
    rest = iter(found)
    return all(any(obj._origin.data == data for obj in rest) for data in good)


def _framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def _message(obj: dict[str, Any]) -> bytes:
    found = object_of(obj)
    assert found is not None
    return found


def _status(rng: random.Random, code: int, reason: str) -> bytes:
    return _message(new_status(rng, code, reason))


def _item(rng: random.Random, kind: str, number: int, chance: float) -> tuple[bytes, bool]:
    if kind in VERSIONS:
        version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": SCHEMA}}
        made: dict[str, Any] = {"metadata": metadata(rng, number), "spec": {"group": "x.io", "versions": [version]}}
        made["metadata"].pop("namespace")
    else:
        made = new_object(rng, kind, number)
    data = open_envelope(_message({**made, "kind": kind, "apiVersion": VERSIONS.get(kind, "v1")}))[2]
    if rng.random() >= chance:
        return data, True
    return (_mutate_below(rng, data) if rng.random() < 0.7 else mutate_bytes(rng, data)), False


def _mutate_below(rng: random.Random, data: bytes) -> bytes:
    """Change one value of a message, at some level, so that the lengths of the levels above fit."""
    try:
        fields = read_level(data)
    except ValueError:
        return mutate_bytes(rng, data)
    if not fields or rng.random() < 0.2:
        return mutate_bytes(rng, data)
    at = rng.randrange(len(fields))
    parts = []
    for number, (tag, value) in enumerate(fields):
        if isinstance(value, int):
            wire = bytes((tag << 3 & 0x7F, value & 0x7F))
            parts.append(wire if number != at else tagged(tag, b"x"))
        else:
            parts.append(tagged(tag, value if number != at else _mutate_below(rng, value)))
    return b"".join(parts)


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change bytes: lengths, tags, wire types and content."""
    at = rng.randrange(len(data) + 1)
    match rng.randrange(9):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes((rng.randrange(256),)) + data[at + 1 :]
        case 2:
            return data[:at] + b"\xff" * rng.choice((1, 9, 10, 11)) + b"\x01" + data[at:]
        case 3:
            return data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:]
        case 4:
            return data + bytes((rng.choice((0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x08, 0x09)),)) + rng.randbytes(3)
        case 5:
            nested = b""
            number = rng.choice((1, 2, 28))
            for _ in range(rng.choice((100, 1_000, 3_000))):
                nested = tagged(number, nested)
            return tagged(rng.choice((1, 2, 3)), nested) + data
        case 6:
            return data[:at] + data[at + rng.randrange(1, 5) :]
        case 7:
            return data + data[:at]
        case _:
            return b""


def _changed(rng: random.Random, request: str, body: bytes) -> bytes:
    match rng.randrange(5):
        case 0:
            status = _status(rng, 403, "Forbidden")
            return status if request == "list" else body + _framed(tagged(1, b"ERROR") + tagged(2, tagged(1, status)))
        case 1:
            return rng.choice((b"", b"{}", b"<html>x</html>", b"\0" * 30, b"k8s\0", b"\x7f\xff\xff\xff"))
        case 2:
            return _framed(mutate_bytes(rng, body[4:])) if request == "watch" else body[:-1]
        case _:
            return mutate_bytes(rng, body)
