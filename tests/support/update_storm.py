"""A storm of updates, as fast as the cache takes them, with a stuck listener: the cost of each overflow policy."""

from __future__ import annotations

import gc
import math
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import get_args

import attrs
import trio
import trio.testing

from tests.support.scripted_list_watch import reached
from trioformer.cache import ResourceEventHandler, SharedInformer, Updated
from trioformer.cache.processor._listener_buffer import BufferStatistics
from trioformer.cache.processor._overflow import Overflow
from trioformer.client import ObjectList, WatchEvent
from trioformer.client._internal import UndecodableHandler
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod

PODS = 1_000
"""The number of objects, which are updated in turn."""
EVENTS_PER_BATCH = 50
"""Events that arrive together."""


def pod(number: int, version: int, padding: str) -> Pod:
    """Return a state of one of the objects."""
    metadata = f'{{"name":"pod-{number:04}","namespace":"default","uid":"uid-{number}","resourceVersion":"{version}"}}'
    spec = f'{{"nodeName":"{padding}"}}'
    return make_object(Pod, f'{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{spec}}}'.encode())


@attrs.define(eq=False)
class Storm:
    """A source that lists :data:`PODS` objects, and then sends ``updates`` changes of them in turn."""

    updates: int
    object_bytes: int = 500
    name: str = "Pod"
    kind: type[Pod] = Pod
    supports_watch_list: bool = False
    sent: int = 0
    over_at: float = math.inf
    over_at_real: float = math.inf
    is_over: trio.Event = attrs.field(factory=trio.Event)
    _started: trio.Event = attrs.field(factory=trio.Event)

    def begin(self) -> None:
        """Start to send."""
        self._started.set()

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[Pod]:
        await trio.lowlevel.checkpoint()
        return ObjectList(items=tuple(self._pod(number, number + 1) for number in range(PODS)), resource_version="1000")

    async def wait_to_retry(self, until: float) -> None:
        await trio.sleep_until(until)

    async def check(self, *, resource_version: str) -> None:
        await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AsyncIterator[Storm]:
        await trio.lowlevel.checkpoint()
        yield self

    async def receive_batch(self) -> list[WatchEvent[Pod]]:
        await trio.lowlevel.checkpoint()
        await self._started.wait()
        if self.sent >= self.updates:
            self.over_at, self.over_at_real = trio.current_time(), time.perf_counter()
            self.is_over.set()
            await trio.sleep_forever()
        first = self.sent
        self.sent = min(first + EVENTS_PER_BATCH, self.updates)
        return [WatchEvent("MODIFIED", self._pod(n % PODS, PODS + 1 + n)) for n in range(first, self.sent)]

    def _pod(self, number: int, version: int) -> Pod:
        return pod(number, version, "x" * self.object_bytes)


@attrs.define(eq=False)
class FastHandler(ResourceEventHandler[Pod]):
    """Records how far it and the cache are behind the source."""

    storm: Storm
    informer: SharedInformer[Pod]
    updates: int = 0
    newest: int = 0
    most_behind: int = 0
    cache_most_behind: int = 0

    async def on_update(self, old: Pod, new: Pod) -> None:
        self.updates += 1
        self.newest = int(new.resource_version)
        sent = PODS + self.storm.sent
        self.most_behind = max(self.most_behind, sent - self.newest)
        self.cache_most_behind = max(self.cache_most_behind, sent - int(reached(self.informer)))


@attrs.frozen(kw_only=True)
class Outcome:
    """The effect of a storm on an informer with a stuck and a fast listener."""

    entries: int
    """The most entries in the buffer of the stuck listener."""
    coalesced: int
    """Notifications of the stuck listener that were merged into others."""
    pending: int
    """Changes that waited in the queue while the listener was stuck and nothing else could run."""
    held: int
    """Bytes that were allocated then and not before the storm; the size of the cache's content has not changed."""
    peak: int
    """The maximum of these bytes."""
    held_after: int
    """Bytes that were allocated after the storm and not before it."""
    broken_because: str
    """Why the buffer of the stuck listener broke; empty if it did not."""
    waited: float
    """Virtual seconds that the storm took, which are only those in which the informer waited for the listener."""
    object_bytes: int
    """Bytes of one object in the cache, including its key and index entries."""
    seconds: float
    """Real seconds that the storm took."""
    fast: FastHandler = attrs.field(repr=lambda fast: f"{fast.updates} updates, at most {fast.most_behind} behind")
    """The fast listener."""


async def run_storm(overflow: Overflow, updates: int, *, object_bytes: int = 500, patience: float = 60.0) -> Outcome:
    """Run a storm with a subscription that takes one change, and the next one only after the storm."""
    storm = Storm(updates, object_bytes)
    informer = SharedInformer(storm)
    fast = FastHandler(storm, informer)
    informer.add_event_handler(fast)
    before = 0
    broken_because = ""
    resume = trio.Event()

    async def be_stuck(
        *, task_status: trio.TaskStatus[Callable[[], BufferStatistics]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        nonlocal broken_because
        with informer.subscribe(overflow=overflow, patience=patience) as notifications:
            task_status.started(notifications.statistics)
            try:
                async for notification in notifications:
                    if isinstance(notification, Updated):
                        await resume.wait()
                        break
                await anext(notifications)
            except trio.BrokenResourceError as error:
                broken_because = str(error)

    def allocated() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        async with trio.open_nursery() as nursery:
            statistics: Callable[[], BufferStatistics] = await nursery.start(be_stuck)
            await nursery.start(informer.run)
            await trio.testing.wait_all_tasks_blocked()
            content = allocated()
            before = content
            tracemalloc.reset_peak()
            began, real = trio.current_time(), time.perf_counter()
            storm.begin()
            await trio.sleep(patience / 2)  # virtual: passes when nothing else can run
            while_stuck, pending, held = statistics(), informer.statistics().pending, allocated()
            await storm.is_over.wait()
            took = storm.over_at_real - real
            peak = tracemalloc.get_traced_memory()[1] - before
            resume.set()
            await trio.testing.wait_all_tasks_blocked()
            held_after = allocated()
            nursery.cancel_scope.cancel()
    finally:
        tracemalloc.stop()
    return Outcome(
        entries=while_stuck.high_water,
        coalesced=while_stuck.coalesced,
        pending=pending,
        held=held,
        peak=peak,
        held_after=held_after,
        broken_because=broken_because,
        waited=storm.over_at - began,
        object_bytes=content // PODS,
        seconds=took,
        fast=fast,
    )


def main() -> None:
    """Print the cost of each policy: ``python -m tests.support.update_storm [updates [bytes of an object]]``."""
    updates = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    object_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    for overflow in get_args(Overflow):
        clock = trio.testing.MockClock(autojump_threshold=0)
        print(overflow, trio.run(partial(run_storm, overflow, updates, object_bytes=object_bytes), clock=clock))


if __name__ == "__main__":
    main()
