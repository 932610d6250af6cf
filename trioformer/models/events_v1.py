"""events/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import MicroTime, Time
from .core_v1 import EventSource, ObjectReference

__all__ = ["Event", "EventSeries"]


@frozen_model(kw_only=True)
class EventSeries(Model):
    """events/v1 EventSeries."""

    count: int = 0
    last_observed_time: MicroTime | None = None


@frozen_model(kw_only=True)
class Event(KubernetesObject):
    """events/v1 Event."""

    __resource__: ClassVar[ResourceInfo] = builtin("events.k8s.io/v1", "Event")

    action: str | None = None
    deprecated_count: int | None = None
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
    deprecated_source: EventSource = EventSource()
    event_time: MicroTime | None = None
    note: str | None = None
    reason: str | None = None
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    reporting_controller: str | None = None
    reporting_instance: str | None = None
    series: EventSeries | None = None
    type: str | None = None
