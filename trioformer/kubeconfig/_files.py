"""Reads and merges kubeconfig files; the first file with an entry wins (client-go's ``tools/clientcmd/loader.go``).

Here only the structure is checked; the methods of ``Entry`` check the fields of the entries that are used.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import final

import attrs
import trio

from .._files import is_stream
from .._util import warn_once
from ..errors import ConfigError
from ._checks import CheckError, MissingError, read_file
from ._entries import Entry, Problems
from ._values import Fields, Items, Value, kind_of, parse_yaml

_log = logging.getLogger("trioformer.kubeconfig.permissions")
_CREDENTIALS = ("token", "password", "client-key-data")


class StreamError(ConfigError):
    """A kubeconfig is a FIFO or a device, and was not read."""


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
        StreamError: It is a FIFO or a device, and this is a task, not a thread that may wait.
        ConfigError: It cannot be read, is not YAML, or does not have the structure of a kubeconfig.
    """
    if trio.lowlevel.in_trio_run() and is_stream(file):
        hint = "open_client(kubeconfig=…) reads it in a thread, or load it before trio.run()"
        raise StreamError(f"is a FIFO or a device, for which a task must not wait: {hint}", file=file)
    try:
        content = read_file(file)
    except MissingError:
        raise
    except CheckError as exc:
        raise ConfigError(str(exc), file=file) from exc
    document = parse_yaml(content, file)
    if document is None:
        return Kubeconfig(files=(file,))
    if not isinstance(document, Fields):
        raise ConfigError(f"must be a YAML mapping, not {kind_of(document)}", file=file)
    top = Entry(file, "", document)
    problems = Problems()
    _check_type(top, problems)
    kubeconfig = Kubeconfig(
        files=(file,),
        current_context=problems.attempt(lambda: top.text("current-context")),
        current_context_file=file,
        contexts=_entries(top, "contexts", "context", problems),
        clusters=_entries(top, "clusters", "cluster", problems),
        users=_entries(top, "users", "user", problems),
    )
    problems.raise_if_any()
    if any(user.has(field) for user in kubeconfig.users.values() for field in _CREDENTIALS):
        _warn_about_mode(file)
    return kubeconfig


def read_one(file: str) -> Kubeconfig:
    """Read a file that must exist.

    Raises:
        ConfigError: It does not, or is not valid.
    """
    try:
        return read_kubeconfig(file)
    except MissingError as exc:
        hint = "; ~ is not expanded" if file.startswith("~") else ""
        raise ConfigError(f"does not exist{hint}", file=file or "''") from exc


def read_list(files: Iterable[str]) -> tuple[Kubeconfig, list[str]]:
    """Merge the files that exist; return the reasons for those that are missing or empty.

    Raises:
        StreamError: As for :func:`read_kubeconfig`; nothing of a stream has been read.
        ConfigError: A file is not valid; lists the problems of all.
    """
    merged = Kubeconfig()
    reasons: list[str] = []
    problems = Problems()
    for file in dict.fromkeys(files):
        try:
            kubeconfig = read_kubeconfig(file)
        except MissingError as exc:
            reasons.append(f"{file!r} ({exc})")
            continue
        except StreamError:
            raise
        except ConfigError as exc:
            problems.add(exc)
            continue
        merged = merged.merge(kubeconfig)
        if kubeconfig.is_empty:
            reasons.append(f"{file!r} (is empty)")
    problems.raise_if_any()
    return merged, reasons


def _warn_about_mode(file: str) -> None:
    """Warn, once for each file, if others may read or change it; helm does, and kubectl does not."""
    with suppress(OSError):  # it was replaced meanwhile
        mode = os.stat(file).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            shown = f"{file}: others may read or change it (mode {stat.S_IMODE(mode):04o})"
            warn_once(_log, f"{shown}: run chmod 600 {shlex.quote(file)}")


def _check_type(top: Entry, problems: Problems) -> None:
    for field, expected in (("kind", "Config"), ("apiVersion", "v1")):
        value = problems.attempt(lambda field=field: top.secret(field))  # type: ignore[misc]  # mypy cannot infer it
        if value is not None and value.reveal() != expected:  # the file may be something else
            problems.add(top.error(field, f"must be {expected!r} in a kubeconfig"))


def _entries(top: Entry, section: str, field: str, problems: Problems) -> dict[str, Entry]:
    """Return the entries of ``section``, a list of ``{name: …, field: {…}}``.

    kubectl accepts entries that are null or have no name; nothing can refer to them, so they are left out.
    """
    items = top.fields.get(section)
    if items is None:
        return {}
    if not isinstance(items, Items):
        problems.add(top.error(section, f"must be a list, not {kind_of(items)}"))
        return {}
    entries: dict[str, Entry] = {}
    for index, item in enumerate(items):
        try:
            entry = _entry(top, f"{section}[{index}]", section, field, item)
        except ConfigError as exc:
            problems.add(exc)
            continue
        if entry is None:
            continue
        name, body = entry
        if name in entries:
            problems.add(top.error(body.key.removesuffix(f".{field}"), "is twice in this file"))
        entries.setdefault(name, body)
    return entries


def _entry(top: Entry, key: str, section: str, field: str, item: Value) -> tuple[str, Entry] | None:
    if item is None:
        return None
    unnamed = Entry(top.file, key, _mapping(top, key, item))
    name = unnamed.text("name")
    if name is None:
        return None
    key = f"{section}[{name if name.isprintable() else repr(name)}].{field}"
    body = unnamed.fields.get(field)
    return name, Entry(top.file, key, Fields() if body is None else _mapping(top, key, body))


def _mapping(top: Entry, key: str, value: Value) -> Fields:
    if not isinstance(value, Fields):
        raise top.error(key, f"must be a mapping, not {kind_of(value)}")
    return value
