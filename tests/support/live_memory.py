"""Measure the bytes of all live Python objects, without tracing allocations."""

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
    """Exclude the objects that exist before the block from :func:`live_bytes`."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as before


def live_bytes() -> int:
    """Return the size of all objects that the garbage collector tracks and their referents, after a full collection.

    Classes, modules and functions are excluded, and the bounded caches of addresses in urllib and httpx, which fill
    over hours, are cleared.
    """
    _clear_address_caches()
    gc.collect()
    found = gc.get_objects()
    seen = {id(found)}
    total = 0
    while found:
        following: list[object] = []
        for one in found:
            if id(one) not in seen and not isinstance(one, _SHARED):
                seen.add(id(one))
                # The __sizeof__ of msgspec.Raw is wrong.
                total += Raw.__basicsize__ if isinstance(one, Raw) else sys.getsizeof(one)
                following += [other for other in gc.get_referents(one) if not gc.is_tracked(other)]
        found = following
    return total


def _clear_address_caches() -> None:
    for name, module in tuple(sys.modules.items()):
        if name.startswith(("urllib.", "httpx.")):
            for member in vars(module).values():
                if isinstance(member, functools._lru_cache_wrapper):
                    member.cache_clear()
