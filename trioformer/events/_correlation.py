"""Limit the number of Events: combine similar events, and limit the rate for each object.

Source: client-go ``tools/record/events_cache.go``, ``EventAggregator`` and ``EventSourceObjectSpamFilter``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, TypeVar, final

import attrs

from .._retry import TokenBucket
from ._options import EventRecorderOptions
from ._series import MAX_NOTE, Observation, truncate

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

COMBINED: Final = "(combined from similar events): "
"""The prefix of the note of a combined event."""


def remember(cache: OrderedDict[K, V], key: K, value: V, size: int) -> V | None:
    """Store a value as the most recently used value, and return the evicted value, or None."""
    cache[key] = value
    cache.move_to_end(key)
    return cache.popitem(last=False)[1] if len(cache) > size else None


@final
@attrs.define(eq=False)
class _SimilarEvents:
    """A group of similar events with no gap longer than ``similar_period``."""

    details: set[Hashable] = attrs.field(factory=set)
    last_at: float = 0.0


@final
@attrs.define(eq=False)
class Aggregator:
    """Combines events that differ only in their note or ``related`` object."""

    _options: EventRecorderOptions
    _similar: OrderedDict[Hashable, _SimilarEvents] = attrs.field(factory=OrderedDict, init=False)

    def combine(self, observation: Observation, now: float) -> Observation | None:
        """Return the combined event that replaces this event, or None if the event is not combined."""
        similar = self._similar.get(observation.kind)
        if similar is None or now - similar.last_at > self._options.similar_period:
            similar = _SimilarEvents()
        similar.last_at = now
        remember(self._similar, observation.kind, similar, self._options.cache_size)
        if observation.detail in similar.details:
            return None
        if len(similar.details) < self._options.max_similar - 1:
            similar.details.add(observation.detail)
            return None
        note = truncate(COMBINED + observation.note, MAX_NOTE)
        return attrs.evolve(observation, related=None, note=note, is_combined=True)


@final
@attrs.define(eq=False)
class SpamFilter:
    """Limits the rate of new Events with a token bucket for each object and event type."""

    _options: EventRecorderOptions
    _buckets: OrderedDict[Hashable, TokenBucket] = attrs.field(factory=OrderedDict, init=False)

    def allows(self, observation: Observation) -> bool:
        """Take a token for one more Event, and return whether a token was available."""
        options = self._options
        bucket = self._buckets.get(observation.subject) or TokenBucket(
            1 / options.spam_refill_period, options.spam_burst
        )
        remember(self._buckets, observation.subject, bucket, options.cache_size)
        if bucket.delay() > 0:
            return False
        bucket.take()
        return True
