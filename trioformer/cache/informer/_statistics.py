"""The statistics of an informer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

import attrs

from .._bad_objects import QuarantineReason
from ..reflector._status import InformerPhase, ReflectorStatistics

_WORST_FIRST: tuple[InformerPhase, ...] = (
    InformerPhase.NOT_STARTED,
    InformerPhase.BACKING_OFF,
    InformerPhase.CONNECTING,
    InformerPhase.LISTING,
    InformerPhase.WAITING_FOR_BOOKMARK,
    InformerPhase.READING_WATCH_LIST,
    InformerPhase.WATCHING,
)
"""The phases of a reflector from worst to best; an informer reports the phase of its worst reflector."""


def worst_of(reflectors: Iterable[ReflectorStatistics]) -> ReflectorStatistics:
    """Return the statistics of the reflector in the worst phase.

    If several reflectors are in this phase, choose the reflector with the oldest data.
    """
    return min(reflectors, key=lambda each: (_WORST_FIRST.index(each.phase), each.up_to_date_at))


@final
@attrs.frozen
class InformerStatistics:
    """Statistics about an informer, its cache and its reflectors."""

    has_synced: bool
    """Whether the cache has synced and is up to date."""
    objects: int
    """The number of objects in the cache."""
    encoded_bytes: int
    """The number of bytes of these objects as they were received, or as a transform has made them."""
    pending: int
    """The number of changes that were received but are not in the cache yet."""
    handlers_and_subscriptions: int
    """The number of registered handlers and open subscriptions."""
    reflectors: Mapping[str, ReflectorStatistics]
    """The statistics of each reflector by namespace; the key is ``""`` if there is only one reflector."""
    quarantined: Mapping[QuarantineReason, int] = attrs.field(factory=dict)
    """The number of objects in quarantine for each reason."""
    missing: int = 0
    """The number of objects in quarantine that have no state in the cache."""

    @property
    def reflector(self) -> ReflectorStatistics:
        """The statistics of the reflector in the worst phase."""
        return worst_of(self.reflectors.values())
