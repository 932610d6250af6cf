"""Random classes of custom resources, with values that they allow and values that they do not."""

from __future__ import annotations

import enum
import itertools
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import attrs
from hypothesis import strategies as st

from trioformer.crds import Schema, custom_resource, resource_part
from trioformer.models import JSON, KubernetesObject, Model, ObjectMeta, Quantity, Time

numbers = itertools.count()


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Plan:
    """A type of field."""

    hint: Any
    values: st.SearchStrategy[Any]
    """Values that it allows, as a program gives them."""
    wrong: tuple[object, ...] = ()
    """Values that it does not allow, as JSON."""
    is_scalar: bool = True


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
MIXED = st.integers(-5, 5) | TEXT


@st.composite
def texts(draw: st.DrawFn) -> Plan:
    least, size = draw(st.integers(0, 3)), draw(st.integers(0, 5))
    shortest = ("a" * (least - 1),) if least else ()
    hint = Annotated[str, Schema(min_length=least, max_length=least + size)]
    values = st.text(st.characters(exclude_categories=("Cs",)), min_size=least, max_size=least + size)
    return Plan(hint, values, (*shortest, "ä" * (least + size + 1), 1, True))


@st.composite
def integers(draw: st.DrawFn) -> Plan:
    least, span = draw(st.integers(-(2**40), 2**40)), draw(st.integers(0, 1000))
    hint = Annotated[int, Schema(minimum=least, maximum=least + span)]
    return Plan(hint, st.integers(least, least + span), (least - 1, least + span + 1, "1", 1.5))


@st.composite
def multiples(draw: st.DrawFn) -> Plan:
    step = draw(st.integers(2, 9))
    return Plan(Annotated[int, Schema(multiple_of=step)], st.integers(-50, 50).map(lambda n: n * step), (1,))


@st.composite
def floats(draw: st.DrawFn) -> Plan:
    least = draw(st.integers(-100, 100))
    hint = Annotated[float, Schema(minimum=least, maximum=least + 10, exclusive_minimum=True)]
    return Plan(hint, st.floats(least, least + 10, exclude_min=True), (least, least + 10.5, "1"))


PLAIN = [
    Plan(Annotated[str, Schema(pattern="^[a-c]+$")], st.text("abc", min_size=1, max_size=5), ("d", "")),
    Plan(int, st.integers(-(2**63), 2**63 - 1), ("1", 0.5, [1])),
    Plan(float, st.floats(allow_nan=False, allow_infinity=False), ("1", True)),
    Plan(bool, st.booleans(), (0, "true")),
    Plan(bytes, st.binary(max_size=8), ("ä", 1)),
    Plan(Literal["a", "b"], st.sampled_from(["a", "b"]), ("c", 1)),
    Plan(Literal[1, 2], st.sampled_from([1, 2]), (3, "1")),
    Plan(Color, st.sampled_from(Color), ("green",)),
    Plan(Level, st.sampled_from(Level), (3, "LOW")),
    Plan(
        Time,
        st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(lambda t: t.replace(tzinfo=UTC, microsecond=0)),
        ("now", 1),
    ),
    Plan(Quantity, st.sampled_from(["1", "100m", "1.5Gi", "2e3", "-1k"]).map(Quantity), ("many", True, [])),
    Plan(int | str, MIXED, (True, 0.5, [])),
    Plan(JSON, JSON_VALUES, is_scalar=False),
]
SCALARS = st.sampled_from(PLAIN) | texts() | integers() | multiples() | floats()
KEYS = st.text("abcd", min_size=1, max_size=3)


@st.composite
def lists(draw: st.DrawFn, items: st.SearchStrategy[Plan]) -> Plan:
    item, least = draw(items), draw(st.integers(0, 2))
    is_set = item.is_scalar and item.hint in (bool, int, Color, Level) and draw(st.booleans())
    facts = Schema(min_items=least, max_items=3, list_type="set" if is_set else draw(st.sampled_from([None, "atomic"])))
    unique = 1 if is_set and item.hint is not int else least
    facts = attrs.evolve(facts, min_items=min(least, unique))
    values = st.lists(item.values, min_size=facts.min_items or 0, max_size=2 if is_set else 3, unique=is_set)
    wrong = tuple([one] * max(facts.min_items or 0, 1) for one in item.wrong)
    return Plan(Annotated[tuple[item.hint, ...], facts], values.map(tuple), (*wrong, "text", {}), is_scalar=False)


@st.composite
def maps(draw: st.DrawFn, items: st.SearchStrategy[Plan]) -> Plan:
    item = draw(items)
    hint = Annotated[
        Mapping[str, item.hint], Schema(max_properties=2, map_type=draw(st.sampled_from([None, "atomic"])))
    ]
    wrong = tuple({"a": one} for one in item.wrong)
    return Plan(hint, st.dictionaries(KEYS, item.values, max_size=2), (*wrong, [], "text"), is_scalar=False)


@st.composite
def parts(draw: st.DrawFn, fields: st.SearchStrategy[Plan]) -> Plan:
    cls, values, wrong = draw(classes(fields))
    return Plan(cls, values, (*wrong, [], "text"), is_scalar=False)


@st.composite
def keyed_lists(draw: st.DrawFn, fields: st.SearchStrategy[Plan]) -> Plan:
    """Lists of type map."""
    cls, values, wrong = draw(classes(fields, key=True))
    hint = Annotated[tuple[cls, ...], Schema(list_type="map", list_map_keys=("key",))]  # type: ignore[valid-type]  # made here
    items = st.lists(values, max_size=3, unique_by=lambda value: value.key).map(tuple)
    return Plan(hint, items, (*([one] for one in wrong), [{"key": "a"}, {"key": "a"}]), is_scalar=False)


PLANS: st.SearchStrategy[Plan] = st.recursive(
    SCALARS,
    lambda inner: lists(inner) | maps(inner) | parts(inner) | keyed_lists(inner),
    max_leaves=6,
)


@st.composite
def classes(
    draw: st.DrawFn, fields: st.SearchStrategy[Plan], *, key: bool = False
) -> tuple[type[Model], st.SearchStrategy[Any], tuple[Any, ...]]:
    """Draw a class, and return it with values of it, and with JSON that it does not allow."""
    hints: dict[str, Any] = {"key": str} if key else {}
    defaults: dict[str, Any] = {}
    values: dict[str, st.SearchStrategy[Any]] = {"key": KEYS} if key else {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    wrong: dict[str, tuple[object, ...]] = {}
    for index in range(draw(st.integers(1, 4))):
        plan, name = draw(fields), f"field_{index}"
        hints[name], wrong[f"field{index}"] = plan.hint, plan.wrong
        match draw(st.sampled_from(["required", "default", "none"])):
            case "required":
                values[name] = plan.values
            case "default":
                optional[name], defaults[name] = plan.values, draw(plan.values)
            case _:
                hints[name], optional[name], defaults[name] = plan.hint | None, plan.values, None
    cls: Any = type(f"Part{next(numbers)}", (Model,), {"__annotations__": hints, "__module__": __name__, **defaults})
    made = resource_part()(cls)
    pairs = tuple({name: one} for name, found in wrong.items() for one in found)
    return made, st.fixed_dictionaries(values, optional=optional).map(lambda given: made(**given)), pairs


@attrs.frozen
class RandomKind:
    """A class, objects of it, and specs that it does not allow."""

    kind: type[KubernetesObject]
    objects: tuple[KubernetesObject, ...]
    wrong: tuple[Mapping[str, object], ...]


@st.composite
def kinds(draw: st.DrawFn) -> RandomKind:
    """Draw a class of a group of its own."""
    spec, values, wrong = draw(classes(PLANS))
    hints = {"spec": spec}
    cls: Any = type("Thing", (KubernetesObject,), {"__annotations__": hints, "__module__": __name__})
    kind: Any = custom_resource(f"r{next(numbers)}-{os.getpid()}.example.com/v1")(cls)
    specs = draw(st.lists(values, min_size=1, max_size=3))
    objects = tuple(kind(metadata=ObjectMeta(name=f"a{i}"), spec=each) for i, each in enumerate(specs))
    refused = draw(st.lists(st.sampled_from(wrong), max_size=3)) if wrong else []
    return RandomKind(kind, objects, tuple(refused))


def view(value: object) -> object:
    """Return what a program reads of a value: absent fields are their defaults."""
    if isinstance(value, Model):
        names = [attribute.name for attribute in attrs.fields(type(value)) if attribute.name != "_origin"]
        return {name: view(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: view(member) for key, member in value.items()}
    return [view(item) for item in value] if isinstance(value, tuple) else value
