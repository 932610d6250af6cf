"""A class is refused when it is defined if a field is mutable, or has no form in JSON, or if a name is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypedDict, TypeVar

import attrs
import pytest

from trioformer.errors import DecodeError
from trioformer.models import JSON, FrozenMap, Model, Quantity, encode, from_json


@attrs.define
class Loose:
    """A mutable class."""

    value: int = 0


@dataclass
class LooseData:
    """A mutable dataclass."""

    value: int = 0


@attrs.frozen
class Deep:
    """An immutable class with a mutable part."""

    names: dict[str, int] = attrs.Factory(dict)


@attrs.frozen
class Tree:
    """A class that contains itself."""

    children: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Data:
    """An immutable dataclass."""

    value: int = 0


@dataclass(frozen=True)
class Named:
    """An immutable dataclass with names of two words."""

    host_name: str = ""
    port: int = 0
    more: Named | None = None
    pod_ip: str = field(default="", metadata={"json": "podIP"})


@attrs.frozen
class Priced:
    """A class with a type that JSON does not have."""

    price: Decimal = Decimal(0)


GENERIC = "but the types of the fields of a generic class are not known; write a separate class"
T = TypeVar("T")


@attrs.frozen
class Page(Generic[T]):
    """A generic class."""

    items: tuple[T, ...] = ()


@attrs.frozen
class GenericPart(Model, Generic[T]):
    """A generic model."""

    size: int = 0


class Color(Enum):
    """An enumeration."""

    RED = "red"


class Point(NamedTuple):
    """A named tuple."""

    x: int


class Typed(TypedDict):
    """A typed dict."""

    x: int


@attrs.frozen
class Empty:
    """A class without fields."""


def define(hint: Any) -> type[Model]:
    members = {"__annotations__": {"hosts": hint}, "hosts": None, "__module__": __name__}
    return attrs.frozen(kw_only=True, eq=False, repr=False)(type("Website", (Model,), members))


@pytest.mark.parametrize(
    ("hint", "shown", "advice"),
    [
        (list[str], "list[str]", "write tuple[str, ...]"),
        ("list[str]", "list[str]", "write tuple[str, ...]"),
        (dict[str, int], "dict[str, int]", "write Mapping[str, int]"),
        (set[str], "set[str]", "write tuple[str, ...]"),
        (bytearray, "bytearray", "write bytes"),
        (list[str] | None, "list[str] | None", "write tuple[str, ...] | None"),
        (Mapping[str, list[int]], "Mapping[str, list[int]]", "write Mapping[str, tuple[int, ...]]"),
        (Annotated[list[str], "doc"], "Annotated[list[str], 'doc']", "write tuple[str, ...]"),
        (Loose, "Loose", "define Loose with @attrs.frozen"),
        (LooseData | None, "LooseData | None", "define LooseData with @dataclass(frozen=True)"),
    ],
)
def test_a_class_with_a_mutable_type_is_refused_with_the_type_to_write(hint: Any, shown: str, advice: str) -> None:
    with pytest.raises(TypeError) as caught:
        define(hint)
    assert str(caught.value) == f"Website.hosts is {shown}, but objects are immutable; {advice}"


@pytest.mark.parametrize(
    ("hint", "shown", "advice"),
    [
        (AbstractSet[str] | None, "Set[str] | None", "write tuple[str, ...] | None"),
        (Mapping[str, frozenset[str]], "Mapping[str, frozenset[str]]", "write Mapping[str, tuple[str, ...]]"),
    ],
)
def test_a_set_is_refused_because_it_would_lose_the_order(hint: Any, shown: str, advice: str) -> None:
    with pytest.raises(TypeError) as caught:
        define(hint)
    assert str(caught.value) == f"Website.hosts is {shown}, but JSON arrays are ordered; {advice}"


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        (Decimal, "Website.hosts is Decimal, but JSON has no Decimal; write str, float, Quantity, Time or JSON"),
        (date | None, "Website.hosts is date, but JSON has no date; write str, float, Quantity, Time or JSON"),
        (Priced, "Priced.price is Decimal, but JSON has no Decimal; write str, float, Quantity, Time or JSON"),
        (
            Quantity | str | None,
            "Website.hosts is Quantity | str | None, but the JSON does not distinguish these types",
        ),
        (Tree | Data, "Website.hosts is Tree | Data, but the JSON does not distinguish these types; write JSON"),
        (Page[str] | None, f"Website.hosts is Page[str], {GENERIC}"),
        (GenericPart[str], f"Website.hosts is GenericPart[str], {GENERIC}"),
    ],
)
def test_a_type_that_has_no_form_in_json_is_refused(hint: Any, problem: str) -> None:
    with pytest.raises(TypeError, match="^" + re.escape(problem)):
        define(hint)


def test_a_generic_model_is_refused_for_the_type_that_it_does_not_know() -> None:
    with pytest.raises(TypeError, match=r"^Status\.conditions is T, but T is not a type; write the type$"):

        @attrs.frozen
        class Status(Model, Generic[T]):
            conditions: tuple[T, ...] = ()


def test_a_dataclass_has_the_names_of_the_api_like_an_attrs_class() -> None:
    value = attrs.field(default=(), type=tuple[Named, ...])
    cls: Any = attrs.make_class("Whole", {"value": value}, bases=(Model,), frozen=True, kw_only=True, slots=True)
    text = b'{"value":[{"hostName":"a","port":1,"more":{"hostName":"b"},"podIP":"c","new":1}]}'
    found = from_json(cls, text)
    assert found.value == (Named("a", 1, Named("b"), "c"),)
    changed = found.evolve(value=(*found.value, Named("d")))
    assert encode(changed) == text[:-2] + b',{"hostName":"d","port":0,"podIP":""}]}'
    with pytest.raises(DecodeError, match=r"^cannot decode Whole\.value: expected an object, got str @ \[0\]"):
        _ = from_json(cls, '{"value": ["a"]}').value


def test_a_mutable_type_inside_another_class_is_refused_too() -> None:
    with pytest.raises(TypeError) as caught:
        define(tuple[Deep, ...])
    assert str(caught.value) == "Deep.names is dict[str, int], but objects are immutable; write Mapping[str, int]"


@pytest.mark.parametrize(
    "hint",
    [
        int | str | None,
        JSON,
        tuple[Mapping[str, JSON], ...],
        Tree,
        Empty,
        Color | None,
        Point,
        tuple[Color, int],
        str | tuple[str, ...],
        JSON | None,
        FrozenMap[str],
        bytes,
        ClassVar[list[str]],
        "NotDefinedYet | None",
    ],
)
def test_a_class_with_immutable_types_is_accepted(hint: Any) -> None:
    assert issubclass(define(hint), Model)


def test_a_type_that_is_defined_later_is_checked_when_the_class_is_used() -> None:
    cls = define("DefinedLater")
    globals()["DefinedLater"] = list[str]
    try:
        with pytest.raises(TypeError, match=r"^Website\.hosts is list\[str\], but objects are immutable; write tuple"):
            from_json(cls, "{}").hosts  # type: ignore[attr-defined]  # noqa: B018
    finally:
        del globals()["DefinedLater"]


def test_a_field_without_a_default_must_be_given_and_reads_as_none() -> None:
    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class Website(Model):
        hosts: tuple[str, ...]

    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'hosts'"):
        Website()  # type: ignore[call-arg]
    assert Website(hosts=()).hosts == ()
    assert from_json(Website, "{}").hosts is None


@pytest.mark.parametrize("where", ["_always", "_json_names"])
def test_a_class_variable_that_names_no_field_is_refused(where: str) -> None:
    named = frozenset({"replicas", "replica"}) if where == "_always" else {"replica": "replicaCount"}
    cls = type("Website", (Model,), {"__annotations__": {"replicas": int}, "replicas": 0, where: named})
    with pytest.raises(TypeError) as caught:
        attrs.frozen(kw_only=True)(cls)
    assert str(caught.value) == f"Website.{where} names 'replica', which is not a field; write one of: replicas"


def test_fields_of_a_base_class_may_be_named_in_always() -> None:
    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class Base(Model):
        replicas: int = 0

    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class Website(Base):
        _always: ClassVar[frozenset[str]] = frozenset({"replicas"})

    assert encode(Website()) == b'{"replicas":0}'
