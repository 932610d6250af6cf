"""The history of an object as text, for the errors of tests that wait for it in vain."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

from ._storage._kinds import ServedKind
from ._storage._storage import Storage, Stored

_STATES: Final = 20
"""The number of changes that are described, the last ones."""
_FIELDS: Final = 20
"""The number of fields that are described for each change."""
_LENGTH: Final = 80
"""The number of characters of a value that are shown."""
_HIDDEN: Final = ("data", "stringData", "annotations")
"""The fields of Secrets whose values are not shown.  ``kubectl apply`` copies the data to an annotation."""
_QUIET: Final = (("metadata", "resourceVersion"), ("metadata", "managedFields"))


def describe_history(storage: Storage, served: ServedKind, key: str) -> list[str]:
    """Return a line for each change of an object that is not compacted, with the fields that changed.

    Values in Secrets are not shown.  If the object has not changed since the last compaction, return its fields.
    """
    changes = [change for change in storage.changes(served.resource) if change.object.key == key]
    lines = [f"... {len(changes) - _STATES} earlier changes"] if len(changes) > _STATES else []
    for change in changes[-_STATES:]:
        by = f" by {change.manager}" if change.manager else ""
        lines.append(f"{change.type} at resourceVersion {change.revision}{by}")
        lines += [f"    {line}" for line in _limited(_differences(served, change.before, change.object))]
    if not changes and (stored := storage.get(served.resource, key)) is not None:
        lines.append(f"unchanged since resourceVersion {stored.revision}")
        lines += [f"    {line}" for line in _limited(_differences(served, None, stored))]
    return lines or ["it has never existed, or its history is compacted"]


def _limited(lines: Iterator[str]) -> list[str]:
    shown = list(lines)
    more = len(shown) - _FIELDS
    return shown if more <= 0 else [*shown[:_FIELDS], f"... {more} more fields"]


def _differences(served: ServedKind, before: Stored | None, after: Stored) -> Iterator[str]:
    old = {} if before is None else dict(_fields(before.decoded()))
    new = dict(_fields(after.decoded()))
    is_secret = served.resource == "secrets"
    for path in sorted(old.keys() | new.keys()):
        if path[:2] in _QUIET or old.get(path, ...) == new.get(path, ...):
            continue
        is_hidden = is_secret and bool(set(path[:2]) & set(_HIDDEN))
        show = functools.partial(_shown, is_hidden=is_hidden)
        name = ".".join(path)
        if path not in new:
            yield f"{name} was removed, it was {show(old[path])}"
        elif path in old:
            yield f"{name}: {show(old[path])} -> {show(new[path])}"
        else:
            yield f"{name}: {show(new[path])}"


def _fields(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of each leaf.  Items of lists of objects are named by their key or index."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from _fields(member, (*path, str(name)))
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            label = item.get("type") or item.get("name") or index
            yield from _fields(item, (*path, f"[{label}]"))
    else:
        yield path, value


def _shown(value: Any, *, is_hidden: bool) -> str:
    text = "(a secret value)" if is_hidden else repr(value)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."
