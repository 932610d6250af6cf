"""Read and merge kubeconfig files.

If several files contain the same entry, the first file wins (client-go's ``tools/clientcmd/loader.go``).

This module checks only the structure of the files. The methods of ``Entry`` check the fields of the entries that are
used.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, final

import attrs
import trio

from .._files import is_stream, read_file
from .._secret import Secret
from .._suggestions import describe
from .._util import warn_once
from ..errors import ConfigError
from ._entries import Entry, Problems

_log = logging.getLogger("trioformer.kubeconfig.permissions")
_CREDENTIALS = ("token", "password", "client-key-data")


class StreamError(ConfigError):
    """A kubeconfig is a FIFO or a device, and was therefore not read."""


@final
@attrs.frozen
class Kubeconfig:
    """The merged content of kubeconfig files."""

    problems: Problems = attrs.field(factory=Problems)
    """The problems with the entries."""
    files: tuple[str, ...] = ()
    """The files, in order of precedence."""
    current_context: str | None = None
    """The name of the default context."""
    current_context_file: str | None = None
    """The file that sets the current context."""
    contexts: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    """Contexts by name."""
    clusters: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    """Clusters by name."""
    users: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    """Users by name."""

    @property
    def is_empty(self) -> bool:
        """Return whether there are no contexts, no clusters, no users and no current context."""
        return not (self.current_context or self.contexts or self.clusters or self.users)

    def merge(self, other: Kubeconfig) -> Kubeconfig:
        """Add the entries of ``other``. If both contain an entry with the same name, the entry in ``self`` is kept."""
        chosen = self if self.current_context else other
        return Kubeconfig(
            problems=self.problems,
            files=(*self.files, *other.files),
            current_context=chosen.current_context,
            current_context_file=chosen.current_context_file,
            contexts={**other.contexts, **self.contexts},
            clusters={**other.clusters, **self.clusters},
            users={**other.users, **self.users},
        )


def read_one(file: str) -> Kubeconfig:
    """Read a file that must exist.

    Raises:
        StreamError: As for :func:`read_list`.
        ConfigError: The file does not exist, or is not valid.
    """
    kubeconfig, _ = read_list([file])
    if not kubeconfig.files:
        hint = "; ~ is not expanded" if file.startswith("~") else ""
        raise ConfigError(f"does not exist{hint}", file=file or "''")
    return kubeconfig


def read_list(files: Iterable[str]) -> tuple[Kubeconfig, list[str]]:
    """Merge the existing files, and return the reasons why the remaining files were skipped.

    Raises:
        StreamError: A file was not read because it is a FIFO or a device, on which a trio task must not block.
        ConfigError: A file cannot be read or is not a kubeconfig. The error lists all problems.
    """
    merged = Kubeconfig()
    reasons: list[str] = []
    problems = merged.problems
    for file in dict.fromkeys(files):
        if trio.lowlevel.in_trio_run() and is_stream(file):
            hint = "open_client(kubeconfig=…) reads it in a thread, or load it before trio.run()"
            raise StreamError(f"is a FIFO or a device, and reading it would block trio: {hint}", file=file)
        try:
            content = read_file(file)
        except FileNotFoundError:
            reasons.append(f"{file!r} (does not exist)")
            continue
        except OSError as exc:
            problems.add(f"cannot be read: {exc.strerror}", file, None)
            continue
        kubeconfig = _parse(content, file, problems)
        merged = merged.merge(kubeconfig)
        if kubeconfig.is_empty:
            reasons.append(f"{file!r} (is empty)")
    problems.raise_if_any()
    return merged, reasons


def _parse(content: Secret[bytes], file: str, problems: Problems) -> Kubeconfig:
    document = _load_yaml(content, file, problems)
    if document is None:
        return Kubeconfig(files=(file,))
    if not isinstance(document, dict):
        problems.add(f"must be a YAML mapping, not {describe(document)}", file, None)
        return Kubeconfig()
    top = Entry(problems, file, "", document)
    for field, expected in (("kind", "Config"), ("apiVersion", "v1")):
        if top.text(field) not in (None, expected):  # the file may be something else
            top.report(field, f"must be {expected!r} in a kubeconfig")
    kubeconfig = Kubeconfig(
        files=(file,),
        current_context=top.text("current-context"),
        current_context_file=file,
        contexts=_entries(top, "contexts", "context"),
        clusters=_entries(top, "clusters", "cluster"),
        users=_entries(top, "users", "user"),
    )
    if any(user.has(*_CREDENTIALS) for user in kubeconfig.users.values()):
        _warn_about_mode(file)
    return kubeconfig


def _load_yaml(content: Secret[bytes], file: str, problems: Problems) -> Any:
    """Return the value of the only document, or None for an empty file.

    The document may be followed by an empty one, for example after a ``---`` at the end of the file.
    """
    # PyYAML is a fifth of this library's import time, and a program in a pod does not read a kubeconfig.
    from .._yaml import YamlError, compose, decode_text  # noqa: PLC0415

    try:
        found = compose(decode_text(content))
    except YamlError as exc:
        problems.add(str(exc), file, None)
        return None
    if found.error is not None:
        problems.add(str(found.error), file, None)
        return None
    for problem in found.problems:
        problems.add(f"{problem.message} (line {problem.line}, column {problem.column})", file, None)
    if found.problems:
        return None
    for document in found.documents[1:]:
        if document.value is not None or len(found.documents) > 2:
            message = f"contains a second document: remove it (line {document.line}, column {document.column})"
            problems.add(message, file, None)
    return found.documents[0].value if found.documents else None


def _warn_about_mode(file: str) -> None:
    """Warn once per file if other users can read or change the file. Unlike kubectl, helm warns about this too."""
    if os.name == "nt":  # Windows does not have such modes
        return
    with suppress(OSError):  # the file was replaced meanwhile
        mode = os.stat(file).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            shown = f"{file}: other users can read or change it (mode {stat.S_IMODE(mode):04o})"
            import shlex  # noqa: PLC0415  # only for this warning

            warn_once(_log, f"{shown}: run chmod 600 {shlex.quote(file)}")


def _entries(top: Entry, section: str, field: str) -> dict[str, Entry]:
    """Return the entries of ``section``, which is a list of mappings ``{name: …, field: {…}}``.

    Null and unnamed entries are skipped, because kubectl accepts them and nothing can refer to them.
    """
    entries: dict[str, Entry] = {}
    for unnamed in top.mappings(section):
        name = unnamed.text("name")
        if name is None:
            continue
        key = f"{section}[{name if name.isprintable() else repr(name)}]"
        inner = attrs.evolve(unnamed, key=key).mapping(field)
        entry = Entry(top.problems, top.file, f"{key}.{field}") if inner is None else inner
        if name in entries:
            top.report(key, "appears twice in this file")
        entries.setdefault(name, entry)
    return entries
