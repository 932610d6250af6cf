"""Finds models in merge patches, which cannot say there that a field is removed."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ._lazy import Model
from ._quantity import Quantity
from ._values import MAX_LEVELS, TOO_DEEP

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

    Raises:
        ValueError: It has too many levels.
    """
    pending: list[tuple[object, str, int]] = [(patch, "", 0)]
    while pending:
        value, where, level = pending.pop()
        if isinstance(value, Model) or (attrs.has(type(value)) and not isinstance(value, Quantity)):
            return where, value
        if level > MAX_LEVELS:  # or it contains itself
            raise ValueError(f"a patch cannot be encoded: {TOO_DEEP}")
        members: list[tuple[object, str]] = []
        if isinstance(value, Mapping):
            members = [(member, f"{where}.{key}" if where else str(key)) for key, member in value.items()]
        elif merges_lists and isinstance(value, list | tuple):
            members = [(item, f"{where}[{number}]") for number, item in enumerate(value)]
        pending += [(member, place, level + 1) for member, place in reversed(members)]  # the first is looked at first
    return None
