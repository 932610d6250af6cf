"""The entries of a kubeconfig, whose fields are checked when they are read; one error lists all that is wrong.

Source: client-go ``clientcmd/validation.go``.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Callable, Mapping
from typing import Final, TypeVar, final

import attrs

from .._secret import Secret
from ..errors import ConfigError, ConfigProblem
from ._checks import CheckError
from ._values import Fields, Items, Value, kind_of

T = TypeVar("T")

MAX_SHOWN: Final = 20
"""Problems in the text of an error; all are in its ``problems``."""


@final
class Problems:
    """The problems that were found.

    An error is taken apart and not kept: its traceback has frames whose variables may be credentials.
    """

    __slots__ = ("_problems",)

    def __init__(self) -> None:
        self._problems: dict[ConfigProblem, None] = {}  # no problem twice

    def __bool__(self) -> bool:
        return bool(self._problems)

    def add(self, error: ConfigError) -> None:
        """Add the problems of an error."""
        self._problems.update(dict.fromkeys(error.problems))

    def attempt(self, check: Callable[[], T]) -> T | None:
        """Return what ``check`` returns; if it raises a ConfigError, add its problems and return None."""
        try:
            return check()
        except ConfigError as exc:
            self.add(exc)
            return None

    def raise_if_any(self) -> None:
        """Raise one error with all problems, if there are any.

        Raises:
            ConfigError: There is at least one.
        """
        if self._problems:
            raise _joined(list(self._problems))


def _joined(problems: list[ConfigProblem]) -> ConfigError:
    """Return one error with all of the problems, of which there is at least one."""
    first = problems[0]
    if len(problems) == 1:
        return ConfigError(first.message, file=first.file, key=first.key)
    file = first.file if all(problem.file == first.file for problem in problems) else None
    shown = [str(ConfigProblem(p.message, None if file else p.file, p.key)) for p in problems[:MAX_SHOWN]]
    more = f"; and {len(problems) - MAX_SHOWN} more" if len(problems) > MAX_SHOWN else ""
    error = ConfigError(f"{len(problems)} problems: {'; '.join(shown)}{more}", file=file)
    error.problems = tuple(problems)
    return error


@final
@attrs.frozen
class Entry:
    """One named entry of a kubeconfig, a cluster, a context or a user, or a mapping in one.

    No variable of a method that raises a ConfigError contains the text of a field that may be a credential, and the
    error has no cause: a traceback with variables would show them.
    """

    file: str
    """The path of the file, as it was given."""
    key: str
    """The key in the file, such as ``users[dev].user``."""
    fields: Fields = attrs.field(repr=False)
    """The fields, unchecked."""
    overridden: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Fields whose values are not the file's, and the keys by which errors name them instead."""

    def override(self, fields: Mapping[str, object], names: Mapping[str, str]) -> Entry:
        """Return a copy with other values; errors about them have the key in ``names`` and no file."""
        return attrs.evolve(self, fields=self.fields.replace(fields), overridden={**self.overridden, **names})

    def error(self, field: str, message: str) -> ConfigError:
        """Make an error with the file and the key of ``field``."""
        if field in self.overridden:
            return ConfigError(message, key=self.overridden[field])
        return ConfigError(message, file=self.file or None, key=".".join(part for part in (self.key, field) if part))

    def call(self, field: str, check: Callable[[], T], subject: str = "") -> T:
        """Call ``check``, and raise its :class:`CheckError` as an error about ``field`` that begins with ``subject``.

        Raises:
            ConfigError: Instead of the CheckError.
        """
        try:
            return check()
        except CheckError as exc:
            problem = f"{subject}{exc}"
        raise self.error(field, problem)

    def has(self, field: str) -> bool:
        """Whether the field is present, and neither null nor an empty string, list or mapping."""
        value = self.fields.get(field)
        return bool(value) if isinstance(value, (Secret, Items, Fields)) else value is not None

    def secret(self, field: str) -> Secret[str] | None:
        """Return a string field; None if it is absent or empty.

        Raises:
            ConfigError: It is not a string.
        """
        value = self.fields.get(field)
        if value is None or isinstance(value, Secret):
            return value or None
        raise self.error(field, _no_string(value))

    def text(self, field: str) -> str | None:
        """Return a string field that is no credential; None if it is absent or empty.

        Raises:
            ConfigError: It is not a string.
        """
        value = self.secret(field)
        return None if value is None else value.reveal()

    def flag(self, field: str) -> bool:
        """Return a boolean field; False if it is absent.

        Raises:
            ConfigError: It is not a boolean.
        """
        value = self.fields.get(field)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.error(field, f"must be true or false, not {kind_of(value)}")

    def data(self, field: str) -> Secret[bytes] | None:
        """Return the bytes of a base64 field; None if it is absent or empty.

        Raises:
            ConfigError: It is not a string, or not base64.
        """
        text = self.secret(field)
        if text is None:
            return None
        try:
            # base64.b64decode() is a function whose variables a traceback could show; this is not.
            return Secret(
                binascii.a2b_base64(text.reveal().replace("\r", "").replace("\n", "").encode(), strict_mode=True)
            )
        except ValueError:
            problem = "is not valid base64"
        raise self.error(field, problem)

    def path(self, field: str) -> str | None:
        """Return a path as an absolute one, relative to the kubeconfig's directory; None if it is absent.

        As in kubectl, ``~`` is not expanded.

        Raises:
            ConfigError: It is not a string.
        """
        text = self.text(field)
        if text is None or os.path.isabs(text):
            return text
        return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(self.file)), text))

    def mapping(self, field: str) -> Entry | None:
        """Return a field that is a mapping; None if it is absent.

        Raises:
            ConfigError: It is not a mapping.
        """
        value = self.fields.get(field)
        return None if value is None else self._inner(field, value)

    def mappings(self, field: str) -> list[Entry]:
        """Return a list of mappings; it is empty if it is absent.

        Raises:
            ConfigError: It is not a list, or not of mappings.
        """
        return [self._inner(f"{field}[{index}]", item) for index, item in enumerate(self._items(field))]

    def strings(self, field: str) -> tuple[Secret[str], ...]:
        """Return a list of strings; it is empty if it is absent.  A null is an empty string, as for kubectl.

        Raises:
            ConfigError: It is not a list, or not of strings.
        """
        strings: list[Secret[str]] = []
        for index, item in enumerate(self._items(field)):
            if item is not None and not isinstance(item, Secret):
                raise self.error(f"{field}[{index}]", _no_string(item))
            strings.append(item or Secret(""))
        return tuple(strings)

    def _items(self, field: str) -> Items:
        value = self.fields.get(field)
        if value is None:
            return Items([])
        if not isinstance(value, Items):
            raise self.error(field, f"must be a list, not {kind_of(value)}")
        return value

    def _inner(self, field: str, value: Value) -> Entry:
        if not isinstance(value, Fields):
            raise self.error(field, f"must be a mapping, not {kind_of(value)}")
        return Entry(self.file, f"{self.key}.{field}" if self.key else field, value)


def _no_string(value: Value) -> str:
    if isinstance(value, (Items, Fields)):
        return f"must be a string, not {kind_of(value)}"
    return f"must be a string, but YAML reads it as {kind_of(value)}: put it in quotes"
