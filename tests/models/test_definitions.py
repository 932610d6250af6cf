"""A class of models that would be read or written wrongly is refused; its methods stay those of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attr
import attrs
import pytest

from trioformer.models import JSON, FrozenMap, Model, encode, from_dict, from_json, resource_of
from trioformer.models.core_v1 import Pod


class Forgotten(Model):
    """A class without a decorator."""

    max_size: int = 1


class Labelled(Pod):
    """A class without a decorator, and with a base that has one."""

    extra: str = "default"


@dataclasses.dataclass(frozen=True)
class Data(Model):
    """A class with the decorator of dataclasses."""

    size: int = 1


class Named(Pod):
    """A class with nothing but methods and class variables."""

    color: ClassVar[str] = "red"

    @property
    def title(self) -> str:
        """The name."""
        return self.metadata.name.upper()


@pytest.mark.parametrize(
    ("cls", "name"), [(Forgotten, "Forgotten.max_size"), (Labelled, "Labelled.extra"), (Data, "Data.size")]
)
@pytest.mark.parametrize(
    "use", [lambda cls: from_json(cls, "{}"), lambda cls: from_dict(cls, {}), lambda cls: cls(), resource_of]
)
def test_a_class_without_its_decorator_is_refused_when_it_is_used(
    cls: type[Model], name: str, use: Callable[[type[Model]], Model]
) -> None:
    with pytest.raises(TypeError) as caught:
        use(cls)
    assert str(caught.value) == f"{name} is not a field; define {cls.__name__} with @attrs.frozen"


@pytest.mark.parametrize("hint", [Forgotten, Forgotten | None, tuple[Forgotten, ...], Mapping[str, Forgotten]])
def test_a_part_without_its_decorator_is_refused_with_the_object(hint: Any) -> None:
    value = attrs.field(default=None, type=hint)
    whole = attrs.make_class("Whole", {"value": value}, bases=(Model,), frozen=True, kw_only=True, slots=True)
    with pytest.raises(TypeError, match=r"^Forgotten\.max_size is not a field"):
        _ = from_json(whole, '{"value": {}}').value


def test_a_class_with_no_field_of_its_own_needs_no_decorator() -> None:
    assert from_json(Named, '{"metadata": {"name": "a"}}').title == "A"
    assert Named().color == "red"


def test_a_class_with_its_own_init_is_refused_when_it_is_defined() -> None:
    with pytest.raises(TypeError) as caught:

        @attrs.frozen
        class Hosts(Model):
            hosts: tuple[str, ...] = ()

            def __init__(self, *, host: str = "") -> None:
                self.__attrs_init__(hosts=(host,))  # type: ignore[attr-defined]  # made by attrs

    assert str(caught.value) == ("Hosts must not define its own __init__; write a class method that creates an object")

    class Short(Pod):
        def __init__(self, name: str) -> None:
            super().__init__(api_version=name)

    with pytest.raises(TypeError, match=r"^Short must not define its own __init__"):
        Short("a")


@pytest.mark.parametrize(
    "decorate",
    [
        attr.s(auto_attribs=True, frozen=True, slots=True),
        attr.dataclass(frozen=True, slots=True),
        attrs.frozen(eq=True),
        attrs.frozen(eq=True, repr=True, unsafe_hash=True),
    ],
)
def test_equality_and_hash_stay_those_of_models_whatever_the_decorator_says(decorate: Any) -> None:
    @decorate
    class Loose(Model):
        free: JSON = None

    assert from_json(Loose, '{"free": 1}') != from_json(Loose, '{"free": true}')
    assert from_json(Loose, '{"new": 1}') != from_json(Loose, '{"new": 2}')
    assert {from_json(Loose, '{"free": {"a": [1]}}')} == {from_json(Loose, '{ "free": {"a": [1]}}')}
    assert repr(from_json(Loose, '{"free": 1}')).endswith("Loose(free=1)")


def test_a_class_may_have_its_own_equality() -> None:
    @attrs.frozen(eq=False)
    class Equal(Model):
        size: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        def __hash__(self) -> int:
            return 7

    assert Equal(size=1) == Equal(size=2)
    assert hash(Equal()) == 7


def test_what_a_program_gives_is_frozen_whatever_runs_after_it() -> None:
    seen: list[object] = []

    @attrs.frozen
    class Base(Model):
        hosts: tuple[str, ...] = ()
        labels: Mapping[str, str] = FrozenMap()

        def __attrs_post_init__(self) -> None:
            seen.append((self.hosts, type(self.labels)))

    @attrs.frozen
    class Derived(Base):
        def __attrs_post_init__(self) -> None:
            super().__attrs_post_init__()

    given: Any = ["a"]
    for cls in (Base, Derived):
        made = cls(hosts=given, labels={"a": "b"})
        given.append("b")
        assert encode(made) == b'{"hosts":["a"],"labels":{"a":"b"}}'
        given.pop()
    assert seen == [(("a",), FrozenMap)] * 2
