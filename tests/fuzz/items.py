"""Objects of lists and watches: how they are made and broken, and what plain ``json`` says about each."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any, Literal

import attrs

from trioformer.client import Undecodable
from trioformer.errors import DecodeError
from trioformer.models import KubernetesObject, Model, encode, json_equal, to_dict
from trioformer.models.core_v1 import Secret

from .json_text import JSON, NotJSONError, Twice, mutate, mutate_text, nested, read, write
from .objects import new_object
from .oracle import Oracle

IDENTITIES: tuple[tuple[str, JSON], ...] = (
    ("name", ""),
    ("name", "a/b"),
    ("name", "../../api/v1/secrets/x"),
    ("name", "."),
    ("name", "a%2Fb"),
    ("name", "web-0\x00"),
    ("name", "\x1b[2Jweb"),
    ("name", 7),
    ("namespace", "kube-system"),
    ("namespace", ""),
    ("namespace", "a/b"),
    ("namespace", None),
    ("namespace", ["default"]),
    ("resourceVersion", ""),
    ("resourceVersion", 7),
    ("resourceVersion", "9" * 5_000),
    ("resourceVersion", "-1"),
    ("resourceVersion", "1e5"),
    ("resourceVersion", "٣"),
    ("uid", 7),
    ("generation", 10**400),
    ("creationTimestamp", "9999999-01-01T00:00:00Z"),
    ("creationTimestamp", "0000-00-00T00:00:00Z"),
    ("deletionTimestamp", 1e300),
    ("labels", {"a": 1}),
    ("annotations", ["x"]),
    ("managedFields", {"": []}),
)


@attrs.frozen
class Item:
    """The bytes of an object, and whether something was changed in it."""

    data: bytes
    is_good: bool


@attrs.frozen
class Identity:
    """What a cache needs to know of an object."""

    namespace: str
    name: str
    version: str


def new_item(rng: random.Random, kind: str, number: int, *, chance: float, typed: bool | None = None) -> Item:
    """Make an object, broken with this chance."""
    made = new_object(rng, kind, number, typed=typed)
    if rng.random() >= chance:
        return Item(write(made), True)
    choice = rng.random()
    if choice < 0.3:
        field, value = rng.choice(IDENTITIES)
        made["metadata"][field] = copy.deepcopy(value)
    elif choice < 0.35:
        made["metadata"] = Twice("name", "other", made["metadata"]["name"], made["metadata"])
    elif choice < 0.4:
        made[rng.choice(("spec", "status", "novel", "metadata"))] = nested(
            rng.choice((600, 1_100, 10_100)), b'{"a":', b"}", b"1"
        )
    elif choice < 0.8:
        for _ in range(rng.choice((1, 1, 2, 4))):
            mutate(rng, made)
    else:
        return Item(mutate_text(rng, write(made)).replace(b"\n", b" "), False)
    return Item(write(made), False)


def identity(data: bytes, *, namespace: str | None) -> Identity | None:
    """Read the identity of an object with plain ``json``; None if it must not be delivered.

    Raises:
        NotJSONError: Plain ``json`` cannot say: it is not JSON, or is too deep for Python.
    """
    return identity_in(read(data), namespace=namespace)


def identity_in(found: JSON, *, namespace: str | None) -> Identity | None:
    """As :func:`identity`, of what was read already."""
    meta = found.get("metadata") if isinstance(found, dict) else None
    if not isinstance(meta, dict):
        return None
    texts = [meta.get(field) for field in ("namespace", "name", "resourceVersion")]
    if not all(text is None or isinstance(text, str) for text in texts):
        return None
    its_namespace, name, version = (text or "" for text in texts)
    if not name:
        return None
    return Identity(its_namespace, name, version)


def identity_of(obj: KubernetesObject) -> Identity:
    meta = obj.metadata
    return Identity(meta.namespace or "", meta.name or "", meta.resource_version or "")


def check_delivered(
    delivered: list[Identity], given: list[Item], oracle: Oracle, *, namespace: str | None, stops_at_bad: bool = False
) -> None:
    """Check that all good objects were delivered in their order, and of the others only what plain ``json`` reads.

    Args:
        delivered: What the library returned.
        given: What the server sent.
        namespace: The namespace that was asked for; None for all.
        stops_at_bad: Whether the rest may be missing after a bad one.
    """
    wanted = [_expected(item, namespace=namespace) for item in given]
    missing = [one for item, one in zip(given, wanted, strict=True) if item.is_good and one not in delivered]
    oracle.expect(stops_at_bad or not missing, "a good object beside bad ones is not delivered", (missing, delivered))
    fits = _fits(delivered, list(zip(given, wanted, strict=True)), stops_at_bad=stops_at_bad)
    oracle.expect(fits, "what is delivered is not what plain json reads", (delivered, wanted))


def _expected(item: Item, *, namespace: str | None) -> Identity | Literal["unknown"] | None:
    try:
        return identity(item.data, namespace=namespace)
    except NotJSONError:
        # Such as one with bytes in its spec that are not UTF-8: they are decoded when they are read.
        return "unknown"


def _fits(delivered: list[Identity], rest: list[tuple[Item, Any]], *, stops_at_bad: bool) -> bool:
    """Whether the good objects, and any of the others, are what was delivered, in this order."""
    if not rest:
        return not delivered
    (item, wanted), *others = rest
    if not delivered and stops_at_bad:
        return True
    is_next = bool(delivered) and (delivered[0] == wanted or (wanted == "unknown" and _names(item, delivered[0])))
    if is_next and _fits(delivered[1:], others, stops_at_bad=stops_at_bad):
        return True
    return not item.is_good and _fits(delivered, others, stops_at_bad=stops_at_bad)


def _names(item: Item, found: Identity) -> bool:
    return found.name.encode("utf-8", "replace") in item.data


def check_undecodable(reported: list[Undecodable], oracle: Oracle) -> None:
    """Check how objects are reported that cannot be decoded."""
    for each in reported:
        oracle.error(each.error)
        oracle.secrets(repr(each), "repr of an Undecodable")


def exercise(obj: Model, oracle: Oracle) -> None:
    """Read, compare, change and encode an object; only a DecodeError may come of it."""
    documented = (DecodeError,)
    if isinstance(obj, Secret):
        shown = oracle.call_sync(lambda: repr(obj), documented)
        oracle.secrets(str(shown), "repr of a Secret")
    oracle.call_sync(lambda: to_dict(obj), documented)
    oracle.call_sync(lambda: (repr(obj), hash(obj), json_equal(obj, obj)), documented)
    oracle.call_sync(lambda: _walk(obj, 200), documented)
    oracle.call_sync(lambda: pickle.dumps(obj), documented)
    changed = oracle.call_sync(lambda: _changed(obj), documented)
    if isinstance(changed, bytes):
        try:
            before, after = read(encode(obj)), read(changed)
        except NotJSONError:
            return
        before["metadata"].pop("labels", None)
        after["metadata"].pop("labels", None)
        oracle.expect(before == after, "an evolved object has changed elsewhere", (before, after))


def _changed(obj: Any) -> bytes:
    return encode(obj.evolve(metadata=obj.metadata.evolve(labels={"changed": "yes"})))


def _walk(value: Any, left: int) -> int:
    """Read every field below a value, up to a number of them."""
    if left <= 0:
        return 0
    if isinstance(value, Model):
        for field in attrs.fields(type(value)):
            if not field.name.startswith("_"):
                left = _walk(getattr(value, field.name), left - 1)
    elif isinstance(value, tuple):
        for each in value:
            left = _walk(each, left - 1)
    return left
