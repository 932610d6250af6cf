"""The reflectors of an informer, and its state and statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, final

import attrs
import trio

from ..._text import some_of
from ...errors import DecodeError
from ...models import KubernetesObject
from .._bad_objects import QuarantineReason
from ..reflector._list_watch import ListWatch
from ..reflector._options import ReflectorOptions
from ..reflector._reflector import Reflector
from ..reflector._status import InformerPhase, InformerState, ReflectorStatistics
from ..reflector._transform import Transform, undecodable
from ..store._delta_fifo import DeltaFIFO, NamespacedSink
from ..store._quarantine import Quarantine

if TYPE_CHECKING:
    from ..store._division import Division, Share

T = TypeVar("T", bound=KubernetesObject)

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


@final
@attrs.frozen(kw_only=True)
class DividedSource(Generic[T]):
    """The source of a cache that begins without parts."""

    name: str
    """A name of the objects for messages."""
    kind: type[T]
    division: Share


@final
class Reflectors(Generic[T]):
    """The reflectors of an informer: one, one for each namespace, or one for each part of a divided cache.

    Args:
        source: The source of the objects.
        fifo: The queue to which the reflectors write.
        options: The options for listing, watching and handling failures.
        transform: A function that is applied to each object.
    """

    def __init__(
        self,
        source: ListWatch[T] | Mapping[str, ListWatch[T]] | DividedSource[T],
        fifo: DeltaFIFO[T],
        options: ReflectorOptions,
        transform: Transform[T] | None,
    ) -> None:
        self._fifo, self._options, self._transform = fifo, options, transform
        self.parts: dict[str, Reflector[T]] = {}
        self.since: dict[str, float] = {}
        """When the parts of a divided cache began, which are not stale before their first list."""
        self._has_listed = False
        self.sources: Mapping[str, ListWatch[T]] = {}
        self.division: Division | None = None
        self.share: Share | None = None
        self.kind: type[T] | None
        if isinstance(source, DividedSource):
            self.kind, self.name = source.kind, source.name
            self.division = self.share = source.division
        elif isinstance(source, Mapping):
            if not source or "" in source:
                raise ValueError("a mapping of sources must not be empty, and each key must be a namespace")
            from ..store._division import ByNamespace  # noqa: PLC0415  # most caches are not divided

            first = next(iter(source.values()))
            self.kind, self.sources, self.division = first.kind, source, ByNamespace()
            self.name = f"{self.kind.__name__ if self.kind else first.name} in namespaces {some_of(source)}"
            for namespace, each in source.items():
                self.open(namespace, each, namespace)
        else:
            self.kind, self.name, self.sources = source.kind, source.name, {"": source}
            self.parts[""] = Reflector(source, fifo, options, transform=transform)

    def open_part(self, part: str, source: ListWatch[T]) -> Reflector[T]:
        """Create the reflector of a part of a divided cache.

        Permanent errors end the informer only before it has listed anything, as for other informers.
        """
        self.since[part] = trio.current_time()
        self._has_listed = self._has_listed or any(each.statistics().lists for each in self.parts.values())
        if self._has_listed:
            self._options = attrs.evolve(self._options, grace_period=math.inf)
        return self.open(part, source)

    def close(self, part: str) -> None:
        """Forget the reflector of a part of a divided cache."""
        self._has_listed = self._has_listed or self.parts[part].statistics().lists > 0
        del self.parts[part], self.since[part]

    def open(self, part: str, source: ListWatch[T], namespace: str = "") -> Reflector[T]:
        """Create the reflector of a part."""
        sink = NamespacedSink(self._fifo, part)
        reflector = Reflector(source, sink, self._options, transform=self._transform, namespace=namespace)
        self.parts[part] = reflector
        return reflector

    def report_undecodable(self, part: str, obj: T, error: DecodeError) -> None:
        """Report an object that an index function could not decode."""
        if (reflector := self.parts.get(part)) is not None:
            reflector.report_undecodable(undecodable(obj, error))

    def statistics(self) -> dict[str, ReflectorStatistics]:
        """Return the statistics of each reflector."""
        return {part: each.statistics() for part, each in self.parts.items()}

    def state(self, quarantine: Quarantine) -> InformerState:
        """Return the state of a running informer, which is that of its worst reflector."""
        marks = len(quarantine), quarantine.first()
        by_part = self.statistics()
        reflectors = [*by_part.values()]
        if not reflectors:  # a divided cache without parts is up to date
            return InformerState(InformerPhase.WATCHING, None, age=0.0)
        worst = worst_of(reflectors)
        error = worst.last_error or next((each.last_error for each in reflectors if each.last_error is not None), None)
        age = trio.current_time() - min(
            max(each.up_to_date_at, self.since.get(part, -math.inf)) for part, each in by_part.items()
        )
        return InformerState(worst.phase, error, worst.retry_at, age, *marks)


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
