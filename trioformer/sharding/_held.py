"""A range that this process holds, and the calls to ``reconcile`` in it.

========= =============================================== ==========================================
State     Until                                           Calls for objects of the range
========= =============================================== ==========================================
LISTING   all caches contain the first list of the range  wait for the next state
READY     another member asks for it, or the lease ends   begin
RELEASING its calls have ended, and its objects are gone  do not begin; those that run may finish,
                                                          unless the lease is lost
========= =============================================== ==========================================

A cache that is added later syncs when it contains the ranges that are held by then.  Calls do not wait for it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import attrs
import trio

from ..cache._internal import Part
from ..leaderelection import Leadership

if TYPE_CHECKING:
    from ..cache._internal import Share


class CacheState(enum.Enum):
    """The state of a range that this process holds."""

    LISTING = "listing"
    READY = "ready"
    RELEASING = "releasing"


@final
@attrs.define(eq=False)
class HeldRange:
    """A range that this process holds, and the calls to ``reconcile`` for its objects."""

    number: int
    leadership: Leadership
    state: CacheState = attrs.field(default=CacheState.LISTING, init=False)
    parts: dict[Share, Part] = attrs.field(factory=dict, init=False)
    """The part of the cache of each kind that contains the range."""
    _calls: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    _ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Replaced for each wait; set when the last call has ended."""
    _waiting: dict[Callable[[], object], None] = attrs.field(factory=dict, init=False)
    """Functions that add the requests again for which a call was too early."""

    @contextmanager
    def call(self, again: Callable[[], object]) -> Iterator[trio.CancelScope | None]:
        """Open a scope for a call; see `Share.open_call`."""
        if self.state is not CacheState.READY or not self.leadership.is_held:
            if self.state is CacheState.LISTING:
                self._waiting[again] = None
            yield None
            return
        with trio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                yield scope
            finally:
                self._calls.discard(scope)
                if not self._calls:
                    self._ended.set()

    def become(self, state: CacheState) -> None:
        """Change the state, and add the requests again that have waited for it."""
        self.state = state
        waiting, self._waiting = self._waiting, {}
        if state is CacheState.READY:
            for again in waiting:
                again()

    async def end_calls(self) -> None:
        """Cancel the calls that are running, and wait until they have ended, even after cancellation."""
        for scope in self._calls:
            scope.cancel()
        with trio.CancelScope(shield=True):
            await self.wait_until_idle()

    async def wait_until_idle(self) -> None:
        """Wait until no call is running."""
        while self._calls:
            self._ended = trio.Event()
            await self._ended.wait()
