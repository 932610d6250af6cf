"""Recorded events, and series of equal events: each series is one Event on the server.

Source: client-go ``tools/events`` and ``tools/record``.  As in ``tools/record``, events with different notes are not
equal.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final, final

import attrs

from .._surroundings import new_uuid
from ..client import Api
from ..models import KubernetesObject, ObjectMeta, resource_of
from ..models.core_v1 import ObjectReference
from ..models.events_v1 import Event, EventSeries

MAX_NOTE: Final = 1_024
"""The maximum length of a note, in bytes (kubernetes ``pkg/apis/core/validation/events.go``)."""

MAX_WORD: Final = 128
"""The maximum length of a reason, an action or a reporting instance, in bytes."""

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""The pattern of an Event's name."""

MAX_NAME: Final = 253
"""The maximum length of an Event's name, in characters."""

REFRESH_PERIOD: Final = 1_800.0
"""The time between two writes of the count of an active series, in seconds (client-go
``tools/events/event_broadcaster.go``)."""


def reference_to(obj: KubernetesObject | ObjectReference) -> ObjectReference:
    """Return a reference to the current version of an object (client-go ``tools/reference``).

    Raises:
        ValueError: If the object has no name or no kind.
    """
    if not isinstance(obj, ObjectReference):
        resource = resource_of(type(obj))
        obj = ObjectReference(
            api_version=resource.api_version,
            kind=resource.kind,
            name=obj.name,
            namespace=obj.namespace,
            uid=obj.uid or None,
            resource_version=obj.resource_version or None,
        )
    if not (obj.name and obj.kind):
        raise ValueError(f"an event must be about an object with a kind and a name, not {obj}")
    return obj


def identity_of(reference: ObjectReference) -> Hashable:
    """Return a key that identifies an object regardless of its version and the ``field_path``."""
    return reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid


def truncate(text: str, limit: int) -> str:
    """Truncate a text to ``limit`` bytes of UTF-8 without splitting a character.

    Characters that cannot be encoded are replaced by ``?``.
    """
    data = text.encode("utf-8", "replace")
    return data[:limit].decode("utf-8", "ignore")


@final
@attrs.frozen(kw_only=True)
class Observation:
    """One call to :meth:`EventRecorder.event`."""

    regarding: ObjectReference
    related: ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    is_combined: bool = False
    """Whether the event combines similar events."""

    @property
    def obj(self) -> Hashable:
        """The identity of the object.  The Events of one object are written in order."""
        return identity_of(self.regarding)

    @property
    def subject(self) -> Hashable:
        """The object and the event type, which share one rate limit."""
        return self.obj, self.type

    @property
    def kind(self) -> Hashable:
        """A key that is equal for similar events."""
        return self.subject, self.regarding.field_path, self.reason, self.action

    @property
    def detail(self) -> Hashable:
        """A key that distinguishes similar events, or None for a combined event."""
        if self.is_combined:
            return None
        if self.related is None:
            return None, None, self.note
        return identity_of(self.related), self.related.field_path, self.note

    @property
    def key(self) -> Hashable:
        """A key that is equal for all events of a series."""
        return self.kind, self.detail


@final
@attrs.define(eq=False, kw_only=True)
class Series:
    """A series of equal events, and the Event on the server that counts them."""

    observation: Observation
    """The first event."""
    api: Api[Event]
    """The API of the Event's namespace."""
    controller: str
    instance: str
    stamp: int
    """The time of the first event, in nanoseconds since 1970.  It is unique within the recorder."""
    observed: datetime
    """The time when the last event was recorded, on the wall clock."""
    observed_at: float
    """The time when the last event was recorded, on trio's clock."""
    name: str = attrs.field(init=False)
    count: int = 1
    """The number of recorded events."""
    written: int = 0
    """The number of events that the Event on the server counts."""
    written_at: float = 0.0
    """The time of the last successful write, on trio's clock."""
    was_sent: bool = False
    """Whether a request to create the Event was sent, so the server may have it."""
    is_stored: bool = False
    """Whether the server is known to have the Event."""
    is_queued: bool = False
    """Whether the series is in the queue."""
    tries: int = 0
    """The number of failed requests that count as tries since the last success."""
    quick_tries: int = 0
    """The number of quick retries after failed connections since the last success."""
    was_delayed: bool = False
    """Whether the series has been delayed by the retry period since the last success."""

    def __attrs_post_init__(self) -> None:
        self.rename(self.stamp)

    def __str__(self) -> str:
        return f"{self.api.namespace}/{self.name}"

    def rename(self, stamp: int) -> None:
        """Derive the Event's name from a timestamp (client-go ``GenerateEventName``)."""
        self.stamp = stamp
        self.name = f"{self.observation.regarding.name}.{stamp:x}"
        if len(self.name) > MAX_NAME or not re.fullmatch(SUBDOMAIN, self.name):
            self.name = new_uuid()  # other kinds, such as ClusterRole, allow names that Events do not

    @property
    def what(self) -> str:
        """The reason and the object for a log line.  The note is omitted, because it may be confidential."""
        about = self.observation.regarding
        place = "" if about.namespace is None else f"{about.namespace}/"
        return f"{self.observation.reason} of {about.kind} {place}{about.name}"

    @property
    def unwritten(self) -> int:
        """The number of events that the Event on the server does not count yet."""
        return self.count - self.written

    def is_due(self, now: float) -> bool:
        """Return whether to write the series now.

        The first and the second event are written immediately, and further events once in every refresh period.
        The final count is written when the series ends.
        """
        return self.unwritten > 0 and (self.written < 2 or now >= self.written_at + REFRESH_PERIOD)

    def repetitions(self, count: int) -> EventSeries | None:
        """Return the Event's ``series`` field, or None for a single event."""
        return EventSeries(count=count, last_observed_time=self.observed) if count > 1 else None

    def event(self, count: int) -> Event:
        """Return the Event to create."""
        observation = self.observation
        return Event(
            metadata=ObjectMeta(name=self.name, namespace=self.api.namespace),
            event_time=datetime.fromtimestamp(self.stamp / 1e9, UTC),
            type=observation.type,
            reason=observation.reason,
            action=observation.action,
            note=observation.note,
            regarding=observation.regarding,
            related=observation.related,
            reporting_controller=self.controller,
            reporting_instance=self.instance,
            series=self.repetitions(count),
        )
