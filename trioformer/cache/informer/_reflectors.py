"""The reflectors of an informer, and its state and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, final

import attrs
import trio

from ..._text import some_of
from ...errors import DecodeError
from ...models import KubernetesObject
from .._bad_objects import QuarantineReason
from ..reflector._list_watch import ApiListWatch, ListWatch
from ..reflector._options import ReflectorOptions
from ..reflector._reflector import Reflector
from ..reflector._sink import Sink
from ..reflector._status import InformerPhase, InformerState, ReflectorStatistics
from ..reflector._transform import Transform, undecodable
from ..store._delta_fifo import DeltaFIFO, NamespacedSink
from ..store._quarantine import Quarantine

if TYPE_CHECKING:
    from ..store._division import Division
    from ._divided_source import DividedSource

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
class Reflectors(Generic[T]):
    """The reflectors of an informer: one, or one for each namespace.

    Args:
        source: The source of the objects.
        fifo: The queue to which the reflectors write.
        options: The options for listing, watching and handling failures.
        transform: A function that is applied to each object.
    """

    def __init__(
        self,
        source: ListWatch[T] | Mapping[str, ListWatch[T]],
        fifo: DeltaFIFO[T],
        options: ReflectorOptions,
        transform: Transform[T] | None,
    ) -> None:
        self.parts: dict[str, Reflector[T]] = {}
        self.division: Division | None = None
        self.divided: DividedSource[T] | None = None
        self.kind: type[T] | None
        if isinstance(source, Mapping):
            if not source or "" in source:
                raise ValueError("a mapping of sources must not be empty, and each key must be a namespace")
            from ..store._division import ByNamespace  # noqa: PLC0415  # most caches are not divided

            first = next(iter(source.values()))
            self.kind, self.sources, self.division = first.kind, source, ByNamespace()
            self.name = f"{self.kind.__name__ if self.kind else first.name} in namespaces {some_of(source)}"
            for namespace, each in source.items():
                own = NamespacedSink(fifo, namespace)
                self.parts[namespace] = Reflector(each, own, options, transform=transform, namespace=namespace)
            return
        self.kind, self.name, self.sources = source.kind, source.name, {"": source}
        sink: Sink[T] = fifo
        if not isinstance(source, ApiListWatch):
            from ._divided_source import DividedSource  # noqa: PLC0415  # most caches are not divided

            if isinstance(source, DividedSource):
                self.division, self.divided, sink = source.division, source, source.sink(fifo)
                options = attrs.evolve(options, watch_list=False)  # which would take much longer when a part begins
        self.parts[""] = Reflector(source, sink, options, transform=transform)

    def report_undecodable(self, part: str, obj: T, error: DecodeError) -> None:
        """Report an object that an index function could not decode."""
        if (reflector := self.parts.get("" if self.divided is not None else part)) is not None:
            reflector.report_undecodable(undecodable(obj, error))

    def statistics(self) -> dict[str, ReflectorStatistics]:
        """Return the statistics of each reflector."""
        return {part: each.statistics() for part, each in self.parts.items()}

    def state(self, quarantine: Quarantine) -> InformerState:
        """Return the state of a running informer, which is that of its worst reflector."""
        marks = len(quarantine), quarantine.first()
        if self.divided is not None and not self.divided.parts:
            return InformerState(InformerPhase.WATCHING, None, age=0.0)  # there is nothing to cache
        reflectors = [*self.statistics().values()]
        worst = worst_of(reflectors)
        error = worst.last_error or next((each.last_error for each in reflectors if each.last_error is not None), None)
        up_to_date_at = min(each.up_to_date_at for each in reflectors)
        if self.divided is not None:
            up_to_date_at = max(up_to_date_at, self.divided.since)
        age = trio.current_time() - up_to_date_at
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
