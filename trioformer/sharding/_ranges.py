"""The ranges of hashes into which the objects are divided.

Source: apimachinery ``pkg/sharding`` (KEP-5866), so that kube-apiserver divides the objects in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1


def fnv1a(text: str) -> int:
    """Return the FNV-1a hash of a text, of 64 bits."""
    value = _OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


@lru_cache(maxsize=4096)
def range_of(text: str, count: int) -> int:
    """Return the number of the range to which a text belongs, from 0 to ``count - 1``."""
    return fnv1a(text) * count >> 64


def shard_selector(field: str, numbers: Iterable[int], count: int) -> str:
    """Return the ``shardSelector`` for the objects whose field, such as ``metadata.uid``, belongs to sorted ranges."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    hashes = ([-(-each * 2**64 // count) for each in run] for run in runs)
    return " || ".join(f"shardRange(object.{field}, '{begin:#018x}', '{end:#018x}')" for begin, end in hashes)
