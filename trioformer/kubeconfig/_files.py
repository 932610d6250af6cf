"""Reads and merges kubeconfig files; the first file with an entry wins (client-go's ``tools/clientcmd/loader.go``).

Here only the structure of entries is checked; the methods of :class:`Entry` check the fields of those that are used.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Callable, Mapping
from typing import TypeVar, final

import attrs

from .._secret import Secret
from ..errors import ConfigError
from ._checks import CheckError, MissingError, read_file_and_mode
from ._permissions import warn_about_permissions
from ._values import Fields, Items, Value, kind_of

T = TypeVar("T")


@final
@attrs.frozen
class Entry:
    """One named entry of a kubeconfig: a cluster, a context or a user.

    No variable of a method that raises a ConfigError contains the text of a field that may be a credential, and the
    error has no cause: a traceback with variables would show them.
    """

    file: str
    """The path of the file, as it was given."""
    key: str
    """The key in the file, such as ``users[dev].user``."""
    fields: Fields = attrs.field(repr=False)
    """The fields, unchecked."""

    def error(self, field: str, message: str) -> ConfigError:
        """Make an error with the file and the key of ``field``."""
        return ConfigError(message, file=self.file, key=".".join(part for part in (self.key, field) if part))

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
        if isinstance(value, (Items, Fields)):
            raise self.error(field, f"must be a string, not {kind_of(value)}")
        raise self.error(field, f"must be a string, but YAML reads it as {kind_of(value)}: put it in quotes")

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
        content, mode = read_file_and_mode(file)
    except MissingError:
        raise
    except CheckError as exc:
        raise ConfigError(str(exc), file=file) from exc
    # PyYAML is a fifth of this library's import time, and a program in a pod reads no file.
    from ._yaml import parse_yaml  # noqa: PLC0415

    document = parse_yaml(content, file)
    if document is None:
        return Kubeconfig(files=(file,))
    if not isinstance(document, Fields):
        raise ConfigError(f"must be a YAML mapping, not {kind_of(document)}", file=file)
    top = Entry(file, "", document)
    _check_type(top)
    kubeconfig = Kubeconfig(
        files=(file,),
        current_context=top.text("current-context"),
        current_context_file=file,
        contexts=_entries(top, "contexts", "context"),
        clusters=_entries(top, "clusters", "cluster"),
        users=_entries(top, "users", "user"),
    )
    warn_about_permissions(
        file, mode, has_credentials=any(_has_credentials(user) for user in kubeconfig.users.values())
    )
    return kubeconfig


def _has_credentials(user: Entry) -> bool:
    """Whether the file itself contains a credential of the user; files that it names are not meant."""
    if any(user.has(field) for field in ("token", "password", "client-key-data", "auth-provider")):
        return True
    plugin = user.fields.get("exec")
    return isinstance(plugin, Fields) and bool(plugin.get("env"))  # often a password or a token


def _check_type(top: Entry) -> None:
    for field, expected in (("kind", "Config"), ("apiVersion", "v1")):
        value = top.secret(field)  # the file may be something else
        if value is not None and value.reveal() != expected:
            raise top.error(field, f"must be {expected!r} in a kubeconfig")


def _entries(top: Entry, section: str, field: str) -> dict[str, Entry]:
    """Return the entries of ``section``, a list of ``{name: …, field: {…}}``.

    kubectl accepts entries that are null or have no name; nothing can refer to them, so they are left out.
    """
    items = top.fields.get(section)
    if items is None:
        return {}
    if not isinstance(items, Items):
        raise top.error(section, f"must be a list, not {kind_of(items)}")
    entries: dict[str, Entry] = {}
    for index, item in enumerate(items):
        if item is None:
            continue
        unnamed = Entry(top.file, f"{section}[{index}]", _mapping(top, f"{section}[{index}]", item))
        name = unnamed.text("name")
        if name is None:
            continue
        key = f"{section}[{name if name.isprintable() else repr(name)}]"
        if name in entries:
            raise top.error(key, "is twice in this file")
        body = unnamed.fields.get(field)
        fields = Fields() if body is None else _mapping(top, f"{key}.{field}", body)
        entries[name] = Entry(top.file, f"{key}.{field}", fields)
    return entries


def _mapping(top: Entry, key: str, value: Value) -> Fields:
    if not isinstance(value, Fields):
        raise top.error(key, f"must be a mapping, not {kind_of(value)}")
    return value
