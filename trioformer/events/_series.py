"""Occurrences, and series of equal ones: a series is one Event on the server.

Source: client-go ``tools/events`` and ``tools/record``.  Equality is that of the latter, so events with different notes
are not equal.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final, final

import attrs

from ..client import Api
from ..models import KubernetesObject, ObjectMeta, resource_of
from ..models.core_v1 import ObjectReference
from ..models.events_v1 import Event, EventSeries

MAX_NOTE: Final = 1_024
"""Maximum bytes of a note (kubernetes ``pkg/apis/core/validation/events.go``)."""

MAX_WORD: Final = 128
"""Maximum bytes of a reason, an action and a reporting instance."""

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""Pattern of an Event's name."""

MAX_NAME: Final = 253
"""Maximum characters of an Event's name."""

REFRESH_PERIOD: Final = 1_800.0
"""Seconds between two writes of the count of an active series (client-go ``tools/events/event_broadcaster.go``)."""


def reference_to(obj: KubernetesObject | ObjectReference) -> ObjectReference:
    """Make a reference to the current version of an object (client-go ``tools/reference``).

    Raises:
        ValueError: It has no name or no kind.
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
    """Return a key of an object that ignores its version and the ``field_path``."""
    return reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid


def truncate(text: str, limit: int) -> str:
    """Truncate a text to ``limit`` bytes of UTF-8, at a character boundary; what cannot be encoded becomes ``?``."""
    data = text.encode("utf-8", "replace")
    return data[:limit].decode("utf-8", "ignore")


@final
@attrs.frozen(kw_only=True)
class Observation:
    """One call of :meth:`EventRecorder.event`."""

    regarding: ObjectReference
    related: ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    is_combined: bool = False
    """Whether it represents similar events."""

    @property
    def obj(self) -> Hashable:
        """The object, whose Events are written in order."""
        return identity_of(self.regarding)

    @property
    def subject(self) -> Hashable:
        """Object and type, which have a common rate limit."""
        return self.obj, self.type

    @property
    def kind(self) -> Hashable:
        """Equal for similar events."""
        return self.subject, self.regarding.field_path, self.reason, self.action

    @property
    def detail(self) -> Hashable:
        """Distinguishes similar events; None for a combined one."""
        if self.is_combined:
            return None
        if self.related is None:
            return None, None, self.note
        return identity_of(self.related), self.related.field_path, self.note

    @property
    def key(self) -> Hashable:
        """Equal for events of one series."""
        return self.kind, self.detail


@final
@attrs.define(eq=False, kw_only=True)
class Series:
    """Equal events, and the Event on the server that counts them."""

    observation: Observation
    """The first event."""
    api: Api[Event]
    """The API of the Event's namespace."""
    controller: str
    instance: str
    stamp: int
    """Nanoseconds since 1970 of the first event; unique within the recorder."""
    observed: datetime
    """When the last event was recorded, on the wall clock."""
    observed_at: float
    """The same, on trio's clock."""
    name: str = attrs.field(init=False)
    count: int = 1
    """How many events were recorded."""
    written: int = 0
    """How many of them the Event on the server counts."""
    written_at: float = 0.0
    """When they were written, on trio's clock."""
    was_sent: bool = False
    """Whether the server may have the Event: a request to create it was sent."""
    is_stored: bool = False
    """Whether the server is known to have the Event."""
    is_queued: bool = False
    """Whether the series is in the queue."""
    tries: int = 0
    """Failed requests that count against it, since its last success."""
    quick_tries: int = 0
    """How often it was tried again soon after the connection failed, since its last success."""
    was_delayed: bool = False
    """Whether it was tried again later, since its last success."""

    def __attrs_post_init__(self) -> None:
        self.rename(self.stamp)

    def __str__(self) -> str:
        return f"{self.api.namespace}/{self.name}"

    def rename(self, stamp: int) -> None:
        """Derive the Event's name from a time stamp (client-go ``GenerateEventName``)."""
        self.stamp = stamp
        self.name = f"{self.observation.regarding.name}.{stamp:x}"
        if len(self.name) > MAX_NAME or not re.fullmatch(SUBDOMAIN, self.name):
            self.name = str(uuid.uuid4())  # other kinds, such as ClusterRole, allow names that Events do not

    @property
    def what(self) -> str:
        """Reason and object, for a log line; without the note, which is content."""
        about = self.observation.regarding
        place = "" if about.namespace is None else f"{about.namespace}/"
        return f"{self.observation.reason} of {about.kind} {place}{about.name}"

    @property
    def unwritten(self) -> int:
        """How many of them the Event on the server does not count yet."""
        return self.count - self.written

    def is_due(self, now: float) -> bool:
        """Whether to write the series now: for its first and second event, and once in every refresh period.

        The other counts are written when the series ends.
        """
        return self.unwritten > 0 and (self.written < 2 or now >= self.written_at + REFRESH_PERIOD)

    def repetitions(self, count: int) -> EventSeries | None:
        """Return the Event's ``series`` field; None for a single event."""
        return EventSeries(count=count, last_observed_time=self.observed) if count > 1 else None

    def event(self, count: int) -> Event:
        """Make the Event to create."""
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
