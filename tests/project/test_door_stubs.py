"""The stubs of the doors declare what trioformer's classes have at run time, and nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect

import pytest

from tests.typing.door_stubs import OMITTED, STUBS, Function, stub_of
from trioformer.client import Api, Client, WatchStream
from trioformer.client._raw import RawLines, RawStream

CASES = [(door, cls) for door in STUBS for cls in (Api, Client, RawLines, RawStream, WatchStream)]
ITERATION = {"__iter__": "__aiter__", "__next__": "__anext__"}


def declared(door: str, cls: type) -> list[tuple[str, Function]]:
    """Return the public methods of a class in the stub of a door, by their names in trioformer."""
    tree = ast.parse(STUBS[door].read_text())
    (stub,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    members = [(ITERATION.get(node.name, node.name), node) for node in stub.body if isinstance(node, Function)]
    return [(name, node) for name, node in members if is_public(name)]


def is_public(name: str) -> bool:
    return not name.startswith("_") or name in ITERATION.values()


@pytest.mark.parametrize("door", STUBS)
def test_a_stub_is_what_the_sources_generate(door: str) -> None:
    assert STUBS[door].read_text() == stub_of(door)


@pytest.mark.parametrize(("door", "cls"), CASES)
def test_a_stub_declares_the_public_names_of_a_class(door: str, cls: type) -> None:
    in_stub = {name for name, _ in declared(door, cls)}
    in_trio = set(filter(is_public, dir(cls)))
    assert {f"{cls.__name__}.{name}" for name in in_trio - in_stub} == {
        name for name in OMITTED if name.startswith(f"{cls.__name__}.")
    }
    proxy = getattr(importlib.import_module(f"trioformer.{door}"), cls.__name__, object)
    assert in_stub - in_trio <= set(dir(proxy))


@pytest.mark.parametrize(("door", "cls"), CASES)
def test_a_method_in_a_stub_has_its_parameters(door: str, cls: type) -> None:
    for name, function in declared(door, cls):
        method = inspect.unwrap(getattr(cls, name, object))
        if inspect.isfunction(method) and not any(ast.unparse(each) == "overload" for each in function.decorator_list):
            arguments = function.args
            names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            assert names == list(inspect.signature(method).parameters), name
