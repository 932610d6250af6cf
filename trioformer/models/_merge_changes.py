"""Write a change of a value into JSON, when the value's class knows only a part of that JSON."""

from __future__ import annotations

import collections
from typing import Any

from ._serde import decode, decode_error, dumps, dumps_sorted

__all__ = ["merge_changes"]


def merge_changes(old: bytes, before: bytes, after: bytes) -> bytes:
    """Apply the difference between two values to a third, which may have more members.

    Args:
        old: The JSON that the server sent.
        before: The encoding of the value that was decoded from it.
        after: The encoding of the changed value.

    Returns:
        The changed JSON, with the members that the class of the value does not have.

    Raises:
        DecodeError: One of them is not JSON, or has too many levels.
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
    """Replace each unchanged item, which may have moved, by the old one.

    Items may differ only in members that the class does not have, so each old item is used once.  Equal items at both
    ends are matched first, and the items between them by value, in order.
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
