"""The caches of the kinds of a factory, which contain the ranges that this process holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, final

import attrs
import trio

from ..cache import ApiListWatch, InformerPhase, SharedInformer
from ..cache._internal import DividedSource, Part
from ..leaderelection import Leadership
from ..models import KubernetesObject, ResourceInfo, resource_of
from ._held import CacheState, HeldRange
from ._kinds import By, KindShare
from ._shares import Shares

T = TypeVar("T", bound=KubernetesObject)

_ENDED: Final = (InformerPhase.STOPPED, InformerPhase.FAILED)


@final
@attrs.define(eq=False)
class ShareCaches:
    """The caches of the kinds of a factory, which contain the ranges that this process holds."""

    shares: Shares
    grace: float
    """How long the calls in a range may take to end when the range is given up, in seconds."""
    held: dict[int, HeldRange] = attrs.field(factory=dict, init=False)
    kinds: dict[KindShare[Any], SharedInformer[Any]] = attrs.field(factory=dict, init=False)
    """How each kind is divided, and its cache."""
    whole: set[str] = attrs.field(factory=set, init=False)
    """The cached kinds that are not divided."""
    _primaries: dict[str, By] = attrs.field(factory=dict, init=False)

    def divide(self, source: ApiListWatch[T] | Mapping[str, ApiListWatch[T]]) -> DividedSource[T] | None:
        """Return the divided source of a new informer, or None if its kind is whole.

        Raises:
            ValueError: The informer cannot be divided.
        """
        shares, plain = self.shares, source if isinstance(source, ApiListWatch) else next(iter(source.values()))
        resource = plain.api.resource
        by = _found(shares.labels, resource)
        if any(resource_of(each) == resource for each in shares.whole):
            self.whole.add(resource.kind)
            return None
        if not isinstance(source, ApiListWatch) or (by is None and shares.by == "namespace" and plain.api.namespace):
            raise ValueError(
                f"{resource} of given namespaces cannot be divided; omit namespace=, or add the kind to whole="
            )
        if by is None and shares.by == "namespace" and not resource.namespaced:
            raise ValueError(
                f"{resource} are cluster-scoped and cannot be divided by namespace; add it to whole=, or use "
                'by="uid" if a controller reconciles it'
            )
        share = KindShare(plain, "label" if by else shares.by, shares.ranges, self.held, by or "", self._primaries)
        if not by:
            self._primaries[resource.kind] = shares.by
        return DividedSource(f"{plain.name} in {shares.name}", plain, share, share.select)

    def add(self, informer: SharedInformer[T], source: DividedSource[T]) -> None:
        """Add an informer with a divided source, whose cache is filled with the ranges that are held."""
        kind = source.division
        assert isinstance(kind, KindShare)  # from divide()
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


def _found(labels: Mapping[type[KubernetesObject], str], resource: ResourceInfo) -> str | None:
    return next((label for kind, label in labels.items() if resource_of(kind) == resource), None)
