"""An event recorder of the embedded server, with an HTTP transport that injects faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import trio

from tests.support.lease_candidates import FaultInjector
from trioformer.client import open_client
from trioformer.events._options import EventRecorderOptions
from trioformer.events._recorder import EventRecorder
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.models.events_v1 import Event
from trioformer.testing import APIServer

EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
CONTROLLER = "example.com/tester"


def pod(name: str = "web", **metadata: Any) -> Pod:
    """A pod that need not exist on a server."""
    return Pod(metadata=ObjectMeta(**{"name": name, "namespace": "default", "uid": "12345", **metadata}))


WEB = pod()


def wall_clock() -> float:
    """The virtual time, as a date."""
    return EPOCH + trio.current_time()


@asynccontextmanager
async def recording(
    server: APIServer, nursery: trio.Nursery, **options: Any
) -> AsyncIterator[tuple[EventRecorder, FaultInjector]]:
    """A recorder that does not run yet, with its own client."""
    transport = FaultInjector(server.http_transport(), nursery)
    async with open_client(server.config, http_transport=transport) as client:
        recorder_options = EventRecorderOptions(**{"wall_clock": wall_clock, **options})
        yield EventRecorder(client, controller=CONTROLLER, instance="tester-0", options=recorder_options), transport


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    """Run a recorder during the block, and cancel it at the end, when it writes what is left."""
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        yield
        nursery.cancel_scope.cancel()


def record(
    recorder: EventRecorder,
    note: str = "it happened",
    *,
    regarding: Pod = WEB,
    type: Literal["Normal", "Warning"] = "Normal",  # noqa: A002
    reason: str = "Tested",
    action: str = "Testing",
) -> None:
    """Record an event."""
    recorder.event(regarding, type=type, reason=reason, action=action, note=note)


def stored(server: APIServer) -> Sequence[Event]:
    """The Events on the server, oldest first."""
    return sorted(server.list(Event), key=lambda event: (event.event_time, event.name.rpartition(".")[2]))


def count_of(event: Event) -> int:
    """How many occurrences an Event counts, as kubectl shows it."""
    return 1 if event.series is None else event.series.count


def counts(server: APIServer) -> list[tuple[str | None, int]]:
    """Note and count of each Event on the server."""
    return [(event.note, count_of(event)) for event in stored(server)]


def seconds_of(moment: datetime | None) -> float:
    """A date as virtual time."""
    assert moment is not None
    return round(moment.timestamp() - EPOCH, 3)
