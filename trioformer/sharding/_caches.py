"""The caches of the ranges that this process holds."""

from __future__ import annotations

from typing import Any, Final, final

import attrs
import trio

from ..cache import InformerPhase, SharedInformer
from ..cache._internal import Part
from ..leaderelection import Leadership
from ._held import CacheState, HeldRange
from ._kinds import KindShare

_ENDED: Final = (InformerPhase.STOPPED, InformerPhase.FAILED)


@final
@attrs.define(eq=False)
class ShareCaches:
    """The caches of the ranges that this process holds."""

    grace: float
    """How long the calls in a range may take to end when the range is given up, in seconds."""
    held: dict[int, HeldRange] = attrs.field(factory=dict, init=False)
    kinds: dict[KindShare[Any], SharedInformer[Any]] = attrs.field(factory=dict, init=False)
    """How each kind is divided, and its cache."""

    def add(self, informer: SharedInformer[Any], kind: KindShare[Any]) -> None:
        """Add a cache, which is filled with the ranges that are held."""
        for each in [each for each, other in self.kinds.items() if other.state.phase in _ENDED]:
            del self.kinds[each]
            for held in self.held.values():
                if (part := held.parts.pop(each, None)) is not None:
                    part.close()
        self.kinds[kind] = informer
        for held in self.held.values():
            if held.state is not CacheState.RELEASING:
                # before the cache runs, so that it syncs with this part
                held.parts[kind] = Part(informer, str(held.number))

    async def hold(self, number: int, leadership: Leadership, giving_up: trio.Event) -> None:
        """Keep the caches of a range until it is given up or lost.

        The calls in the range have ended when this function returns, and the caches will remove its objects next.

        Cancellation: the calls are cancelled, and the function waits until they have ended.
        """
        held = self.held[number] = HeldRange(number, leadership)
        for kind, informer in self.kinds.items():
            held.parts[kind] = Part(informer, str(number))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._fill, held)
                await giving_up.wait()
                held.become(CacheState.RELEASING)
                with trio.move_on_after(self.grace):
                    await held.wait_until_idle()
                nursery.cancel_scope.cancel()
        finally:
            held.become(CacheState.RELEASING)
            await held.end_calls()
            del self.held[number]
            for part in held.parts.values():
                part.close()
            for kind in self.kinds:
                kind.forget(number)

    async def _fill(self, held: HeldRange) -> None:
        """Wait until the caches contain a range, but not for those that are added later."""
        for part in [*held.parts.values()]:
            await part.wait_until_listed()
        if held.state is CacheState.LISTING:
            held.become(CacheState.READY)
