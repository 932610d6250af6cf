"""The caches of the ranges that this process holds, and the calls to ``reconcile`` in them.

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
from typing import Any, Final, final

import attrs
import trio

from ..cache import InformerPhase, SharedInformer
from ..cache._internal import Part
from ..leaderelection import Leadership
from ._kinds import KindShare
from ._ownership import OwnedRange

_ENDED: Final = (InformerPhase.STOPPED, InformerPhase.FAILED)


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
    parts: dict[SharedInformer[Any], Part] = attrs.field(factory=dict, init=False)
    """The part of each cache that contains the range."""
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

    def cancel_calls(self) -> None:
        """Cancel the calls that are running."""
        for scope in self._calls:
            scope.cancel()

    async def wait_until_idle(self) -> None:
        """Wait until no call is running."""
        while self._calls:
            self._ended = trio.Event()
            await self._ended.wait()


@final
@attrs.define(eq=False)
class ShareCaches:
    """The caches of the ranges that this process holds."""

    grace: float
    """How long the calls in a range may take to end when the range is given up, in seconds."""
    held: dict[int, HeldRange] = attrs.field(factory=dict, init=False)
    kinds: dict[SharedInformer[Any], KindShare[Any]] = attrs.field(factory=dict, init=False)
    """The divided caches, and how they are divided."""
    _added: trio.Event = attrs.field(factory=trio.Event, init=False)

    def add(self, informer: SharedInformer[Any], kind: KindShare[Any]) -> None:
        """Add a cache, which is filled with the ranges that are held."""
        for each in [each for each in self.kinds if each.state.phase in _ENDED]:
            del self.kinds[each]
            for held in self.held.values():
                if (part := held.parts.pop(each, None)) is not None:
                    part.close()
        self.kinds[informer] = kind
        for held in self.held.values():
            if held.state is not CacheState.RELEASING:
                _open_part(held, informer, kind)  # before the cache runs, so that it syncs with this part
        self._added.set()
        self._added = trio.Event()

    def is_held(self, number: int) -> bool:
        """Return whether this process certainly holds a range; the last calls read it while it is given up."""
        return (held := self.held.get(number)) is not None and held.leadership.is_held

    @contextmanager
    def open_call(self, number: int | None, again: Callable[[], object]) -> Iterator[trio.CancelScope | None]:
        """Open a scope for a call in a range, or in none; see `Share.open_call`."""
        held = None if number is None else self.held.get(number)
        if held is None:
            yield None
        else:
            with held.call(again) as scope:
                yield scope

    async def hold(self, owned: OwnedRange) -> None:
        """Keep the caches of a range until it is given up or lost.

        The calls in the range have ended when this function returns, and the caches will remove its objects next.

        Cancellation: the calls are cancelled, and the function waits until they have ended.
        """
        held = self.held[owned.number] = HeldRange(owned.number, owned.leadership)
        for informer, kind in self.kinds.items():
            _open_part(held, informer, kind)
        try:
            async with trio.open_nursery() as nursery:
                try:
                    nursery.start_soon(self._fill, held)
                    await owned.giving_up.wait()
                    held.become(CacheState.RELEASING)
                    with trio.move_on_after(self.grace):
                        await held.wait_until_idle()
                finally:
                    held.become(CacheState.RELEASING)
                    held.cancel_calls()
                    with trio.CancelScope(shield=True):
                        await held.wait_until_idle()
                nursery.cancel_scope.cancel()
        finally:
            del self.held[owned.number]
            for part in held.parts.values():
                part.close()
            for kind in self.kinds.values():
                kind.forget(owned.number)

    async def _fill(self, held: HeldRange) -> None:
        """Wait until the caches contain a range, and then for those that are added later."""
        while True:
            added = self._added  # no checkpoint between this and the list of the parts
            for informer, part in [*held.parts.items()]:
                await part.wait_until_listed()
                if informer.state.phase not in _ENDED:
                    self.kinds[informer].listed.add(held.number)
            if held.state is CacheState.LISTING:
                held.become(CacheState.READY)
            await added.wait()


def _open_part(held: HeldRange, informer: SharedInformer[Any], kind: KindShare[Any]) -> None:
    held.parts[informer] = Part(informer, str(held.number), kind.written(held.number))
