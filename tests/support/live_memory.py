"""Measure the bytes of all live Python objects, without tracing allocations."""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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


def live_bytes(config: pytest.Config) -> int:
    """Return the size of all objects that the garbage collector tracks and their referents, after a full collection.

    Classes, modules and functions are excluded, and the bounded caches of addresses in urllib and httpx, which fill
    over hours, are cleared. The queue of the tests that this process is to run is excluded too: pytest-xdist replaces
    it when another process takes some of them, which may be at any time.
    """
    _clear_address_caches()
    gc.collect()
    found = gc.get_objects()
    queues = (getattr(plugin, "torun", None) for plugin in config.pluginmanager.get_plugins())
    seen = {id(found), *(id(queue._items) for queue in queues if queue is not None)}
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
