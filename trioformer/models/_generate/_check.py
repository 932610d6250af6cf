"""Compare the committed modules with newly generated modules, and the handwritten classes with the schema."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path

import attrs

from .. import _meta
from .._lazy import Model
from ._emit import emit
from ._naming import BY_HAND, class_of, python_type, snake_case
from ._schema import Schema


def check(schema: Schema, directory: Path) -> Iterator[str]:
    """Yield a line for each difference between the modules in ``directory`` and the schema."""
    texts = emit(schema)
    for name, text in texts.items():
        path = directory / name
        if not path.exists():
            yield f"{name} is missing"
        elif path.read_text(encoding="utf-8") != text:
            yield f"{name} is not the module that the schema generates"
    for path in sorted(directory.glob("*.py")):
        if fnmatch.fnmatch(path.name, "[!_]*_v[0-9]*.py") and path.name not in texts:
            yield f"{path.name} is no longer generated"
    for definition in sorted(BY_HAND):
        yield from _check_hand_written(schema, definition)


def _check_hand_written(schema: Schema, definition: str) -> Iterator[str]:
    fields = schema.definitions.get(definition, {})
    cls: type[Model] = getattr(_meta, class_of(definition))
    assert not isinstance(fields, str), "emit() raises for these"
    expected = {snake_case(key): _without_none(python_type(type_).hint) for key, type_ in fields.items()}
    found = {a.name: _without_none(str(a.type)) for a in attrs.fields(cls) if a.name != "_origin"}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            yield f"{cls.__name__}.{name} of _meta.py is {found.get(name)}, in the schema {expected.get(name)}"


def _without_none(hint: str) -> str:
    # In the hand-written classes a name that every object has is a str, although the schema does not require it.
    return hint.removesuffix(" | None")
