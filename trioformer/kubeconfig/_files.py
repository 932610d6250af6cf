"""Reads and merges kubeconfig files; the first file with an entry wins (client-go's ``tools/clientcmd/loader.go``).

Here only the structure of entries is checked; the methods of :class:`Entry` check the fields of those that are used.
"""

from __future__ import annotations

import base64
import datetime as dt
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import cast, final

import attrs

from ..errors import ConfigError
from ._checks import CheckError, MissingError, read_file

_KINDS: Mapping[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    str: "a string",
    bytes: "binary data",
    dt.date: "a date",
    dt.datetime: "a timestamp",
    type(None): "nothing",
}


def _kind(value: object) -> str:
    """Return the name of a YAML value's type; never the value, which may be a secret."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


@final
@attrs.frozen
class Entry:
    """One named entry of a kubeconfig: a cluster, a context or a user."""

    file: str
    """The path of the file, as it was given."""
    key: str
    """The key in the file, such as ``users[dev].user``."""
    fields: Mapping[object, object] = attrs.field(repr=False)
    """The fields, unchecked."""

    def error(self, field: str, message: str) -> ConfigError:
        """Make an error with the file and the key of ``field``."""
        return ConfigError(message, file=self.file, key=".".join(part for part in (self.key, field) if part))

    @contextmanager
    def translate_errors(self, field: str, subject: str = "") -> Generator[None, None, None]:
        """Raise a :class:`CheckError` of the block as an error about ``field`` whose text begins with ``subject``.

        Raises:
            ConfigError: Instead of the CheckError.
        """
        try:
            yield
        except CheckError as exc:
            raise self.error(field, f"{subject}{exc}") from exc

    def has(self, field: str) -> bool:
        """Whether the field is present, and neither null nor an empty string, list or mapping."""
        value = self.fields.get(field)
        return value not in (None, "", [], {})

    def text(self, field: str) -> str | None:
        """Return a string field; None if it is absent or empty.

        Raises:
            ConfigError: It is not a string.
        """
        value = self.fields.get(field)
        if value is None or isinstance(value, str):
            return value or None
        if type(value) in (list, dict):
            raise self.error(field, f"must be a string, not {_kind(value)}")
        raise self.error(field, f"must be a string, but YAML reads it as {_kind(value)}: put it in quotes")

    def flag(self, field: str) -> bool:
        """Return a boolean field; False if it is absent.

        Raises:
            ConfigError: It is not a boolean.
        """
        value = self.fields.get(field)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.error(field, f"must be true or false, not {_kind(value)}")

    def data(self, field: str) -> bytes | None:
        """Return the bytes of a base64 field; None if it is absent or empty.

        Raises:
            ConfigError: It is not a string, or not base64.
        """
        text = self.text(field)
        if text is None:
            return None
        try:
            return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
        except ValueError as exc:
            raise self.error(field, "is not valid base64") from exc

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


@final
@attrs.frozen
class Kubeconfig:
    """The merged content of kubeconfig files."""

    files: tuple[str, ...] = ()
    """The files, in order of precedence."""
    current_context: str | None = None
    """The name of the default context."""
    current_context_file: str | None = None
    """The file that sets it."""
    contexts: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    """Contexts by name."""
    clusters: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    """Clusters by name."""
    users: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    """Users by name."""

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a context, cluster or user nor a current context."""
        return not (self.current_context or self.contexts or self.clusters or self.users)

    @property
    def source(self) -> str:
        """The files, for errors."""
        return ", ".join(self.files)

    def merge(self, other: Kubeconfig) -> Kubeconfig:
        """Add the entries of ``other``; of two entries with one name, that of ``self`` is kept unchanged."""
        chosen = self if self.current_context else other
        return Kubeconfig(
            files=(*self.files, *other.files),
            current_context=chosen.current_context,
            current_context_file=chosen.current_context_file,
            contexts={**other.contexts, **self.contexts},
            clusters={**other.clusters, **self.clusters},
            users={**other.users, **self.users},
        )


def read_kubeconfig(file: str) -> Kubeconfig:
    """Read one kubeconfig file.

    Raises:
        MissingError: It does not exist.
        ConfigError: It cannot be read, is not YAML, or does not have the structure of a kubeconfig.
    """
    try:
        content = read_file(file)
    except MissingError:
        raise
    except CheckError as exc:
        raise ConfigError(str(exc), file=file) from exc
    # PyYAML is a fifth of this library's import time, and a program in a pod reads no file.
    from ._yaml import parse_yaml  # noqa: PLC0415

    document = parse_yaml(content, file)
    if document is None:
        return Kubeconfig(files=(file,))
    if not isinstance(document, dict):
        raise ConfigError(f"must be a YAML mapping, not {_kind(document)}", file=file)
    top = Entry(file, "", cast("Mapping[object, object]", document))
    _check_type(top)
    return Kubeconfig(
        files=(file,),
        current_context=top.text("current-context"),
        current_context_file=file,
        contexts=_entries(top, "contexts", "context"),
        clusters=_entries(top, "clusters", "cluster"),
        users=_entries(top, "users", "user"),
    )


def _check_type(top: Entry) -> None:
    for field, expected in (("kind", "Config"), ("apiVersion", "v1")):
        value = top.text(field)
        if value not in (None, expected):
            raise top.error(field, f"must be {expected!r} in a kubeconfig, not {value!r}")


def _entries(top: Entry, section: str, field: str) -> dict[str, Entry]:
    """Return the entries of ``section``, a list of ``{name: …, field: {…}}``."""
    items = top.fields.get(section)
    if items is None:
        return {}
    if not isinstance(items, list):
        raise top.error(section, f"must be a list, not {_kind(items)}")
    entries: dict[str, Entry] = {}
    for index, item in enumerate(cast("list[object]", items)):
        unnamed = Entry(top.file, f"{section}[{index}]", _mapping(top, f"{section}[{index}]", item))
        name = unnamed.text("name")
        if name is None:
            raise unnamed.error("name", "is missing")
        key = f"{section}[{name if name.isprintable() else repr(name)}]"
        if name in entries:
            raise top.error(key, "is twice in this file")
        body = unnamed.fields.get(field)
        entries[name] = Entry(top.file, f"{key}.{field}", {} if body is None else _mapping(top, f"{key}.{field}", body))
    return entries


def _mapping(top: Entry, key: str, value: object) -> Mapping[object, object]:
    if not isinstance(value, dict):
        raise top.error(key, f"must be a mapping, not {_kind(value)}")
    return cast("Mapping[object, object]", value)
