"""How many bytes of Python objects are alive, without tracing each allocation for it."""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

from trioformer.models._internal import Raw

_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


@contextmanager
def only_what_is_new() -> Iterator[None]:
    """Leave out of :func:`live_bytes` whatever exists before the block."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as before


def live_bytes() -> int:
    """The size of all objects that the garbage collector knows, and of what they refer to, after a full collection.

    Classes, modules and functions are left out, and so are the caches of fixed size in which urllib and httpx keep the
    last addresses: they fill in the course of hours.
    """
    _forget_addresses()
    gc.collect()
    found = gc.get_objects()
    seen = {id(found)}
    total = 0
    while found:
        following: list[object] = []
        for one in found:
            if id(one) not in seen and not isinstance(one, _SHARED):
                seen.add(id(one))
                total += (
                    Raw.__basicsize__ if isinstance(one, Raw) else sys.getsizeof(one)
                )  # msgspec gets its own size wrong
                following += [other for other in gc.get_referents(one) if not gc.is_tracked(other)]
        found = following
    return total


def _forget_addresses() -> None:
    for name, module in tuple(sys.modules.items()):
        if name.startswith(("urllib.", "httpx.")):
            for member in vars(module).values():
                if isinstance(member, functools._lru_cache_wrapper):
                    member.cache_clear()
