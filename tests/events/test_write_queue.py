"""The queue of Events: one line for each object, and turns between lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

import pytest

from trioformer.client import Client
from trioformer.events._series import Observation, Series
from trioformer.events._write_queue import LineState, WriteQueue
from trioformer.models.core_v1 import ObjectReference
from trioformer.models.events_v1 import Event

MakeSeries: TypeAlias = Callable[..., Series]


@pytest.fixture
def make_series(client: Client) -> MakeSeries:
    """Make a series of an object."""

    def make(name: str, note: str = "") -> Series:
        reference = ObjectReference(kind="Pod", name=name, namespace="default")
        observation = Observation(
            regarding=reference, related=None, type="Normal", reason="Tested", action="Testing", note=note
        )
        return Series(
            observation=observation,
            api=client.api(Event, namespace="default"),
            controller="c",
            instance="i",
            stamp=1,
            observed=datetime(2026, 1, 1, tzinfo=UTC),
            observed_at=0.0,
        )

    return make


async def test_lines_take_turns_and_the_events_of_an_object_keep_their_order(make_series: MakeSeries) -> None:
    queue = WriteQueue()
    for name, note in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1")]:
        queue.add(make_series(name, note))
    assert len(queue) == 5
    order = []
    while (line := queue.take(0)) is not None:
        first = line.waiting[0]
        order.append((first.observation.regarding.name, first.observation.note))
        assert first.is_queued
        queue.remove_first(line)
        assert not first.is_queued
    assert order == [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("a", "3")]
    assert len(queue) == 0


async def test_a_line_that_is_being_written_or_delayed_is_not_taken(make_series: MakeSeries) -> None:
    queue = WriteQueue()
    queue.add(make_series("a"))
    line = queue.take(0)
    assert line is not None
    assert line.state is LineState.WRITING
    queue.add(make_series("a", "another"))
    assert queue.take(0) is None
    queue.delay(line, 10)
    assert line.state is LineState.DELAYED
    assert queue.next_due() == 10
    assert queue.take(9.9) is None
    assert queue.take(10) is line
    assert queue.next_due() == math.inf
    queue.put_back(line, was_tried=False)
    assert line.state is LineState.READY
    assert queue.take(10) is line


async def test_a_line_that_has_failed_goes_after_those_never_tried(make_series: MakeSeries) -> None:
    queue = WriteQueue()
    for name in "ab":
        queue.add(make_series(name))
    first = queue.take(0)
    assert first is not None
    queue.delay(first, 5)
    queue.add(make_series("c"))
    queue.end_delays()
    order = []
    while (line := queue.take(0)) is not None:
        order.append(line.waiting[0].observation.regarding.name)
    assert order == ["b", "c", "a"]


async def test_a_line_whose_first_event_was_dropped_counts_as_never_tried(make_series: MakeSeries) -> None:
    queue = WriteQueue()
    for name in "aab":
        queue.add(make_series(name))
    line = queue.take(0)
    assert line is not None
    queue.delay(line, 5)
    again = queue.take(0)
    assert again is not None
    queue.delay(again, 5)
    assert queue.take(5) is line
    queue.remove_first(line)
    assert queue.take(5) is line


async def test_clearing_returns_everything_wherever_it_waits(make_series: MakeSeries) -> None:
    queue = WriteQueue()
    for name in "abc":
        queue.add(make_series(name))
    delayed, _ = queue.take(0), queue.take(0)
    assert delayed is not None
    queue.delay(delayed, 5)
    left = queue.clear()
    assert {series.observation.regarding.name for series in left} == {"a", "b", "c"}
    assert not any(series.is_queued for series in left)
    assert len(queue) == 0
    assert queue.take(math.inf) is None
