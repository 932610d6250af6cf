"""Finds models in merge patches, which cannot say there that a field is removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from ._lazy import Model
from ._quantity import Quantity

__all__ = ["find_model"]


def find_model(patch: object, *, merges_lists: bool = False) -> tuple[str, object] | None:
    """Find a typed object that a patch would merge into a stored one; returns where it is, and the object.

    A model encodes a field that was cleared as an absent one, and a merge leaves absent fields as they are: the server
    would keep what the caller has cleared, and the response would look like a success.
    A merge patch replaces lists, so a typed object in one is not merged.  A strategic merge patch merges many lists
    item by item, and only the server knows which, so there an item must not be typed either.

    Args:
        patch: The patch.
        merges_lists: Whether items of lists are merged, as in a strategic merge patch.
    """
    return _find(patch, "", merges_lists)


def _find(value: object, where: str, merges_lists: bool) -> tuple[str, object] | None:
    if isinstance(value, Model) or (attrs.has(type(value)) and not isinstance(value, Quantity)):
        return where, value
    members: Iterable[tuple[str, object]] = ()
    if isinstance(value, Mapping):
        members = ((f"{where}.{key}" if where else str(key), member) for key, member in value.items())
    elif merges_lists and isinstance(value, list | tuple):
        members = ((f"{where}[{number}]", item) for number, item in enumerate(value))
    return next(filter(None, (_find(member, place, merges_lists) for place, member in members)), None)
