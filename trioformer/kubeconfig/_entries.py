"""Read the entries of a kubeconfig. Each field is checked when it is read, and one error lists all problems.

Source: client-go ``clientcmd/validation.go``.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, final

import attrs

from .._suggestions import describe
from ..errors import ConfigError
from ..errors._internal import ConfigProblem
from ._checks import CheckError

T = TypeVar("T")


@final
class Problems:
    """A collection of problems with the files and values of one configuration."""

    __slots__ = ("_problems",)

    def __init__(self) -> None:
        self._problems: dict[ConfigProblem, None] = {}  # without duplicates

    def add(self, message: str, file: str | None, key: str | None) -> None:
        """Record a problem."""
        self._problems[ConfigProblem(message, file, key)] = None

    def raise_if_any(self) -> None:
        """Raise one error with all problems.

        Raises:
            ConfigError: At least one problem was recorded.
        """
        problems = tuple(self._problems)
        if not problems:
            return
        first = problems[0]
        if len(problems) == 1:
            raise ConfigError(first.message, file=first.file, key=first.key)
        file = first.file if all(problem.file == first.file for problem in problems) else None
        shown = "; ".join(str(ConfigProblem(p.message, None if file else p.file, p.key)) for p in problems)
        error = ConfigError(f"{len(problems)} problems: {shown}", file=file)
        error.problems = problems
        raise error


@final
@attrs.frozen
class Entry:
    """A named entry of a kubeconfig (a cluster, a context or a user), or a mapping inside such an entry.

    If a field is absent, empty or of the wrong type, the methods that read it return None or an empty value.  A wrong
    type is also recorded as a problem.
    """

    problems: Problems
    """The collection of problems."""
    file: str
    """The path of the file as given; empty for no file."""
    key: str
    """The key in the file, such as ``users[dev].user``."""
    fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """The fields, unchecked."""
    overridden: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Fields with values that are not from the file, and the keys that name them in errors."""

    def override(self, fields: Mapping[str, Any], names: Mapping[str, str]) -> Entry:
        """Return a copy with some values replaced.

        An error about a replaced value shows the name from ``names`` instead of the file and the key.
        """
        return attrs.evolve(self, fields={**self.fields, **fields}, overridden={**self.overridden, **names})

    def report(self, field: str, message: str) -> None:
        """Record a problem with a field, or with the entry."""
        if field in self.overridden:
            self.problems.add(message, None, self.overridden[field])
        else:
            self.problems.add(message, self.file or None, ".".join(part for part in (self.key, field) if part) or None)

    def check(self, field: str, check: Callable[[str], T], value: str | None, subject: str = "") -> T | None:
        """Return the result of ``check``.

        If ``check`` raises a :class:`CheckError`, record a problem that begins with ``subject``.
        """
        try:
            return None if value is None else check(value)
        except CheckError as exc:
            self.report(field, f"{subject}{exc}")
            return None

    def has(self, *fields: str) -> bool:
        """Return whether a field is present and is not null, an empty string, an empty list or an empty mapping."""
        return any(self.fields.get(field) not in (None, "", b"", [], {}) for field in fields)

    def text(self, field: str) -> str | None:
        """Return a string."""
        value = self.fields.get(field)
        if value is not None and not isinstance(value, str):
            self._report_type(field, "a string", value)
            return None
        return value or None

    def flag(self, field: str) -> bool:
        """Return a boolean."""
        value = self.fields.get(field)
        if value is not None and not isinstance(value, bool):
            self._report_type(field, "true or false", value)
        return value is True

    def data(self, field: str) -> bytes | None:
        """Return the bytes of a base64 field."""
        if isinstance(given := self.fields.get(field), bytes):  # it replaces the value of the file
            return given
        if (text := self.text(field)) is None:
            return None
        try:
            return binascii.a2b_base64(text.replace("\r", "").replace("\n", "").encode(), strict_mode=True)
        except ValueError:
            self.report(field, "is not valid base64")
            return None

    def path(self, field: str) -> str | None:
        """Return an absolute path.

        As in kubectl, a relative path is relative to the kubeconfig's directory, and ``~`` is not expanded.
        """
        text = self.text(field)
        if text is None or os.path.isabs(text):
            return text
        return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(self.file)), text))

    def mapping(self, field: str) -> Entry | None:
        """Return a mapping."""
        value = self.fields.get(field)
        return None if value is None else self._inner(field, value)

    def mappings(self, field: str) -> list[Entry]:
        """Return a list of mappings, without null items."""
        items = self._items(field)
        entries = (self._inner(f"{field}[{index}]", item) for index, item in items if item is not None)
        return [entry for entry in entries if entry is not None]

    def strings(self, field: str) -> tuple[str, ...]:
        """Return a list of strings. As in kubectl, a null item becomes an empty string."""
        strings: list[str] = []
        for index, item in self._items(field):
            if item is not None and not isinstance(item, str):
                self._report_type(f"{field}[{index}]", "a string", item)
            else:
                strings.append(item or "")
        return tuple(strings)

    def _items(self, field: str) -> Iterator[tuple[int, Any]]:
        value = self.fields.get(field)
        if value is not None and not isinstance(value, list):
            self._report_type(field, "a list", value)
            value = None
        return enumerate(value or [])

    def _inner(self, field: str, value: Any) -> Entry | None:
        if not isinstance(value, dict):
            self._report_type(field, "a mapping", value)
            return None
        return Entry(self.problems, self.file, f"{self.key}.{field}" if self.key else field, value)

    def _report_type(self, field: str, expected: str, value: Any) -> None:
        hint = ": put it in quotes" if expected == "a string" and not isinstance(value, list | dict) else ""
        self.report(field, f"must be {expected}, but YAML reads it as {describe(value)}{hint}")
