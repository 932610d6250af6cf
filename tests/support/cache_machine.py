"""A server, the way to it, an informer and its readers: what a test does to them step by step, and what must hold.

The steps are values, so that a failing example prints as the list of what was done, and a shorter list is still one.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Literal, Protocol

import attrs
import trio
import trio.testing

from tests.support.cache_machine_readers import Reader
from tests.support.faulty_transport import Cut, Ending, Wire
from trioformer.cache import ApiListWatch, Overflow, ReflectorOptions, SharedInformer
from trioformer.client import Client, open_client
from trioformer.errors import NotFoundError
from trioformer.models import ObjectMeta, key_of
from trioformer.models.core_v1 import Namespace, Pod
from trioformer.testing import APIServer, RequestRecord

NAMESPACES = ("a", "b")
NAMES = ("x", "y", "z")
QUIET = 150.0
"""Seconds after which an informer is back, whatever happened: the longest backoff and a stream that does not begin."""
STALLED = 750.0
"""The same when a connection may be open and silent: the longest watch, and a grace."""
EVER = 1_000_000_000


def is_red(pod: Pod) -> bool:
    return pod.metadata.labels.get("color") == "red"


def mark(pod: Pod) -> Pod:
    """A transform that shows how often it was applied."""
    passes = int(pod.metadata.annotations.get("passes", "0")) + 1
    annotations = {**pod.metadata.annotations, "passes": str(passes)}
    return attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, annotations=annotations))


@attrs.frozen(kw_only=True)
class Setting:
    """What is the same throughout an example."""

    seed: int = 0
    head_start: float = 1.0
    """Seconds before anything happens."""
    streams: Literal["yes", "refused", "ignored", "off"] = "yes"
    namespaced: bool = False
    """Whether the cache is made of two namespaces."""
    marked: bool = False
    expired_as_status: bool = False
    bookmark_period: float = 60.0
    max_silence: float = 90.0
    internal_error_retry: float = 0.0
    resync_period: float = 0.0


@attrs.define(eq=False)
class World:
    """All there is; made by :func:`open_world`."""

    setting: Setting
    server: APIServer
    wire: Wire
    client: Client
    nursery: trio.Nursery
    informer: SharedInformer[Pod]
    readers: list[Reader] = attrs.field(factory=list)
    faults: deque[Fail] = attrs.field(factory=deque)
    orders: set[int | None] = attrs.field(factory=set)
    most_objects: int = len(NAMESPACES) * len(NAMES)
    """How many there may be at once; what waits for a reader that coalesces is bounded by it."""
    patience: float = 1e9
    """Seconds that handlers of the policy "block" are given."""
    joined: int = 0
    serial: int = 0

    def touch(self, namespace: str, name: str, color: str = "red") -> None:
        """Create an object or change it."""
        self.serial += 1
        labels = {"color": color, "serial": str(self.serial)}
        if self.has(namespace, name):
            self.server.patch(Pod, name, {"metadata": {"labels": labels}}, namespace=namespace)
        else:
            self.server.create(Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels)))

    def delete(self, namespace: str, name: str) -> None:
        """Delete an object if it is there."""
        if self.has(namespace, name):
            self.server.delete(Pod, name, namespace=namespace)

    def has(self, namespace: str, name: str) -> bool:
        try:
            self.server.get(Pod, name, namespace=namespace)
        except NotFoundError:
            return False
        return True

    def choose(self, retry_after: int | None, _: RequestRecord) -> int | None:
        """Take the next fault if it is one of those that the server was asked for with this ``Retry-After``."""
        if self.faults and self.faults[0].retry_after == retry_after:
            if not self.setting.namespaced:  # or two reflectors would each be told for itself
                self.wire.closed_until = trio.current_time() + (retry_after or 0)
            return self.faults.popleft().status
        return None

    def join(self, step: Join) -> None:
        """Let another reader in."""
        self.joined += 1
        reader = Reader(
            name=f"{step.way} {self.joined}",
            overflow=step.overflow,
            buffer_size=step.buffer_size,
            accepts=is_red if step.way == "filter" else None,
            marked=self.setting.marked,
        )
        self.readers.append(reader)
        # What "raise" does to a handler, and "block" to one that is out of patience, is the end of its informer.
        patience = step.patience if step.way == "subscription" else self.patience
        if step.way == "subscription":
            self.nursery.start_soon(reader.read, self.informer, patience, name=reader.name)
        else:
            reader.join(self.informer, patience, step.resync_period if self.setting.resync_period else None)

    def reader(self, number: int) -> Reader | None:
        """One of those that still read."""
        reading = [reader for reader in self.readers if reader.is_reading]
        return reading[number % len(reading)] if reading else None

    async def quiet_down(self) -> None:
        """Let every fault pass, every reader catch up, and the informer watch again; then look at everything."""
        for reader in self.readers:
            reader.unblock()
            reader.delay = 0.0
        await trio.sleep(1)
        self.wire.heal()
        self.faults.clear()
        stalled, self.wire.has_stalled = self.wire.has_stalled, False
        await trio.sleep(STALLED if stalled else QUIET)
        if self.wire.has_corrupted:
            # What did not decode is as it was before, until it changes again.
            self.wire.has_corrupted = False
            for pod in self.server.list(Pod):
                self.touch(pod.namespace, pod.name)
        self.touch("a", "x")
        with trio.fail_after(2):
            await self.informer.wait_until_at_least(self.server.get(Pod, "x", namespace="a"))
        await trio.sleep(1)
        await trio.testing.wait_all_tasks_blocked()  # a resync may be due at this very moment
        self.check()

    def check(self) -> None:
        """Everything that must hold when nothing is going on."""
        informer = self.informer
        truth = {key_of(pod): pod for pod in self.server.list(Pod)}
        states = _states(truth)
        cache = {key_of(pod): pod for pod in informer.lister}
        assert _states(cache) == states
        for namespace in NAMESPACES:
            assert {pod.name for pod in informer.lister.list(namespace=namespace)} == {
                pod.name for pod in truth.values() if pod.namespace == namespace
            }
        self._check_informer()
        for reader in self.readers:
            if reader.is_reading:
                wanted = {key: state for key, state in states.items() if not reader.accepts or is_red(truth[key])}
                assert _states(reader.view) == wanted, f"{reader.name}: {', '.join(reader.log[-8:])}"
                for key, pod in reader.view.items():
                    assert pod is cache[key]
                reader.check_bounds(self.most_objects)
        found = task_names(self.nursery.parent_task)
        assert found == self._expected_tasks(), found

    def _check_informer(self) -> None:
        informer, sources = self.informer, len(NAMESPACES) if self.setting.namespaced else 1
        assert informer.has_synced
        assert informer.is_healthy
        assert (str(informer.state), informer.state.age) == ("watching", 0)
        statistics = informer.statistics()
        assert statistics.pending == 0
        assert statistics.handlers_and_subscriptions == sum(reader.is_reading for reader in self.readers)
        assert self.server.statistics().open_watches == self.wire.open_bodies == sources

    def _expected_tasks(self) -> Counter[str]:
        """The names of all tasks: nothing more, nothing less."""
        name = "informer of Pod"
        expected = Counter(["the informer", "trioformer.testing._server.APIServer.run"])
        if self.setting.namespaced:
            name += f" in namespaces {', '.join(NAMESPACES)}"
            expected.update(f"{name}: reflector of {namespace}" for namespace in NAMESPACES)
        else:
            expected[f"{name}: reflector"] = 1
        expected.update(f"{name}: {part}" for part in ("process loop", "listeners"))
        if self.setting.resync_period:
            expected[f"{name}: resync"] = 1
        for reader in self.readers:
            if reader.is_reading:
                is_handler = reader.registration is not None
                where = name.replace("informer of", "informer")
                expected[f"handler {reader.name} of {where}" if is_handler else reader.name] = 1
        for task in ("_in_memory.Exchange.serve", "_serving._app._cancel_when_gone"):  # of an open watch
            expected[f"trioformer.testing.{task}"] = len(NAMESPACES) if self.setting.namespaced else 1
        return expected


def _states(pods: Mapping[str, Pod]) -> dict[str, tuple[str, str, str]]:
    return {key: (pod.uid, pod.resource_version, pod.metadata.labels["serial"]) for key, pod in pods.items()}


def task_names(task: trio.lowlevel.Task | None) -> Counter[str]:
    """The names of all tasks below one."""
    assert task is not None
    return Counter(child.name.removeprefix("tests.support.cache_machine.") for child in _below(task))


def _below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _below(child)


@asynccontextmanager
async def open_world(setting: Setting, readers: Sequence[Join] = ()) -> AsyncIterator[World]:
    """Start a world; when the block is left, everything in it must be gone."""
    server = APIServer(
        seed=setting.seed, bookmark_period=setting.bookmark_period, expired_as_status=setting.expired_as_status
    )
    for name in NAMESPACES:
        server.create(Namespace(metadata=ObjectMeta(name=name)))
    wire = Wire(server.http_transport(), ignores_streaming=setting.streams == "ignored")
    options = ReflectorOptions(
        retry_forever=True,
        watch_list=setting.streams != "off",
        max_silence=setting.max_silence,
        internal_error_retry=setting.internal_error_retry,
        watch_error_handler=lambda _: None,
        undecodable_handler=lambda _: None,
    )
    async with open_client(server.config, http_transport=wire) as client, trio.open_nursery() as nursery:
        if setting.namespaced:
            source: ApiListWatch[Pod] | dict[str, ApiListWatch[Pod]]
            source = {namespace: ApiListWatch(client.api(Pod, namespace)) for namespace in NAMESPACES}
        else:
            source = ApiListWatch(client.api(Pod))
        informer = SharedInformer(
            source,
            resync_period=setting.resync_period,
            transform=mark if setting.marked else None,
            options=options,
        )
        for reflector in informer._reflectors.values():
            reflector._random.seed(setting.seed)  # or an example would not be the same twice
        world = World(setting, server, wire, client, nursery, informer)
        for step in readers:
            world.join(step)
        if setting.streams == "refused":
            server.fail_next(EVER, status=_refuse_streams)
        await nursery.start(server.run)
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await informer.run()

        nursery.start_soon(run, name="the informer")
        yield world
        before = [reader for reader in world.readers if reader.is_reading]
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert str(informer.state).startswith("stopped")
        assert not informer.has_synced
        assert all(reader.is_gone for reader in before if reader.registration is None), "subscriptions have ended"
        assert server.statistics().open_watches == wire.open_bodies == 0
        assert informer.statistics().handlers_and_subscriptions == 0
        assert task_names(nursery.parent_task) == Counter(["trioformer.testing._server.APIServer.run"])
        nursery.cancel_scope.cancel()


def _refuse_streams(request: RequestRecord) -> int | None:
    return 400 if "sendInitialEvents" in request.query else None


# --- steps ---


class Step(Protocol):
    """Something that happens."""

    async def do(self, world: World) -> None: ...


@attrs.frozen
class Touch:
    """Create an object or change it."""

    namespace: str
    name: str
    color: str = "red"

    async def do(self, world: World) -> None:
        world.touch(self.namespace, self.name, self.color)


@attrs.frozen
class Delete:
    """Delete an object if it is there."""

    namespace: str
    name: str

    async def do(self, world: World) -> None:
        world.delete(self.namespace, self.name)


@attrs.frozen
class Recreate:
    """Another object in place of one, under the same name."""

    namespace: str
    name: str
    color: str = "red"

    async def do(self, world: World) -> None:
        world.delete(self.namespace, self.name)
        world.touch(self.namespace, self.name, self.color)


@attrs.frozen
class Churn:
    """Many changes at once."""

    seed: int
    count: int

    async def do(self, world: World) -> None:
        rng = random.Random(self.seed)
        for _ in range(self.count):
            namespace, name = rng.choice(NAMESPACES), rng.choice(NAMES)
            if rng.random() < 0.3:
                world.delete(namespace, name)
            else:
                world.touch(namespace, name, rng.choice(("red", "blue")))


@attrs.frozen
class Compact:
    """Have the server forget its history."""

    async def do(self, world: World) -> None:
        world.server.compact()


@attrs.frozen
class Disconnect:
    """End the open watches, with an ERROR event before the end if there is a code."""

    how: Ending
    status: int | None = None

    async def do(self, world: World) -> None:
        if world.server.disconnect_watches(how=self.how, status=self.status) and self.how == "stall":
            world.wire.has_stalled = True


@attrs.frozen
class Fail:
    """Have the next list or watch fail, behind the faults that wait already."""

    status: int
    retry_after: int | None = None

    async def do(self, world: World) -> None:
        world.faults.append(self)
        if self.retry_after not in world.orders:
            world.orders.add(self.retry_after)
            world.server.fail_next(EVER, status=partial(world.choose, self.retry_after), retry_after=self.retry_after)


@attrs.frozen
class Portal:
    """Answer the next requests with a web page."""

    count: int

    async def do(self, world: World) -> None:
        world.wire.portals = self.count


@attrs.frozen
class CutBody:
    """Cut the next piece of a list or watch somewhere in the middle."""

    at: float
    how: Ending

    async def do(self, world: World) -> None:
        world.wire.cuts.append(Cut(self.at, self.how))


@attrs.frozen
class Corrupt:
    """Spoil the objects of the next events, the first of which are these."""

    count: int
    then: tuple[Touch | Delete | Recreate | Churn, ...] = ()

    async def do(self, world: World) -> None:
        world.wire.corrupted = self.count
        for step in self.then:
            await step.do(world)


@attrs.frozen
class LoseBookmarks:
    """Lose every bookmark, or no more of them."""

    loses: bool

    async def do(self, world: World) -> None:
        world.wire.loses_bookmarks = self.loses


@attrs.frozen
class Halve:
    """Let everything come in two pieces, or whole again."""

    halves: bool

    async def do(self, world: World) -> None:
        world.wire.halves = self.halves


@attrs.frozen
class Gather:
    """Let frames come together, or each by itself again."""

    gathers: bool

    async def do(self, world: World) -> None:
        world.wire.gathers = self.gathers


@attrs.frozen
class Unreachable:
    """Refuse connections for a while."""

    seconds: float

    async def do(self, world: World) -> None:
        with world.server.unreachable():
            await trio.sleep(self.seconds)


@attrs.frozen
class Outage:
    """Lose the connection, miss what happens, and find, mostly, that the history is forgotten."""

    missed: tuple[Touch | Delete | Recreate | Churn, ...]
    compacts: bool = True
    seconds: float = 0.1
    then: int = 0
    """How many changes there are while the connection comes back; some arrive together with its first words."""

    async def do(self, world: World) -> None:
        with world.server.unreachable():
            await trio.sleep(self.seconds)  # until it is noticed
            for step in self.missed:
                await step.do(world)
            if self.compacts:
                world.server.compact()
        before, world.wire.gathers = world.wire.gathers, world.wire.gathers or self.then > 0
        for number in range(self.then):
            await trio.sleep(0.7)
            await Churn(number, 1).do(world)
        world.wire.gathers = before


@attrs.frozen
class Burst:
    """Get a reader stuck, and let things happen before it goes on."""

    reader: int
    told: tuple[Touch | Delete | Recreate | Churn | Outage, ...]
    seconds: float = 2.0

    async def do(self, world: World) -> None:
        reader = world.reader(self.reader)
        if reader is None:
            return
        reader.block()
        for step in self.told:
            await step.do(world)
            await trio.sleep(self.seconds)
        reader.unblock()


@attrs.frozen
class Join:
    """Add a reader."""

    way: Literal["handler", "filter", "subscription"]
    overflow: Overflow
    buffer_size: int
    patience: float = 5.0
    resync_period: float | None = None

    async def do(self, world: World) -> None:
        if sum(reader.is_reading for reader in world.readers) < 5:
            world.join(self)


@attrs.frozen
class Leave:
    """Remove a reader: from outside, waiting for its end or not, or from inside its next call."""

    reader: int
    how: Literal["remove", "aclose", "inside", "close inside"]

    async def do(self, world: World) -> None:
        reader = world.reader(self.reader)
        if reader is None:
            return
        if reader.registration is None:
            reader.is_gone = True
            reader.scope.cancel()
        elif self.how in ("inside", "close inside"):
            reader.leaves_inside = "aclose" if self.how == "close inside" else "remove"
        else:
            reader.is_gone = True
            if self.how == "aclose":
                reader.unblock()  # or there would be nothing that ends the call
                await reader.registration.aclose()
            else:
                reader.registration.remove()


@attrs.frozen
class Slow:
    """Make a reader slow; without an end if there are no seconds."""

    reader: int
    seconds: float | None

    async def do(self, world: World) -> None:
        reader = world.reader(self.reader)
        if reader is None:
            return
        if self.seconds is None:
            reader.block()
        else:
            reader.delay = self.seconds
            reader.was_slow = reader.was_slow or self.seconds > 0


@attrs.frozen
class Trickle:
    """Let a reader be a little too slow for what happens, so that it is behind and catches up again and again."""

    reader: int
    seed: int
    count: int

    async def do(self, world: World) -> None:
        reader = world.reader(self.reader)
        if reader is None:
            return
        reader.delay, reader.was_slow = 0.3, True
        rng = random.Random(self.seed)
        for _ in range(self.count):
            await Churn(rng.randrange(1_000), 1 + rng.randrange(3)).do(world)
            await trio.sleep(rng.choice((0.0, 0.1, 0.5, 1.0)))
        reader.delay = 0.0


@attrs.frozen
class Unblock:
    """Let a reader that is stuck go on."""

    reader: int

    async def do(self, world: World) -> None:
        if (reader := world.reader(self.reader)) is not None:
            reader.unblock()


@attrs.frozen
class Ouch:
    """Have a reader fail on what it is told next; a handler has somebody who takes the error, a subscription ends."""

    reader: int

    async def do(self, world: World) -> None:
        if (reader := world.reader(self.reader)) is not None:
            reader.fails += 1


@attrs.frozen
class Pause:
    """Let time pass."""

    seconds: float
    longest: ClassVar[float] = 700.0

    async def do(self, world: World) -> None:
        await trio.sleep(self.seconds)


@attrs.frozen
class Quiet:
    """Let everything come to rest, and look at everything."""

    async def do(self, world: World) -> None:
        await world.quiet_down()
