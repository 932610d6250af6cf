"""What happened, and how often: the events that one Event on the server stands for.

Source: client-go ``tools/events`` and ``tools/record``; what makes two events the same is the latter's, so an event
with another note is not the same.
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
"""Bytes that a server takes for a note (kubernetes ``pkg/apis/core/validation/events.go``)."""

MAX_WORD: Final = 128
"""Bytes that it takes for a reason, an action, and a reporting instance."""

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""What an Event's name has to match."""

MAX_NAME: Final = 253
"""How many characters it may have."""


def reference_to(obj: KubernetesObject | ObjectReference) -> ObjectReference:
    """Name an object as it is now (client-go ``tools/reference``).

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
    """Make a key of an object, whatever its version, and whatever part of it is meant."""
    return reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid


def shortened(text: str, limit: int) -> str:
    """Cut a text off at so many bytes of UTF-8, and leave no half character; what is no UTF-8 becomes ``?``."""
    data = text.encode("utf-8", "replace")
    return data[:limit].decode("utf-8", "ignore")


@final
@attrs.frozen(kw_only=True)
class Observation:
    """One call of the recorder: what happened, to what."""

    regarding: ObjectReference
    related: ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    is_combined: bool = False
    """Whether it stands for similar ones, too."""

    @property
    def subject(self) -> Hashable:
        """The object and the type: of what there may be only so many."""
        return identity_of(self.regarding), self.type

    @property
    def kind(self) -> Hashable:
        """What similar events have in common."""
        return self.subject, self.regarding.field_path, self.reason, self.action

    @property
    def detail(self) -> Hashable:
        """What they differ in; None for a combined one."""
        if self.is_combined:
            return None
        if self.related is None:
            return None, None, self.note
        return identity_of(self.related), self.related.field_path, self.note

    @property
    def key(self) -> Hashable:
        """Equal for events that are the same."""
        return self.kind, self.detail


@final
@attrs.define(eq=False, kw_only=True)
class Series:
    """Events that are the same, and the Event on the server that stands for them."""

    observation: Observation
    """The first of them."""
    api: Api[Event]
    """The namespace that the Event is in."""
    controller: str
    instance: str
    stamp: int
    """Nanoseconds since 1970 of the first; no other series of the recorder has the same."""
    observed: datetime
    """When the last of them was, on the wall clock."""
    observed_at: float
    """The same on trio's clock."""
    name: str = attrs.field(init=False)
    count: int = 1
    """How many there have been."""
    written: int = 0
    """How many of them the server has counted."""
    written_at: float = 0.0
    """When they were written, on trio's clock."""
    was_sent: bool = False
    """Whether the server may have the Event: a request to create it was sent and was not refused."""
    is_stored: bool = False
    """Whether the server is known to have it."""
    is_queued: bool = False
    """Whether it waits to be written."""

    def __attrs_post_init__(self) -> None:
        self.rename(self.stamp)

    def __str__(self) -> str:
        return f"{self.api.namespace}/{self.name}"

    def rename(self, stamp: int) -> None:
        """Take the name that belongs to a moment (client-go ``GenerateEventName``)."""
        self.stamp = stamp
        self.name = f"{self.observation.regarding.name}.{stamp:x}"
        if len(self.name) > MAX_NAME or not re.fullmatch(SUBDOMAIN, self.name):
            self.name = str(uuid.uuid4())  # names of some kinds, such as ClusterRoles, may be what an Event's may not

    @property
    def unwritten(self) -> int:
        """How many of them the server has not counted."""
        return self.count - self.written

    def is_due(self, now: float, refresh_period: float) -> bool:
        """Whether it should be written at once: the first, the second, and one in every refresh period.

        The others are written when the series is over.
        """
        return self.unwritten > 0 and (self.written < 2 or now >= self.written_at + refresh_period)

    def repetitions(self, count: int) -> EventSeries | None:
        """What the Event says of its repetitions; nothing of a single one."""
        return EventSeries(count=count, last_observed_time=self.observed) if count > 1 else None

    def event(self, count: int) -> Event:
        """Make the Event as it is created."""
        what = self.observation
        return Event(
            metadata=ObjectMeta(name=self.name, namespace=self.api.namespace),
            event_time=datetime.fromtimestamp(self.stamp / 1e9, UTC),
            type=what.type,
            reason=what.reason,
            action=what.action,
            note=what.note,
            regarding=what.regarding,
            related=what.related,
            reporting_controller=self.controller,
            reporting_instance=self.instance,
            series=self.repetitions(count),
        )
