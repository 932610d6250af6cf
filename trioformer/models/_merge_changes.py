"""Write a changed value into JSON that has more members than the value's class has fields."""

from __future__ import annotations

import collections
from typing import Any

from ._serde import decode, decode_error, dumps, dumps_sorted

__all__ = ["merge_changes"]


def merge_changes(old: bytes, before: bytes, after: bytes) -> bytes:
    """Apply the difference between two JSON values to a third value, which may have more members.

    Args:
        old: The JSON from the server.
        before: The encoding of the value that was decoded from ``old``.
        after: The encoding of the changed value.

    Returns:
        The changed JSON, including the members that the value's class does not have.

    Raises:
        DecodeError: An argument is not JSON, or has too many levels.
    """
    try:
        return dumps(_merged(*map(decode, (old, before, after))))
    except RecursionError as error:  # in a program with many calls below it
        raise decode_error(error, "JSON") from error


def _merged(old: Any, before: Any, after: Any) -> Any:
    if all(isinstance(value, dict) for value in (old, before, after)):
        members = {key: value for key, value in old.items() if key in after or key not in before}
        for key, value in after.items():
            if key not in before or not _is_same(before[key], value):
                members[key] = _merged(old.get(key), before.get(key), value)
        return members
    if all(isinstance(value, list) for value in (old, before, after)) and len(old) == len(before):
        return _merged_items(old, before, after)
    return after


def _merged_items(old: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Replace each unchanged item with the old item, even if its position has changed.

    Each old item is used only once, because old items can differ in members that the class does not have.  The
    function first matches equal items at both ends of the list.  The remaining items are then matched by value, in
    order.
    """
    was, now = list(map(dumps_sorted, before)), list(map(dumps_sorted, after))
    front = _count_alike(was, now)
    back = _count_alike(was[front:][::-1], now[front:][::-1])
    left: dict[bytes, collections.deque[Any]] = {}
    for i in range(front, len(was) - back):
        left.setdefault(was[i], collections.deque()).append(old[i])
    between = [left[now[i]].popleft() if left.get(now[i]) else after[i] for i in range(front, len(now) - back)]
    return [*old[:front], *between, *old[len(old) - back :]]


def _count_alike(one: list[bytes], other: list[bytes]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_same(one: object, other: object) -> bool:
    return dumps_sorted(one) == dumps_sorted(other)
