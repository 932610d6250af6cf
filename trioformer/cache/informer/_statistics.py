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
    """Return the statistics of the reflector in the worst phase; of several, those with the oldest data."""
    return min(reflectors, key=lambda each: (_WORST_FIRST.index(each.phase), each.up_to_date_at))


@final
@attrs.frozen
class InformerStatistics:
    """The state of an informer, and what it holds."""

    has_synced: bool
    """Whether the cache has synced and is up to date."""
    objects: int
    """Objects in the cache."""
    pending: int
    """Changes that were received but are not in the cache yet."""
    handlers_and_subscriptions: int
    """Registered handlers and open subscriptions."""
    reflectors: Mapping[str, ReflectorStatistics]
    """The statistics of each reflector, by namespace for a cache of several namespaces, otherwise under ``""``."""
    quarantined: Mapping[QuarantineReason, int] = attrs.field(factory=dict)
    """Objects in quarantine, by reason; every reason has a count."""
    missing: int = 0
    """Objects in quarantine without any state in the cache."""

    @property
    def reflector(self) -> ReflectorStatistics:
        """The statistics of the reflector in the worst state."""
        return worst_of(self.reflectors.values())
