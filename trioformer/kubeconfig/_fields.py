"""What the classes of this package that a program makes have in common: checks of types, and what ``repr()`` shows.

No text of either shows a secret, and no text of a check shows a value.

Without them a string in place of several would be taken letter by letter, and ``"false"`` be true.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import attrs

from .._secret import HIDDEN
from .._suggestions import describe
from ..errors import ConfigError

_KINDS: Final[Mapping[str, tuple[type[Any], str]]] = {
    "str": (str, "a string"),
    "bytes": (bytes, "bytes"),
    "bool": (bool, "True or False"),
}
_HINTS: Final = {
    "exec": "; write ExecConfig(api_version=…, command=…)",
    "impersonate": "; write Impersonation(user=…)",
}


def check_types(instance: Any) -> None:
    """Check that each field of an attrs instance has the type of its annotation, which may be None as well.

    Raises:
        TypeError: One has another type.
    """
    for field in attrs.fields(type(instance)):
        annotation = str(field.type)
        if (value := getattr(instance, field.name)) is not None or not annotation.endswith(" | None"):
            check_type(field.name, value, annotation.removesuffix(" | None"))


def check_type(name: str, value: object, annotation: str) -> None:
    """Check one field.

    Raises:
        TypeError: It has another type.
    """
    if annotation in _KINDS:
        kind, expected = _KINDS[annotation]
        if not isinstance(value, kind):
            hint = "; write text.encode()" if kind is bytes and isinstance(value, str) else ""
            raise TypeError(f"{name} must be {expected}, not {describe(value)}{hint}")
    elif name in _HINTS and type(value).__name__ != annotation:
        raise TypeError(f"{name} must be an {annotation}, not {describe(value)}{_HINTS[name]}")


def path(given: str | os.PathLike[str] | None) -> str | None:
    """Convert a path to a string.

    Raises:
        TypeError: It has another type.
    """
    if given is not None and not isinstance(given, str | os.PathLike):
        raise TypeError(f"a file must be given by its path, not as {describe(given)}")
    return None if given is None else os.fspath(given)


def strings(name: str, given: Collection[str]) -> tuple[str, ...]:
    """Return several strings as a tuple.

    Raises:
        TypeError: It is a single one, or something else.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Collection):
        what = "a single string; write [text]" if isinstance(given, str) else describe(given)
        raise TypeError(f"{name} must be a list or tuple of strings, not {what}")
    values = tuple(given)
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list or tuple of strings, but has {describe(value)}")
    return values


def check_mapping(name: str, given: object, values: str) -> None:
    """Check that something is a mapping with strings as keys.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a mapping of strings to {values}, not {describe(given)}")
    for key in given:
        if not isinstance(key, str):
            raise TypeError(f"the keys of {name} must be strings, but one is {describe(key)}")


def show_size(data: bytes | None) -> str:
    """Show how long a field is."""
    return "None" if data is None else f"<{len(data)} bytes>"


def show_hidden(secret: object) -> str:
    """Show whether a field is set."""
    return "None" if secret is None else HIDDEN


def show_without_user(url: str | None) -> str:
    """Show a URL without user name and password."""
    return "None" if url is None else repr(re.sub(r"(?<=//).*@", f"{HIDDEN}@", url))


def hide_arguments(construct: Callable[..., None]) -> Callable[..., None]:
    """Let errors leave a constructor without its frame, whose variables are credentials."""

    @functools.wraps(construct)
    def __init__(self: object, *args: Any, **fields: Any) -> None:  # noqa: N807  # it becomes the class's
        try:
            return construct(self, *args, **fields)
        except (ConfigError, TypeError) as exc:
            error = exc.with_traceback(None)
        del self, args, fields
        raise error

    return __init__
