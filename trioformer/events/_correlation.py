"""What keeps a server from being flooded with Events: similar ones are combined, and an object gets only so many.

Source: client-go ``tools/record/events_cache.go``, ``EventAggregator`` and ``EventSourceObjectSpamFilter``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, TypeVar, final

import attrs

from .._retry import TokenBucket
from ._options import EventRecorderOptions
from ._series import MAX_NOTE, Observation, shortened

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

COMBINED: Final = "(combined from similar events): "
"""How the note of a combined event begins."""


def remember(cache: OrderedDict[K, V], key: K, value: V, size: int) -> V | None:
    """Make a value the most recently used; returns the least recently used one where that is one too many."""
    cache[key] = value
    cache.move_to_end(key)
    return cache.popitem(last=False)[1] if len(cache) > size else None


@final
@attrs.define(eq=False)
class _Family:
    """Similar events that were seen one after the other."""

    details: set[Hashable] = attrs.field(factory=set)
    seen_at: float = 0.0


@final
@attrs.define(eq=False)
class Aggregator:
    """Notices events that differ in their note or ``related`` only."""

    _options: EventRecorderOptions
    _families: OrderedDict[Hashable, _Family] = attrs.field(factory=OrderedDict, init=False)

    def combine(self, observation: Observation, now: float) -> Observation | None:
        """Return the combined event that this one is to be part of; None if it stands for itself."""
        family = self._families.get(observation.kind)
        if family is None or now - family.seen_at > self._options.similar_period:
            family = _Family()
        family.seen_at = now
        remember(self._families, observation.kind, family, self._options.cache_size)
        if observation.detail in family.details:
            return None
        if len(family.details) < self._options.max_similar - 1:
            family.details.add(observation.detail)
            return None
        note = shortened(COMBINED + observation.note, MAX_NOTE)
        return attrs.evolve(observation, related=None, note=note, is_combined=True)


@final
@attrs.define(eq=False)
class SpamFilter:
    """Says no when an object gets Events too fast: a token bucket for each object and type."""

    _options: EventRecorderOptions
    _buckets: OrderedDict[Hashable, TokenBucket] = attrs.field(factory=OrderedDict, init=False)

    def admits(self, observation: Observation) -> bool:
        """Count one more Event, if there may be one."""
        options = self._options
        bucket = self._buckets.get(observation.subject) or TokenBucket(
            1 / options.spam_refill_period, options.spam_burst
        )
        remember(self._buckets, observation.subject, bucket, options.cache_size)
        if bucket.delay() > 0:
            return False
        bucket.take()
        return True
