"""A storm of updates, as fast as they are taken, beside a reader that is stuck: what it costs, by overflow policy."""

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

from trioformer.cache import (
    BufferStatistics,
    Overflow,
    ResourceEventHandler,
    SharedInformer,
    UndecodableHandler,
    Updated,
)
from trioformer.client import ObjectList, WatchEvent
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod

PODS = 1_000
"""How many objects there are; the updates go round."""
TOGETHER = 50
"""Events that arrive together."""


def pod(number: int, version: int, padding: str) -> Pod:
    """One of the objects; its version shows in its name's place in the round."""
    metadata = f'{{"name":"pod-{number:04}","namespace":"default","uid":"uid-{number}","resourceVersion":"{version}"}}'
    spec = f'{{"nodeName":"{padding}"}}'
    return make_object(Pod, f'{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{spec}}}'.encode())


@attrs.define(eq=False)
class Storm:
    """Lists :data:`PODS` objects, and then sends ``updates`` changes of them, round after round."""

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
        """Begin to send."""
        self._started.set()

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[Pod]:
        await trio.lowlevel.checkpoint()
        return ObjectList(items=tuple(self._pod(number, number + 1) for number in range(PODS)), resource_version="1000")

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
        self.sent = min(first + TOGETHER, self.updates)
        return [WatchEvent("MODIFIED", self._pod(n % PODS, PODS + 1 + n)) for n in range(first, self.sent)]

    def _pod(self, number: int, version: int) -> Pod:
        return pod(number, version, "x" * self.object_bytes)


@attrs.define(eq=False)
class Fast(ResourceEventHandler[Pod]):
    """Notes how far it and the cache are behind what was sent."""

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
        self.cache_most_behind = max(self.cache_most_behind, sent - int(self.informer.lister.resource_version))


@attrs.frozen(kw_only=True)
class Outcome:
    """What a storm has done to an informer with one reader that is stuck and one that is fast."""

    entries: int
    """The most that waited for the stuck reader."""
    coalesced: int
    """Notifications of the stuck reader that were merged into others."""
    pending: int
    """Changes that waited before the cache while the reader was stuck and nothing else happened any more."""
    held: int
    """Bytes that were alive then and not before the storm; the cache's own content is of the same size as it was."""
    peak: int
    """The most that they ever were."""
    held_after: int
    """Bytes that were alive when the storm was over, and not before it."""
    broke_off: str
    """Why the stuck reader was cut off; empty when it was not."""
    waited: float
    """Virtual seconds that the storm took: none, but for those in which the informer waited for the reader."""
    object_bytes: int
    """Bytes that one object takes in the cache, with its key and its places in the indices."""
    seconds: float
    """Real seconds that it took."""
    fast: Fast = attrs.field(repr=lambda fast: f"{fast.updates} updates, at most {fast.most_behind} behind")
    """The other reader."""


async def weather(overflow: Overflow, updates: int, *, object_bytes: int = 500, patience: float = 60.0) -> Outcome:
    """Live through a storm beside a subscription that takes one change and comes back for the next after the storm."""
    storm = Storm(updates, object_bytes)
    informer = SharedInformer(storm)
    fast = Fast(storm, informer)
    informer.add_event_handler(fast)
    before = 0
    broke_off = ""
    come_back = trio.Event()

    async def be_stuck(
        *, task_status: trio.TaskStatus[Callable[[], BufferStatistics]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        nonlocal broke_off
        with informer.subscribe(overflow=overflow, patience=patience) as notifications:
            task_status.started(notifications.statistics)
            try:
                async for told in notifications:
                    if isinstance(told, Updated):
                        await come_back.wait()
                        break
                await anext(notifications)
            except trio.BrokenResourceError as error:
                broke_off = str(error)

    def alive() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        async with trio.open_nursery() as nursery:
            statistics: Callable[[], BufferStatistics] = await nursery.start(be_stuck)
            await nursery.start(informer.run)
            await trio.testing.wait_all_tasks_blocked()
            content = alive()
            before = content
            tracemalloc.reset_peak()
            began, real = trio.current_time(), time.perf_counter()
            storm.begin()
            await trio.sleep(patience / 2)  # virtual: passes when nothing else can happen
            while_stuck, pending, held = statistics(), informer.statistics().pending, alive()
            await storm.is_over.wait()
            took = storm.over_at_real - real
            peak = tracemalloc.get_traced_memory()[1] - before
            come_back.set()
            await trio.testing.wait_all_tasks_blocked()
            held_after = alive()
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
        broke_off=broke_off,
        waited=storm.over_at - began,
        object_bytes=content // PODS,
        seconds=took,
        fast=fast,
    )


def main() -> None:
    """Print what each policy costs: ``python -m tests.support.update_storm [updates [bytes of an object]]``."""
    updates = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    object_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    for overflow in get_args(Overflow):
        clock = trio.testing.MockClock(autojump_threshold=0)
        print(overflow, trio.run(partial(weather, overflow, updates, object_bytes=object_bytes), clock=clock))


if __name__ == "__main__":
    main()
