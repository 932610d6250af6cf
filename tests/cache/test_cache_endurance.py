"""What grows when it should not: a week of faults, and a reader that is stuck in a storm.

The week is virtual: faults every few minutes, objects that come, change and go, readers that come and go.
"""

from __future__ import annotations

import logging
import random
import tracemalloc
from collections.abc import Callable, Iterator

import attrs
import pytest
import trio
import trio.testing

from tests.support.cache_machine import (
    Compact,
    Corrupt,
    CutBody,
    Disconnect,
    Fail,
    Join,
    Leave,
    LoseBookmarks,
    Portal,
    Setting,
    Slow,
    Step,
    Unreachable,
    World,
    open_world,
)
from tests.support.cache_machine_readers import BATCH
from tests.support.faulty_transport import Ending
from tests.support.live_memory import live_bytes, only_what_is_new
from tests.support.update_storm import PODS, TOGETHER, Fast, Outcome, Storm, weather
from trioformer.cache import DeltaFIFO, ResourceEventHandler, SharedInformer
from trioformer.models.core_v1 import Pod

HOUR = 3_600.0
WEEK = 7 * 24 * HOUR
PAUSES = (60.0, 540.0)
"""Between two faults: a minute to nine, five on average."""
OBJECTS = 100
ENDINGS: tuple[Ending, ...] = ("clean", "reset", "stall")


@pytest.fixture(autouse=True)
def without_a_log() -> Iterator[None]:
    """Thousands of faults are logged, and what pytest keeps of them would be measured too."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def every_fault(rng: random.Random) -> list[Step]:
    """One of every kind, in any order."""
    faults: list[Step] = [
        Compact(),
        *(Disconnect(how) for how in ENDINGS),
        *(Disconnect("clean", rng.choice(codes)) for codes in ((410,), (429,), (500, 504))),
        Fail(rng.choice((401, 403, 404, 410, 500, 502, 503, 504))),
        Fail(429, 7),
        CutBody(rng.random(), rng.choice(ENDINGS)),
        Corrupt(1),
        Portal(1),
        Unreachable(rng.choice((1.0, 30.0))),
        LoseBookmarks(rng.random() < 0.5),
    ]
    rng.shuffle(faults)
    return faults


class Endurance:
    """What happens in the week, from one random seed."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.faults: list[Step] = []
        self.done = 0

    def change_something(self) -> None:
        """Delete an object that was there, change one, make one that was not, or one in place of another."""
        world, rng = self.world, self.rng
        for _ in range(3):
            name = f"pod-{rng.randrange(OBJECTS):03}"
            if rng.random() < 0.3:
                world.delete("a", name)
            else:
                world.touch("a", name)

    async def go_on_until(self, end: float) -> None:
        world, rng = self.world, self.rng
        while trio.current_time() < end:
            await trio.sleep(rng.uniform(*PAUSES))
            world.wire.loses_bookmarks = False
            world.wire.portals = 0  # what waited for a request for minutes is not piled up for the next one
            world.faults.clear()
            self.faults = self.faults or every_fault(rng)
            fault = self.faults.pop()
            self.done += 1
            self.change_something()
            await fault.do(world)
            self.change_something()
            await self.change_a_reader()

    async def change_a_reader(self) -> None:
        """Now and then: one joins, one is stuck, one goes."""
        world, rng = self.world, self.rng
        self.unblock()
        if rng.random() < 0.2:
            way = rng.choice(("handler", "subscription", "filter"))
            await Join(way, rng.choice(("coalesce", "block")), rng.choice((2, 1_024)), HOUR).do(world)
        if rng.random() < 0.2:
            await Slow(rng.randrange(5), rng.choice((None, 0.1, 0.0))).do(world)
        if rng.random() < 0.2 and len(world.readers) > 2:
            await Leave(rng.randrange(2, len(world.readers)), rng.choice(("remove", "aclose", "inside"))).do(world)

    def unblock(self) -> None:
        """Let everybody who is stuck go on, and forget those who have left."""
        for reader in self.world.readers:
            reader.unblock()
            reader.delay = 0.0
        self.world.readers = [reader for reader in self.world.readers if reader.is_reading]

    async def rest(self) -> None:
        """Come to rest, with the same objects and readers as ever."""
        world = self.world
        self.unblock()
        for number in reversed(range(2, len(world.readers))):
            await Leave(number, "remove").do(world)
        world.readers = world.readers[:2]
        for number in range(OBJECTS):
            world.touch("a", f"pod-{number:03}")
        await world.quiet_down()
        # A new list fills new dicts; those that objects came to and went from may have room for twice as many.
        world.server.compact()
        world.server.disconnect_watches()
        await trio.sleep(HOUR)
        world.server.compact()
        world.server.requests.clear()
        for reader in world.readers:
            reader.log.clear()
            reader.view, reader.newest = ({**dict.fromkeys(each), **each} for each in (reader.view, reader.newest))


async def live(measure: Callable[[], int], first: float = HOUR) -> None:
    """Live through the week, and compare measurements after the first hour, or so, and at the end."""
    setting = Setting(seed=7, resync_period=6 * HOUR)
    readers = [Join("handler", "coalesce", 16), Join("subscription", "block", 16, HOUR)]
    async with open_world(setting, readers) as world:
        world.most_objects, world.patience = OBJECTS, HOUR
        # Versions of one length, or the objects of the last day would be longer than those of the first.
        world.server._storage.revision = 1_000_000
        endurance = Endurance(world, 7)
        await endurance.go_on_until(first)
        await endurance.rest()
        before = measure()
        await endurance.go_on_until(WEEK)
        await endurance.rest()
        after_a_week = measure()
        assert after_a_week == pytest.approx(before, rel=0.02)
        assert endurance.done > 1_900
        assert world.joined > 300
        assert world.informer.statistics().reflector.lists > 200


async def test_a_week_of_faults_leaves_no_byte_behind(autojump_clock: trio.testing.MockClock) -> None:
    """Memory after a week is what it was after the first hour, to 2 %, and everything else is right too.

    What is compared is the size of every Python object that did not exist before the test, after a full collection, at
    two points of rest that are made alike: the same 100 objects exist (each just changed, so that the states that the
    cache holds are of one size), the same two readers listen and have caught up, an hour has passed without a fault,
    and the embedded server has forgotten its history and its log of requests.
    So the difference is what the informer, its client or its readers' mailboxes keep of 2,000 faults, thousands of
    changes and hundreds of readers that came and went.
    """
    with only_what_is_new():
        await live(live_bytes)


@pytest.mark.long
async def test_a_week_of_faults_leaves_no_allocation_behind(autojump_clock: trio.testing.MockClock) -> None:
    """The same, measured by tracing every allocation, which makes three times as much work of the week.

    What is alive for Python's allocator only, such as objects that are kept for reuse, takes a day or two to come to
    its level, a tenth above that of the first hour; so the first measurement is taken after two days.
    """

    def traced() -> int:
        live_bytes()  # collects, and empties the caches that are not the informer's
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        await live(traced, 48 * HOUR)
    finally:
        tracemalloc.stop()


# --- a stuck reader in a storm ---

BUFFER = 1_024
MOST_PENDING = attrs.fields(DeltaFIFO).max_pending.default
PER_ENTRY = 250
"""Bytes of an entry beside its object's: the notification, its place in a queue."""
SPARE = 100_000
"""Bytes that come and go, as buffers of a few hundred places do."""


async def check_coalesce(updates: int) -> Outcome:
    outcome = await weather("coalesce", updates)
    bound = BUFFER + PODS  # the buffer, and one entry for each object
    assert outcome.entries <= bound
    assert outcome.coalesced >= updates - bound - 1, "everything else was merged"
    assert outcome.held <= bound * (outcome.object_bytes + PER_ENTRY) + SPARE
    assert outcome.broke_off == ""
    assert outcome.waited == 0, "nobody waits for it"
    assert outcome.fast.most_behind <= 2 * TOGETHER
    assert outcome.fast.cache_most_behind <= 2 * TOGETHER
    return outcome


async def check_block(updates: int) -> Outcome:
    outcome = await weather("block", updates, patience=60.0)
    assert outcome.entries <= BUFFER + BATCH
    assert outcome.coalesced == 0
    assert outcome.pending <= MOST_PENDING + TOGETHER, "then the watch's socket is read no more"
    # What is pending before the cache can be as much again in the hands of the process loop.
    states = BUFFER + BATCH + 2 * (MOST_PENDING + TOGETHER)
    assert outcome.held <= states * (outcome.object_bytes + PER_ENTRY) + SPARE
    assert outcome.waited == 60, "the informer waits for its patience, and then for this reader never again"
    assert "took no notification for 60 s" in outcome.broke_off
    return outcome


async def check_raise(updates: int) -> Outcome:
    outcome = await weather("raise", updates)
    assert outcome.held <= SPARE, "what waited is let go at once"
    assert outcome.peak <= (BUFFER + BATCH) * (outcome.object_bytes + PER_ENTRY) + SPARE
    assert outcome.waited == 0
    assert "its buffer of 1024 notifications is full" in outcome.broke_off
    assert outcome.fast.most_behind <= 2 * TOGETHER
    return outcome


CHECKS = {"coalesce": check_coalesce, "block": check_block, "raise": check_raise}


# For "block" more than twice what may be pending, the others reach their bounds with 2,000.
SOME = {"coalesce": 10_000, "block": 25_000, "raise": 10_000}


@pytest.mark.parametrize(
    ("overflow", "updates"),
    [
        *SOME.items(),
        *[pytest.param(each, many, marks=pytest.mark.long) for many in (50_000, 1_000_000) for each in CHECKS],
    ],
)
async def test_a_reader_that_is_stuck_in_a_storm_costs_what_its_policy_says_and_nobody_else_anything(
    overflow: str, updates: int, autojump_clock: trio.testing.MockClock
) -> None:
    outcome = await CHECKS[overflow](updates)
    print(f"\n{overflow}: {outcome}")
    assert outcome.fast.updates == updates, "the fast reader has seen every state"
    assert outcome.fast.newest == PODS + updates
    assert outcome.held_after <= SPARE, "the store holds its objects, and nothing is left of the reader"


@pytest.mark.parametrize("updates", [5_000, pytest.param(20_000, marks=pytest.mark.long)])
async def test_a_handler_that_blocks_for_ever_keeps_neither_the_cache_nor_another_handler_from_going_on(
    updates: int, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    storm = Storm(updates)
    informer = SharedInformer(storm)
    fast = Fast(storm, informer)

    class Stuck(ResourceEventHandler[Pod]):
        async def on_update(self, old: Pod, new: Pod) -> None:
            await trio.sleep_forever()

    stuck = informer.add_event_handler(Stuck())
    informer.add_event_handler(fast)
    await nursery.start(informer.run)
    storm.begin()
    await storm.is_over.wait()
    await trio.sleep(3_600)
    assert informer.lister.resource_version == str(PODS + updates)
    assert fast.updates == updates
    statistics = stuck.statistics()
    assert statistics.calls == PODS + 1
    assert 3_600 <= statistics.running_call <= 3_601
    assert (statistics.buffer.buffered, statistics.buffer.pending_objects) == (BUFFER, PODS)
    assert informer.is_healthy
    stuck.remove()
    assert stuck.statistics().buffer.buffered == stuck.statistics().buffer.pending_objects == 0
