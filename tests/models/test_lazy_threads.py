"""Fields that several threads read for the first time at once: equal values, and no errors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.models.test_messages_encodings import OBJECTS, both
from trioformer.models import Model, from_json, unstructured_kind
from trioformer.models._lazy import plan_of

ROUNDS = 150


@pytest.fixture(autouse=True)
def tiny_switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(obj: Any, *functions: Callable[[Any], object]) -> list[object]:
    """Call functions with an object in threads that start together, and return their results."""
    barrier = threading.Barrier(len(functions))
    results: list[object] = [None] * len(functions)

    def run(index: int, function: Callable[[Any], object]) -> None:
        barrier.wait()
        try:
            results[index] = function(obj)
        except BaseException as error:  # noqa: BLE001  # compared
            results[index] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def forwards(value: Any) -> Any:
    """Read all fields of a value and its parts."""
    return read(value, backwards=False)


def backwards(value: Any) -> Any:
    """Read them in the other order."""
    return read(value, backwards=True)


BOTH_WAYS = (forwards, backwards, forwards, backwards)


def read(value: Any, *, backwards: bool) -> Any:
    if isinstance(value, Model):
        names = list(plan_of(type(value)).fields)
        for name in reversed(names) if backwards else names:
            read(getattr(value, name), backwards=backwards)
        return {name: getattr(value, name) for name in names}
    if isinstance(value, tuple):
        for part in value:
            read(part, backwards=backwards)
    if isinstance(value, dict):
        for part in value.values():
            read(part, backwards=backwards)
    return value


@pytest.mark.parametrize("index", [0, 1], ids=["json", "protobuf"])
@pytest.mark.parametrize(("kind", "members"), OBJECTS, ids=lambda each: getattr(each, "__name__", ""))
def test_fields_that_are_first_read_at_once(kind: Any, members: dict[str, Any], index: int) -> None:
    wanted = forwards(both(kind, members)[index])
    for _ in range(ROUNDS // 3):
        obj = both(kind, members)[index]
        found = at_once(obj, *BOTH_WAYS)
        assert found == [wanted] * 4


def test_a_class_that_is_first_used_at_once() -> None:
    for index in (0, 1):
        for kind, members in OBJECTS:
            obj = both(kind, members)[index]
            wanted = forwards(both(kind, members)[index])
            plan_of.cache_clear()  # type: ignore[attr-defined]  # a function with a cache
            found = at_once(obj, *BOTH_WAYS)
            assert found == [wanted] * 4


def members_of(obj: Any) -> list[Any]:
    return [obj[key] for key in obj]


def some_fields(obj: Any) -> object:
    return obj.name, obj.spec.host_network, obj.status.phase, obj.spec.node_name


def test_members_of_an_unstructured_object_that_are_first_read_at_once() -> None:
    kind = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
    data = b'{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},%s}' % b",".join(
        b'"m%d":{"x":[%d]}' % (number, number) for number in range(20)
    )
    for _ in range(ROUNDS):
        obj = from_json(kind, data)
        assert at_once(obj, *[members_of] * 4) == [members_of(obj)] * 4


def test_a_field_that_cannot_be_decoded_raises_in_each_thread() -> None:
    kind, _ = OBJECTS[0]
    for _ in range(ROUNDS):
        obj: Any = from_json(kind, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"nodeName":1}}')
        found = at_once(obj, *[some_fields] * 4)
        assert {type(each).__name__ for each in found} == {"DecodeError"}
        assert len({str(each) for each in found}) == 1
