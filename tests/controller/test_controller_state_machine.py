"""Random moves of pods between owners, faults and slow functions: at rest every owner has seen its final set.

Hypothesis chooses the steps; each example has its own server, informer and controllers, in virtual time.
``--long`` runs a hundred times as many examples, at random.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import attrs
import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.support.cache_machine_listeners import CheckingListener
from tests.support.faulty_transport import FaultyTransport
from trioformer import Client, Notification, ReflectorOptions, SharedInformer, open_client
from trioformer.cache import ApiListWatch, Deleted
from trioformer.controller import Controller, Expectations, Request, _sources
from trioformer.errors import NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

IS_LONG = hypothesis.settings.get_current_profile_name() == "long"

PODS = ("x", "y", "z")
OWNERS = tuple(f"owner-{number}" for number in range(40))
"""So many that most moves are the only one from or to an owner."""
RECOVERY_TIME = 150.0
"""Seconds after which an informer watches again after any fault."""
MOST_SECONDS_WITHOUT_CHECKPOINT = 0.02
"""Several handlers may each take a slice of a millisecond, and the call that ends it, before another task runs."""


def owner_of(pod: Pod) -> str:
    return pod.metadata.labels.get("owner", "")


def request_of(obj: Pod) -> tuple[Request, ...]:
    """The enqueue function: an owner is only a name."""
    return (Request(None, owner_of(obj)),)


@attrs.frozen(kw_only=True)
class Setting:
    """What does not change within an example."""

    seed: int = 0
    buffer_size: int = 2
    resync_period: float = 0.0
    workers: int = 1
    watch_list: bool = False


@attrs.define(eq=False)
class OwnerController:
    """A controller, what its functions received, and what its reconciles saw."""

    world: World
    name: str
    delay: float = 0.0
    """Seconds that a predicate takes, without a checkpoint."""
    seen: dict[str, frozenset[str]] = attrs.field(factory=dict)
    """For each owner the uids of its pods at its last reconcile."""
    states: dict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list))
    """For each uid its resourceVersions, without repetitions, and ``deleted``."""
    expectations: Expectations = attrs.field(factory=Expectations)
    controller: Controller = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.controller = Controller(self.name, self.reconcile, workers=self.world.setting.workers)
        self.controller.watch(
            self.world.informer,
            enqueue=request_of,
            predicates=[self.expectations.observing(lambda pod: (Request(None, pod.uid),)), self.note],
        )

    def note(self, event: Notification[Pod]) -> bool:
        obj = getattr(event, "new", None) or event.object  # type: ignore[union-attr]  # one of them exists
        states = self.states[obj.uid]
        assert states[-1:] != ["deleted"], f"{self.name}: {event!r} after its deletion"
        state = "deleted" if isinstance(event, Deleted) else obj.resource_version
        if states[-1:] != [state]:
            states.append(state)
        if self.delay:
            self.world.clock.jump(self.delay)
        return True

    async def reconcile(self, request: Request) -> None:
        assert request.name is not None
        pods = self.world.informer.lister.by_index("owner", request.name)
        self.seen[request.name] = frozenset(pod.uid for pod in pods)
        await trio.sleep(self.world.rng.choice((0, 0.001, 1)))


@attrs.define(eq=False)
class World:
    """The server, the informer and its listeners; made by :func:`open_world`."""

    setting: Setting
    server: APIServer
    client: Client
    clock: MockClock
    rng: random.Random
    informer: SharedInformer[Pod] = attrs.field(init=False)
    controllers: list[OwnerController] = attrs.field(factory=list)
    stored: dict[str, list[tuple[str, str]]] = attrs.field(factory=lambda: defaultdict(list))
    """For each uid every state that the cache has had: its resourceVersion and its owner."""
    longest: float = 0.0
    """The most seconds between two checkpoints."""

    def __attrs_post_init__(self) -> None:
        self.informer = SharedInformer(
            ApiListWatch(self.client.api(Pod)),
            resync_period=self.setting.resync_period,
            indexers={"owner": self.index},
            options=ReflectorOptions(
                retry_forever=True, watch_list=self.setting.watch_list, watch_error_handler=lambda _: None
            ),
        )
        for reflector in self.informer._reflectors.parts.values():
            reflector._pacing.rng.seed(self.setting.seed)  # so that an example can be repeated

    def index(self, pod: Pod) -> tuple[str, ...]:
        """The index function, which the cache calls for each state that it stores."""
        states = self.stored[pod.uid]
        state = (pod.resource_version, owner_of(pod))
        if state not in states:
            states.append(state)
        return (owner_of(pod),)

    def move(self, name: str, owner: str) -> None:
        """Create a pod, or give it another owner."""
        try:
            self.server.patch(Pod, name, {"metadata": {"labels": {"owner": owner}}})
        except NotFoundError:
            metadata = ObjectMeta(name=name, namespace="default", labels={"owner": owner})
            pod = self.server.create(Pod(metadata=metadata))
            for each in self.controllers:
                with each.expectations.creating(Request(None, pod.uid)):
                    pass

    def delete(self, name: str) -> None:
        """Delete a pod if it exists."""
        try:
            pod = self.server.get(Pod, name)
        except NotFoundError:
            return
        for each in self.controllers:
            with each.expectations.deleting(Request(None, pod.uid), pod):
                pass
        self.server.delete(Pod, name)

    async def settle(self) -> None:
        """Wait until the faults are over and nothing waits, and check everything."""
        await trio.sleep(RECOVERY_TIME)
        self.move("x", OWNERS[0])
        with trio.fail_after(2):
            await self.informer.wait_until_at_least(self.server.get(Pod, "x"))
        await trio.sleep(self.setting.resync_period / 2 + 10)
        await trio.testing.wait_all_tasks_blocked()
        self.check()

    def check(self) -> None:
        final: dict[str, set[str]] = defaultdict(set)
        for pod in self.server.list(Pod):
            final[owner_of(pod)].add(pod.uid)
        existing = {uid for uids in final.values() for uid in uids}
        for each in self.controllers:
            statistics = each.controller.statistics()
            assert statistics.phase == "running"
            buffer = statistics.handlers[0].buffer
            assert (buffer.buffered, buffer.coalesced) == (0, 0)
            assert buffer.high_water <= self.setting.buffer_size + 202
            owners = {owner for states in self.stored.values() for _, owner in states}
            assert {owner: each.seen.get(owner) for owner in owners} == {owner: final[owner] for owner in owners}
            for uid, stored in self.stored.items():
                states = [version for version, _ in stored]
                assert [state for state in each.states[uid] if state in states] == states, f"{each.name}, {uid}"
                expected = each.expectations.get(Request(None, uid))
                assert expected is None or (expected.creations == 0 and not expected.deletions), uid
                if uid not in existing:
                    assert each.states[uid][-1] not in states, "its deletion, which has a version of its own"
        assert self.longest <= MOST_SECONDS_WITHOUT_CHECKPOINT

    async def probe(self) -> None:
        """Measure how long other tasks wait for a turn while functions are slow."""
        for _ in range(50):
            before = trio.current_time()
            await trio.lowlevel.checkpoint()
            self.longest = max(self.longest, trio.current_time() - before)


@asynccontextmanager
async def open_world(setting: Setting, clock: MockClock) -> AsyncIterator[World]:
    """Start a world with two controllers and two other listeners on one informer."""
    server = APIServer(seed=setting.seed)
    transport = FaultyTransport(server.http_transport())
    async with open_client(server.config, http_transport=transport) as client, trio.open_nursery() as nursery:
        world = World(setting, server, client, clock, random.Random(setting.seed))
        await nursery.start(server.run)
        others = [CheckingListener(name=how, overflow=how, buffer_size=2) for how in ("coalesce", "block")]  # type: ignore[arg-type]  # two of the three words
        for other in others:
            other.add_handler(world.informer, 1e9, None)
        await nursery.start(world.informer.run)
        world.controllers = [OwnerController(world, name) for name in ("one", "two")]
        for each in world.controllers:
            await nursery.start(each.controller.run)
        yield world
        for other in others:
            assert other.view == {f"default/{pod.name}": pod for pod in world.informer.lister}
        nursery.cancel_scope.cancel()
    assert server.statistics().open_watches == 0


# --- steps ---


class Step(Protocol):
    """One step of an example."""

    async def do(self, world: World) -> None: ...


@attrs.frozen
class Move:
    """Give a pod another owner, or create it."""

    pod: str
    owner: str

    async def do(self, world: World) -> None:
        world.move(self.pod, self.owner)


@attrs.frozen
class Delete:
    """Delete a pod."""

    pod: str

    async def do(self, world: World) -> None:
        world.delete(self.pod)


@attrs.frozen
class Storm:
    """Many changes that arrive together."""

    seed: int
    count: int

    async def do(self, world: World) -> None:
        rng = random.Random(self.seed)
        for _ in range(self.count):
            if rng.random() < 0.2:
                world.delete(rng.choice(PODS))
            else:
                world.move(rng.choice(PODS), rng.choice(OWNERS))
        await world.probe()


@attrs.frozen
class Slow:
    """Make a controller's functions slow, or quick again."""

    controller: int
    seconds: float

    async def do(self, world: World) -> None:
        world.controllers[self.controller].delay = self.seconds


@attrs.frozen
class Disconnect:
    """Break the watch."""

    how: str

    async def do(self, world: World) -> None:
        world.server.disconnect_watches(how=self.how)  # type: ignore[arg-type]  # one of its words


@attrs.frozen
class Outage:
    """Lose the connection, and miss some changes; if the history is compacted, the informer lists again."""

    missed: tuple[Move | Delete, ...]
    compacts: bool

    async def do(self, world: World) -> None:
        with world.server.unreachable():
            await trio.sleep(0.1)
            for step in self.missed:
                await step.do(world)
            if self.compacts:
                world.server.compact()


@attrs.frozen
class Pause:
    """Let time pass."""

    seconds: float

    async def do(self, world: World) -> None:
        await trio.sleep(self.seconds)


pods, owners = st.sampled_from(PODS), st.sampled_from(OWNERS)
changes = st.builds(Move, pods, owners) | st.builds(Move, pods, owners) | st.builds(Delete, pods)
storms = st.builds(Storm, st.integers(0, 1_000), st.sampled_from((5, 20, 60, 300)))
faults = st.one_of(
    st.builds(Disconnect, st.sampled_from(("clean", "reset"))),
    st.builds(Outage, st.lists(changes, max_size=5).map(tuple), st.booleans()),
)
slow = st.builds(Slow, st.integers(0, 1), st.sampled_from((0.0, 0.0002, 0.001, 0.004)))
pauses = st.builds(Pause, st.sampled_from((0.0, 0.0, 0.01, 0.5, 1.5, 10.0, 70.0)))
steps = st.one_of(changes, changes, storms, faults, slow, pauses)
settings = st.builds(
    Setting,
    seed=st.integers(0, 1_000_000),
    buffer_size=st.sampled_from((1, 2, 5, 1_024)),
    resync_period=st.sampled_from((0.0, 5.0, 40.0)),
    workers=st.sampled_from((1, 3)),
    watch_list=st.booleans(),
)


@pytest.fixture(scope="module", autouse=True)
def without_log() -> Iterator[None]:
    """Disable the log, which would have thousands of lines."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


async def play(setting: Setting, script: Sequence[Step], clock: MockClock) -> None:
    before, _sources.BUFFER_SIZE = _sources.BUFFER_SIZE, setting.buffer_size
    try:
        async with open_world(setting, clock) as world:
            for step in script:
                await step.do(world)
            await world.settle()
    finally:
        _sources.BUFFER_SIZE = before


@hypothesis.settings(max_examples=10_000 if IS_LONG else 50)
@hypothesis.given(settings, st.lists(steps, min_size=5, max_size=30))
@hypothesis.example(Setting(), [Slow(0, 0.001), Storm(1, 300), Storm(2, 300)])
@hypothesis.example(Setting(resync_period=5.0), [Slow(0, 0.004), Storm(1, 300), Pause(10.0), Outage((), True)])
def test_every_owner_that_ever_held_a_pod_is_reconciled_after_it_left(setting: Setting, script: Sequence[Step]) -> None:
    clock = MockClock(autojump_threshold=0)
    trio.run(play, setting, script, clock, clock=clock)
