"""Random custom kinds and random edits, made with models and, beside them, as a JSON client makes them.

A schema is a class that is made at run time; the stored JSON may lack its fields, have others, nulls, and values of
wrong types.  Each edit is applied to the object with ``evolve`` and to a dict by assignment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import attrs
from hypothesis import strategies as st

from trioformer import Client
from trioformer.errors import DecodeError
from trioformer.models import (
    JSON,
    FrozenMap,
    KubernetesObject,
    Model,
    Quantity,
    ResourceInfo,
    Time,
    encode,
    from_dict,
    to_dict,
    unstructured_kind,
)
from trioformer.models.apiextensions_v1 import CustomResourceDefinition

RESOURCE = ResourceInfo(group="example.com", version="v1", kind="Record", plural="records", namespaced=True)
Plain = unstructured_kind(RESOURCE)
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = from_dict(
    CustomResourceDefinition,
    {
        "metadata": {"name": "records.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Record", "listKind": "RecordList", "plural": "records", "singular": "record"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING}}},
                }
            ],
        },
    },
)
"""The kind of all schemas: the server keeps what it receives."""

Object: TypeAlias = dict[str, Any]
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

scalars = st.none() | st.booleans() | st.sampled_from((0, 1, 2, 0.0, 1.0, 1.5, "", "a", "é"))
keys = st.sampled_from(("a", "b", "camelKey"))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=5
)
texts = st.sampled_from(("", "a", "é\n"))
moments = st.sampled_from(("2024-05-01T10:00:00Z", "2025-01-01T00:00:00Z"))


@attrs.frozen(kw_only=True)
class Box:
    """A part that is not a model."""

    size: int = 1
    hosts: tuple[str, ...] = ()
    note: str | None = None
    free: JSON = None


def _same(value: Any) -> Any:
    return value


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


class Twin(dict[str, Any]):
    """An object as the server sent it: a member that was null is null again when it is removed."""

    def __init__(self, members: Object) -> None:
        super().__init__({key: twin_of(value) for key, value in members.items()})
        self.nulls = {key for key, value in members.items() if value is None}
        self.edited: set[str] = set()


def twin_of(value: Any) -> Any:
    """Convert decoded JSON."""
    if isinstance(value, list):
        return [twin_of(item) for item in value]
    return Twin(value) if isinstance(value, dict) else value


def remove(twin: Object, key: str) -> None:
    """Remove a member."""
    if twin.get(key) is not None:
        del twin[key]
        if isinstance(twin, Twin) and key in twin.nulls:
            twin[key] = None


boxes = st.fixed_dictionaries({}, optional={"size": st.integers(0, 2), "free": values, "unknown": values})
alike_boxes = st.fixed_dictionaries({"size": st.integers(0, 1), "unknown": st.integers(0, 99)})


@attrs.frozen
class Leaf:
    """A type of fields that have no parts."""

    hint: Any
    """The hint."""
    defaults: tuple[Any, ...]
    """Defaults of which a class has one."""
    values: st.SearchStrategy[Any]
    """Its values in JSON."""
    to_python: Callable[[Any], Any] = _same
    """Converts a value to what a program gives."""


LEAVES = (
    Leaf(str, ("", "a"), texts),
    Leaf(str | None, (None,), texts),
    Leaf(int, (0, 1), st.integers(0, 2)),
    Leaf(int | None, (None,), st.integers(0, 2)),
    Leaf(bool, (False, True), st.booleans()),
    Leaf(bool | None, (None,), st.booleans()),
    Leaf(float | None, (None, 0.5), st.sampled_from((0.5, 1.5))),
    Leaf(int | str, (0, ""), st.sampled_from((0, 80, "", "http"))),
    Leaf(Quantity | None, (None,), st.sampled_from(("1", "1000m", "2Gi")), Quantity),
    Leaf(Time | None, (None,), moments, _moment),
    Leaf(JSON, (None,), values.filter(lambda value: value is not None)),
    Leaf(tuple[str, ...], ((),), st.lists(texts, max_size=2)),
    Leaf(Mapping[str, str], (FrozenMap(),), st.dictionaries(keys, texts, max_size=2)),
    Leaf(Mapping[str, JSON], (FrozenMap(),), st.dictionaries(keys, values, max_size=2)),
)


@attrs.frozen
class Member:
    """A field of a schema."""

    name: str
    shape: str
    """``leaf``, ``box``, ``boxes``, ``model``, ``optional``, ``list`` or ``map``; the last four are of models."""
    leaf: Leaf | None = None
    part: type[Model] | None = None

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return self.name.replace("_n", "N")


@attrs.frozen
class Schema:
    """A class, and what its fields are."""

    cls: type[Any]
    members: tuple[Member, ...]
    parts: Mapping[type[Model], Schema]


@st.composite
def schemas(draw: Draw, depth: int = 2) -> Schema:
    """Make a class of models with random fields."""
    members: list[Member] = []
    parts: dict[type[Model], Schema] = {}
    fields: dict[str, Any] = {}
    shapes = ("leaf", "leaf", "leaf", "box", "boxes", "model", "optional", "list", "map")
    for number in range(draw(st.integers(1, 4))):
        shape = draw(st.sampled_from(shapes if depth else shapes[:5]))
        member, default, hint = Member(f"field_n{number}", shape), None, None
        if shape == "leaf":
            leaf = draw(st.sampled_from(LEAVES))
            member, default, hint = attrs.evolve(member, leaf=leaf), draw(st.sampled_from(leaf.defaults)), leaf.hint
        elif shape == "box":
            default, hint = Box(), Box
        elif shape == "boxes":
            default, hint = (), tuple[Box, ...]
        else:
            part = draw(schemas(depth - 1))
            parts[part.cls] = part
            member = attrs.evolve(member, part=part.cls)
            default, hint = {
                "model": (part.cls(), part.cls),
                "optional": (None, part.cls | None),
                "list": ((), tuple[part.cls, ...]),
                "map": (FrozenMap(), Mapping[str, part.cls]),
            }[shape]
        members.append(member)
        fields[member.name] = attrs.field(default=default, type=hint)
    return Schema(_made("Part", Model, fields), tuple(members), parts)


def _made(name: str, base: type[Model], fields: Mapping[str, Any], **body: Any) -> type[Any]:
    return attrs.make_class(
        name, dict(fields), bases=(base,), class_body=body, frozen=True, slots=True, kw_only=True, eq=False, repr=False
    )


def kind_of(schema: Schema) -> type[KubernetesObject]:
    """Make the kind whose spec is of a schema."""
    spec = attrs.field(default=schema.cls(), type=schema.cls)
    return _made("Record", KubernetesObject, {"spec": spec}, __resource__=RESOURCE)


def stored(schema: Schema, draw: Draw) -> Object:
    """Draw the JSON of a part as another client may have written it."""
    found: Object = {}
    for member in schema.members:
        how = draw(st.sampled_from(("value", "value", "value", "absent", "null", "wrong")))
        if how == "null":
            found[member.key] = None
        elif how == "wrong":
            found[member.key] = draw(st.sampled_from(([[]], [5], {"a": [[]]}, True)))
        elif how == "value":
            found[member.key] = _stored_value(schema, member, draw)
    if draw(st.booleans()):
        found["unknown"] = draw(values)
    return dict(draw(st.permutations(sorted(found.items())))) if draw(st.booleans()) else found


def _stored_value(schema: Schema, member: Member, draw: Draw) -> Any:
    if member.leaf is not None:
        return draw(member.leaf.values)
    if member.part is None:
        return draw(
            boxes
            if member.shape == "box"
            else (st.lists(boxes, max_size=3) | st.lists(alike_boxes, min_size=2, max_size=4))
        )
    part = schema.parts[member.part]
    if member.shape == "list":
        return [stored(part, draw) for _ in range(draw(st.integers(0, 2)))]
    if member.shape == "map":
        return {draw(keys): stored(part, draw) for _ in range(draw(st.integers(0, 2)))}
    return stored(part, draw)


def edit(schema: Schema, model: Any, twin: Object, draw: Draw) -> Any:
    """Change one field of a part, in the model and in its JSON; returns the changed model."""
    member = draw(st.sampled_from(schema.members))
    if draw(st.booleans()):
        read_some(schema, model, draw)
    old: Any = twin.get(member.key)
    if member.leaf is None:
        try:
            value = getattr(model, member.name)
        except DecodeError:
            return _replace(schema, member, model, twin, draw)
        if member.shape == "boxes":
            return model.evolve(**{member.name: _edit_boxes(member, value, twin, draw)})
        if member.part is None and value is not None:
            return model.evolve(**{member.name: _edit_box(member, value, twin, draw)})
        if member.part is not None and draw(st.integers(0, 3)):
            part = schema.parts[member.part]
            if member.shape == "list" and value:
                index = draw(st.integers(0, len(value) - 1))
                if isinstance(old[index], dict):
                    items = list(value)
                    items[index] = edit(part, items[index], old[index], draw)
                    if draw(st.booleans()):
                        items.reverse()
                        old.reverse()
                    return model.evolve(**{member.name: items})
            elif member.shape == "map" and value:
                key = draw(st.sampled_from(sorted(value)))
                if isinstance(old[key], dict):
                    return model.evolve(**{member.name: {**value, key: edit(part, value[key], old[key], draw)}})
            elif member.shape in ("model", "optional") and value is not None and (old is None or isinstance(old, dict)):
                twin[member.key] = old = {} if old is None else old
                return model.evolve(**{member.name: edit(part, value, old, draw)})
    return _replace(schema, member, model, twin, draw)


def _replace(schema: Schema, member: Member, model: Any, twin: Object, draw: Draw) -> Any:
    """Give a field a new value, or None."""
    if member.shape not in ("box", "boxes") and draw(st.integers(0, 4)) == 0:
        remove(twin, member.key)
        return model.evolve(**{member.name: None})
    value, found = _new_value(schema, member, draw)
    twin[member.key] = found
    return model.evolve(**{member.name: value})


def _new_value(schema: Schema, member: Member, draw: Draw) -> tuple[Any, Any]:
    if member.leaf is not None:
        found = draw(member.leaf.values)
        return member.leaf.to_python(found), found
    if member.part is None:
        pair = Box(size=7), {"size": 7, "hosts": []}
        return pair if member.shape == "box" else ((pair[0],), [pair[1]])
    part = schema.parts[member.part]
    if member.shape == "list":
        pairs = [new(part, draw) for _ in range(draw(st.integers(0, 2)))]
        return [value for value, _ in pairs], [found for _, found in pairs]
    if member.shape == "map":
        named = {draw(keys): new(part, draw) for _ in range(draw(st.integers(0, 2)))}
        return {key: value for key, (value, _) in named.items()}, {key: found for key, (_, found) in named.items()}
    return new(part, draw)


def new(schema: Schema, draw: Draw) -> tuple[Any, Object]:
    """Make a new part with some of its fields, and its JSON."""
    given: Object = {}
    twin: Object = {}
    for member in schema.members:
        if draw(st.booleans()):
            given[member.name], twin[member.key] = _new_value(schema, member, draw)
    return schema.cls(**given), twin


def _edit_box(member: Member, box: Box, twin: Object, draw: Draw) -> Box:
    """Change one field of a part that is not a model: a default that is absent stays absent.

    It is changed once only: back at its default, the field would be absent again, as it was received.
    """
    if isinstance(twin, Twin):
        if member.key in twin.edited:
            return box
        twin.edited.add(member.key)
    if twin.get(member.key) is None:
        twin[member.key] = {"size": 1, "hosts": []}
    found: Object = twin[member.key]
    name, default, choices = draw(
        st.sampled_from(
            (
                ("size", 1, st.integers(0, 2)),
                ("hosts", [], st.lists(texts, max_size=2)),
                ("note", None, st.none() | texts),
                ("free", None, values),
            )
        )
    )
    value: Any = draw(choices)
    if value is None:
        remove(found, name)
    elif not (found.get(name) is None and value == default and type(value) is type(default)):
        found[name] = value
    return attrs.evolve(box, **{name: tuple(value) if name == "hosts" else value})


def _edit_boxes(member: Member, value: tuple[Box, ...], twin: Object, draw: Draw) -> tuple[Box, ...]:
    """Add, replace or remove one of several parts that are not models, which may differ only in unknown members.

    Only one edit: after two, nobody can tell which of those that are alike is left.
    """
    if isinstance(twin, Twin):
        if member.key in twin.edited:
            return value
        twin.edited.add(member.key)
    if twin.get(member.key) is None:
        twin[member.key] = []
    found: list[Any] = twin[member.key]
    changed = list(value)
    index = draw(st.integers(0, len(changed)))
    end = index + draw(st.integers(0, 1))
    new_ones = 1 if draw(st.booleans()) or (value[index:end] and value.count(value[index]) > 1) else 0
    changed[index:end] = [Box(size=7)] * new_ones
    found[index:end] = [{"size": 7, "hosts": []}] * new_ones
    return tuple(changed)


def read_some(schema: Schema, model: Any, draw: Draw) -> None:
    """Read some fields, which must not decide what is written."""
    for member in draw(st.lists(st.sampled_from(schema.members), max_size=3)):
        try:
            getattr(model, member.name)
        except DecodeError:
            continue


def text_of(value: object) -> str:
    """Return the canonical text of JSON, in which 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def check_equality(one: Model, other: Model) -> None:
    """Check that two objects are equal exactly if their JSON is."""
    is_same = text_of(to_dict(one)) == text_of(to_dict(other))
    assert (one == other) is is_same
    assert not is_same or hash(one) == hash(other)


async def read_modify_write(client: Client, name: str, draw: Draw) -> None:
    """Store an object twice, change one with models and the other as JSON, and compare what the server has then."""
    schema = draw(schemas())
    records, plain = client.api(kind_of(schema), namespace="default"), client.api(Plain, namespace="default")
    spec, labels = stored(schema, draw), draw(st.dictionaries(keys, st.sampled_from(("", "x")), max_size=2))
    for each in (name, f"{name}-twin"):
        await plain.create(Plain.of({"metadata": {"name": each, "labels": labels}, "spec": spec}))
    first: Any = await records.get(name)
    twin = twin_of(to_dict(await plain.get(f"{name}-twin")))
    changed: Any = first
    for _ in range(draw(st.integers(1, 4))):
        changed = changed.evolve(spec=edit(schema, changed.spec, twin["spec"], draw))
        assert text_of(json.loads(encode(changed.spec))) == text_of(twin["spec"])
    if draw(st.booleans()):
        labels = draw(st.dictionaries(keys, st.sampled_from(("", "x")), max_size=2))
        changed = changed.evolve(metadata=changed.metadata.evolve(labels=labels))
        twin["metadata"] |= {"labels": labels}
        if not labels:
            del twin["metadata"]["labels"]
    check_equality(first.spec, changed.spec)
    check_equality(first, changed)
    if draw(st.booleans()):
        await records.replace(changed)
        await plain.replace(Plain.of(twin))
    else:
        await records.patch(name, {"spec": to_dict(changed.spec)})
        await plain.patch(f"{name}-twin", {"spec": twin["spec"]})
    assert text_of(_content(await plain.get(name))) == text_of(_content(await plain.get(f"{name}-twin")))


def _content(obj: KubernetesObject) -> Object:
    found = to_dict(obj)
    metadata = found["metadata"]
    return {"spec": found.get("spec"), **{key: metadata.get(key) for key in ("labels", "generation")}}
