"""The cost of an unread object, in counts that do not depend on the machine.

The docstring of each limit has the current value; explain a regression before you raise a limit.
Wall times are measured by ``benchmarks/``.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from tests.support.byte_streams import READ, SERVER, Counter, Recorded, pieces
from tests.support.processes import ROOT
from trioformer import SharedInformer, SharedInformerFactory, field_index, open_client
from trioformer.client.bodies._list_splitter import ListSplitter
from trioformer.client.bodies._wire_format import FrameSplitter, decode_watch_frame
from trioformer.models import _lazy, from_json
from trioformer.models.core_v1 import Pod

PODS = 200
EVENTS = 1_000

KEPT_BESIDE_BYTES = 1_150
"""Bytes of a cached pod in addition to its own JSON: 950."""
EVENT_COPIES = 2.2
"""Copies of an event that exist at the same time: 2.07, of which one is kept."""
LIST_BUFFERS = 400 * 1024
"""Bytes in addition to its items that a list needs while it is split, however long it is: 346 KB."""
OBJECTS_PER_EVENT = 12
"""Live allocations of an event that a listener has received: 10."""
CALLS_PER_EVENT = 137
"""Python and C functions from the socket's bytes to the handler, including those of the test's stream: 126 to 127."""
CALLS_PER_CONTROLLER_EVENT = 163
"""The same to the queue of a controller, whose functions receive every state: 155 to 156.

So the handler, a predicate, the enqueue function for both states, and the merging of equal requests are 29 calls more
than the handler of the other test."""
CPU_OVER_LIMIT = 1.3
"""CPU time of an informer divided by that of a minimal loop with httpx and msgspec: 1.07."""


@attrs.define(eq=False)
class Structuring:
    """How often a field was decoded from JSON."""

    calls: int = 0


@pytest.fixture
def structuring(monkeypatch: pytest.MonkeyPatch) -> Structuring:
    """Count calls of the function that decodes every field of a lazy object."""
    count = Structuring()
    value_of = _lazy._Field.value_of

    def counted(field: _lazy._Field, raw: _lazy.Raw) -> object:
        count.calls += 1
        return value_of(field, raw)

    monkeypatch.setattr(_lazy._Field, "value_of", counted)
    return count


@pytest.fixture
def traced() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


@asynccontextmanager
async def running_informer(server: Recorded, *, node_index: bool = False) -> AsyncIterator[SharedInformer[Pod]]:
    """A synced informer of the recorded pods."""
    async with open_client(SERVER, http_transport=server) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        indexers = {"node": field_index("spec.node_name")} if node_index else {}
        informer = factory.informer(Pod, indexers=indexers)
        await nursery.start(factory.run)
        yield informer
        nursery.cancel_scope.cancel()


async def storm(informer: SharedInformer[Pod], server: Recorded) -> None:
    """Deliver every event to a handler that reads only names and resourceVersions."""
    handler = Counter(EVENTS)
    registration = informer.add_event_handler(handler)
    await registration.wait_until_synced()
    server.go.set()
    await handler.done.wait()
    statistics = registration.statistics().buffer
    assert (statistics.coalesced, statistics.delivered) == (0, PODS + EVENTS)


def environment() -> dict[str, str]:
    """Return this process's environment without the variables of coverage, and with the repository on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "COV_"))}
    return {**kept, "PYTHONPATH": str(ROOT)}


async def test_no_field_of_an_unread_object_is_structured(structuring: Structuring) -> None:
    server = Recorded(PODS, EVENTS)
    async with running_informer(server) as informer:
        await storm(informer, server)
        assert {pod.namespace for pod in informer.lister.by_index("namespace", "bench-07")} == {"bench-07"}
        assert informer.lister.get("web-frontend-7d4b9c6f5d-000007", namespace="bench-07") is not None
        assert structuring.calls == 0
        for pod in informer.lister.list():
            assert pod.status.phase
    assert structuring.calls == 2 * PODS


async def test_an_index_structures_two_fields_of_each_state(structuring: Structuring) -> None:
    server = Recorded(PODS, EVENTS)
    async with running_informer(server, node_index=True) as informer:
        await storm(informer, server)
    assert structuring.calls == 2 * (PODS + EVENTS)


async def test_the_managed_fields_are_not_structured_with_the_other_metadata(structuring: Structuring) -> None:
    pod = from_json(Pod, Recorded(1, 0).items[0])
    assert pod.metadata.labels
    assert pod.metadata.annotations  # the second field that is read decodes all fields but managedFields
    before = structuring.calls
    assert pod.metadata.finalizers == ()
    assert structuring.calls == before
    assert len(pod.metadata.managed_fields) == 2
    assert structuring.calls == before + 1


async def test_a_cached_object_keeps_its_own_bytes_and_little_else(traced: None) -> None:
    async with running_informer(Recorded(PODS, 0)):
        pass  # creates what is created only once
    server = Recorded(PODS, 0)
    before = memory()
    async with running_informer(server):
        await trio.testing.wait_all_tasks_blocked()
        kept = memory() - before
    beside = (kept - sum(map(len, server.items))) / PODS
    assert beside <= KEPT_BESIDE_BYTES


def memory() -> int:
    """Return the number of bytes that are allocated now."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def blocks() -> int:
    """Return the number of live allocations."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    return sum(
        each.count for each in snapshot.statistics("filename") if "tracemalloc" not in each.traceback[0].filename
    )


def test_an_event_is_copied_out_of_the_stream_twice_and_kept_once(traced: None) -> None:
    server = Recorded(1, 2)
    chunks = [piece for piece, _ in pieces(server.events)]
    splitter = FrameSplitter()
    assert decode_watch_frame(*splitter.feed(chunks[0]))[0] == "MODIFIED"
    before = memory()
    tracemalloc.reset_peak()
    (frame,) = splitter.feed(chunks[1])
    decoded = decode_watch_frame(frame)
    del frame
    _, peak = tracemalloc.get_traced_memory()
    size = len(server.events[1])
    assert (peak - before) / size <= EVENT_COPIES
    assert (memory() - before) / size <= 1.1
    assert decoded[2] is not None


def test_an_item_of_a_list_is_copied_out_once(traced: None) -> None:
    server = Recorded(PODS, 0)
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[%s]}' % b",".join(server.items)
    splitter = ListSplitter()
    before = memory()
    tracemalloc.reset_peak()
    items: list[bytes] = []
    for begin in range(0, len(body), READ):
        items += splitter.feed(memoryview(body)[begin : begin + READ])
    end = splitter.finish()
    assert end is not None
    items += end[0]
    peak = tracemalloc.get_traced_memory()[1]
    del splitter
    assert len(items) == PODS
    size = sum(map(len, items))
    assert (memory() - before) / size <= 1.02
    assert peak - before - size <= LIST_BUFFERS


async def test_a_delivered_event_consists_of_few_allocations(traced: None) -> None:
    server = Recorded(PODS, EVENTS)
    async with running_informer(server) as informer:
        with informer.subscribe(buffer_size=2 * EVENTS) as subscription:
            for _ in range(PODS):
                await anext(subscription)
            await trio.testing.wait_all_tasks_blocked()
            before = blocks()
            server.go.set()
            # Keeps every state alive, as a listener that is behind does.
            seen = [await anext(subscription) for _ in range(EVENTS)]
            assert (blocks() - before) / EVENTS <= OBJECTS_PER_EVENT
    assert len(seen) == EVENTS


@functools.cache
def cost_of_an_event(*what: str) -> dict[str, float]:
    """Measure an informer and a minimal loop in a separate process, where nothing else traces."""
    program = ROOT / "tests" / "support" / "byte_streams.py"
    command = [sys.executable, str(program), *what]
    done = subprocess.run(
        command, cwd=program.parent.parent, env=environment(), check=True, capture_output=True, text=True
    )
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


def test_an_event_costs_an_informer_few_function_calls() -> None:
    assert cost_of_an_event("calls")["informer"] <= CALLS_PER_EVENT


def test_an_event_costs_a_controller_few_function_calls_more() -> None:
    assert cost_of_an_event("calls")["controller"] <= CALLS_PER_CONTROLLER_EVENT


@pytest.mark.long
def test_an_informer_costs_little_more_cpu_than_a_minimal_loop() -> None:
    """Only for an idle machine: processes that fill the processor's caches slow the informer more than the loop."""
    cost = cost_of_an_event("seconds")
    assert cost["informer"] / cost["limit"] <= CPU_OVER_LIMIT
