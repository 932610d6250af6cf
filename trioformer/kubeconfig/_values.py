"""The values of a kubeconfig, which show nothing of their content: each may be a credential in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, final

from .._secret import Secret
from ..errors import ConfigError


def parse_yaml(content: Secret[bytes], file: str) -> Value:
    """Parse one YAML document; None if the file is empty.

    Raises:
        ConfigError: It is not YAML, or is ambiguous; names the file and the position, and quotes nothing.
    """
    found = _parse(content)
    if isinstance(found, str):
        raise ConfigError(found, file=file)  # here, since the variables of _parse() are values of the file
    return found


def _parse(content: Secret[bytes]) -> Value | str:
    """Return the value of the only document, or a text that says what is wrong.

    An empty document may follow, as behind a ``---`` at the end of a file.
    """
    # PyYAML is a fifth of this library's import time, and a program in a pod reads no file.
    from .._yaml import YamlError, compose, decode_text  # noqa: PLC0415

    try:
        found = compose(decode_text(content))
    except YamlError as exc:
        return str(exc)
    if found.error is not None:
        return str(found.error)
    if found.problems:
        problem = found.problems[0]
        return f"{problem.message} (line {problem.line}, column {problem.column})"
    for document in found.documents[1:]:
        if document.value is not None or len(found.documents) > 2:
            return f"contains a second document: remove it (line {document.line}, column {document.column})"
    return _conceal(found.documents[0].value) if found.documents else None


@final
class Fields:
    """A mapping whose keys are strings; ``repr()`` shows only how many."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        self._fields: Mapping[str, Any] = {} if fields is None else fields

    def get(self, key: str) -> Value:
        """Return the value of a key; None if it is absent, as if it were null."""
        return _conceal(self._fields.get(key))

    def keys(self) -> list[str]:
        """Return the keys, which may be credentials in the wrong place."""
        return list(self._fields)

    def replace(self, fields: Mapping[str, Any]) -> Fields:
        """Return a copy with other values for some keys."""
        return Fields({**self._fields, **fields})

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<{len(self)} fields>"


@final
class Items:
    """A list; ``repr()`` shows only how long it is."""

    __slots__ = ("_items",)

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Value]:
        return map(_conceal, self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{len(self)} items>"


Value: TypeAlias = Secret[str] | bool | int | float | Fields | Items | None


def _conceal(value: Any) -> Value:
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, dict):
        return Fields(value)
    return Items(value) if isinstance(value, list) else value


def kind_of(value: Value) -> str:
    """Return the name of a value's type; never the value, which may be a secret."""
    match value:
        case Secret():
            return "a string"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case Fields():
            return "a mapping"
        case Items():
            return "a list"
        case None:
            return "nothing"


def reveal(value: Value) -> object:
    """Return a value as JSON has it: dicts, lists, strings, numbers, booleans and None, not concealed."""
    match value:
        case Secret():
            return value.reveal()
        case Fields():
            return value._fields
        case Items():
            return value._items
        case _:
            return value
