"""Finds models in merge patches, which cannot say there that a field is removed."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ._lazy import Model
from ._quantity import Quantity

__all__ = ["find_model"]


def find_model(patch: object, *, merges_lists: bool = False) -> tuple[str, object] | None:
    """Find a typed object that a patch would merge into a stored one; returns where it is, and the object.

    A model encodes a field that was cleared as an absent one, and a merge leaves absent fields as they are: the server
    would keep what the caller has cleared, and the response would look like a success.
    A typed object in a list is not merged: the list is replaced, or the object is added.

    Args:
        patch: The patch.
        merges_lists: Whether mappings in lists are merged, as in a strategic merge patch.
    """
    return _find(patch, (), merges_lists)


def _find(value: object, path: tuple[str, ...], merges_lists: bool) -> tuple[str, object] | None:
    if isinstance(value, Model) or (attrs.has(type(value)) and not isinstance(value, Quantity)):
        return ".".join(path), value
    if not isinstance(value, Mapping):
        return None
    for key, member in value.items():
        where = (*path, str(key))
        found = _find(member, where, merges_lists)
        if merges_lists and isinstance(member, list | tuple):
            items = (_find(item, where, merges_lists) for item in member if isinstance(item, Mapping))
            found = next(filter(None, items), None)
        if found is not None:
            return found
    return None
