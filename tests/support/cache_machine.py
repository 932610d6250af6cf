"""The steps and the checks of the state machine test: a server, a faulty connection, an informer and its listeners.

The steps are values, so a failing example is printed as the list of its steps, and hypothesis can shorten the list.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Literal, Protocol

import attrs
import trio
import trio.testing

from tests.support.cache_machine_listeners import CheckingListener
from tests.support.faulty_transport import DEEP, Cut, Ending, FaultyTransport
from trioformer.cache import ApiListWatch, ReflectorOptions, ResourceEventHandler, SharedInformer
from trioformer.cache._bad_objects import QuarantineReason
from trioformer.cache.processor._overflow import Overflow
from trioformer.client import Client, open_client
from trioformer.errors import DecodeError, NotFoundError, QuarantinedError
from trioformer.models import ObjectMeta, key_of
from trioformer.models.core_v1 import Namespace, Pod
from trioformer.testing import APIServer
from trioformer.testing._serving._requests import RequestRecord

NAMESPACES = ("a", "b")
NAMES = ("x", "y", "z")
RECOVERY_TIME = 150.0
"""Seconds after which an informer watches again after any fault: the longest backoff and a watch that does not open."""
STALLED_RECOVERY_TIME = 750.0
"""The same if a connection may be open and silent: the longest watch and a grace period."""
UNLIMITED = 1_000_000_000


BAD: Mapping[str, QuarantineReason | None] = {
    "wire": QuarantineReason.UNDECODABLE,
    "transform": QuarantineReason.TRANSFORM_FAILED,
    "transform that decodes": QuarantineReason.UNDECODABLE,
    "index": QuarantineReason.INDEX_FAILED,
    "index that decodes": QuarantineReason.UNDECODABLE,
    "handler": None,
}
"""What fails on an object whose label ``bad`` is this, and why it is in quarantine; None if it is not."""


def fail_on(what: str, pod: Pod) -> None:
    """Fail if it is what fails on this object."""
    bad = pod.metadata.labels.get("bad")
    if bad == what:
        raise KeyError(what)
    if bad == f"{what}-that-decodes":
        raise DecodeError(what)


def picky_index(pod: Pod) -> list[str]:
    fail_on("index", pod)
    return [pod.metadata.labels["color"]]


class PickyHandler(ResourceEventHandler[Pod]):
    """Fails on some objects."""

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        assert obj.spec.priority == 0  # otherwise it does not decode

    async def on_update(self, old: Pod, new: Pod) -> None:
        await self.on_add(new, is_initial=False)


def is_red(pod: Pod) -> bool:
    return pod.metadata.labels.get("color") == "red"


def mark(pod: Pod) -> Pod:
    """A transform that records how often it was applied."""
    passes = int(pod.metadata.annotations.get("passes", "0")) + 1
    annotations = {**pod.metadata.annotations, "passes": str(passes)}
    return pod.evolve(metadata=pod.metadata.evolve(annotations=annotations))


def transform_of(setting: Setting) -> Callable[[Pod], Pod]:
    def transform(pod: Pod) -> Pod:
        fail_on("transform", pod)
        return mark(pod) if setting.marked else pod

    return transform


@attrs.frozen(kw_only=True)
class Setting:
    """What does not change within an example."""

    seed: int = 0
    head_start: float = 1.0
    """Seconds before the first step."""
    watch_lists: Literal["supported", "rejected", "ignored", "off"] = "supported"
    namespaced: bool = False
    """Whether the cache is made of two namespaces."""
    marked: bool = False
    expired_as_status: bool = False
    bookmark_period: float = 60.0
    max_silence: float = 90.0
    resync_period: float = 0.0
    changes_in_a_row: int = 200
    """How many changes the process loop applies before the listeners get a turn."""


@attrs.define(eq=False)
class History:
    """Every state that the objects of a namespace had, and how far the cache has come.

    A state is the version of each object by its key.
    """

    states: list[dict[str, str]] = attrs.field(factory=lambda: [{}])
    reached: int = 0

    def record(self, key: str, version: str | None) -> None:
        """Record a change; a deleted object has no version."""
        state = {**self.states[-1], key: version or ""}
        self.states.append({each: known for each, known in state.items() if known})

    def check(self, cache: Mapping[str, str], bad: Collection[str]) -> None:
        """Check that the cache, apart from keys in quarantine, has the last state that it had, or a later one."""
        wanted = {key: version for key, version in cache.items() if key not in bad}
        for number in range(self.reached, len(self.states)):
            if wanted == {key: version for key, version in self.states[number].items() if key not in bad}:
                self.reached = number
                return
        raise AssertionError(f"{wanted} is no state after {self.states[self.reached :]}")


@attrs.define(eq=False)
class World:
    """The server, the connection, the informer and its listeners; made by :func:`open_world`."""

    setting: Setting
    server: APIServer
    transport: FaultyTransport
    client: Client
    nursery: trio.Nursery
    informer: SharedInformer[Pod]
    listeners: list[CheckingListener] = attrs.field(factory=list)
    faults: deque[Fail] = attrs.field(factory=deque)
    retry_afters: set[int | None] = attrs.field(factory=set)
    """The values of ``Retry-After`` for which the server calls :meth:`next_fault`."""
    most_objects: int = len(NAMESPACES) * len(NAMES)
    """The most objects at one time; the bound of the pending entries of a listener that coalesces."""
    patience: float = 1e9
    """The patience of handlers with ``overflow="block"``, seconds."""
    joined: int = 0
    """How many listeners were added so far."""
    serial: int = 0
    histories: dict[str, History] = attrs.field(factory=dict)
    """The history of each namespace; empty if the cache is not compared with it."""
    lists: int = 0
    """How many lists the informer had received at the last check."""

    def touch(self, namespace: str, name: str, color: str = "red") -> None:
        """Create an object, or change it if it exists."""
        self.serial += 1
        labels = {"color": color, "serial": str(self.serial)}
        if self.has(namespace, name):
            self.server.patch(Pod, name, {"metadata": {"labels": labels}}, namespace=namespace)
        else:
            self.server.create(Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels)))
        self.record(namespace, name)

    def delete(self, namespace: str, name: str) -> None:
        """Delete an object if it exists."""
        if self.has(namespace, name):
            self.server.delete(Pod, name, namespace=namespace)
            self.record(namespace, name)

    def record(self, namespace: str, name: str) -> None:
        """Record a change of an object in the history."""
        if self.histories:
            has = self.has(namespace, name)
            version = self.server.get(Pod, name, namespace=namespace).resource_version if has else None
            self.histories[namespace].record(f"{namespace}/{name}", version)

    def compare_with_history(self) -> None:
        """Check that the cache passes through the states of the server, in their order."""
        indexer, bad = self.informer._indexer, self.informer._quarantine.entries
        for namespace, history in self.histories.items():
            cached = indexer.by_index("namespace", namespace)
            history.check({key_of(pod): pod.resource_version for pod in cached}, bad)

    def has(self, namespace: str, name: str) -> bool:
        try:
            self.server.get(Pod, name, namespace=namespace)
        except NotFoundError:
            return False
        return True

    def next_fault(self, retry_after: int | None, _: RequestRecord) -> int | None:
        """Return the status of the next fault if it has this ``Retry-After``, otherwise None."""
        if self.faults and self.faults[0].retry_after == retry_after:
            return self.faults.popleft().status
        return None

    def join(self, step: Join) -> None:
        """Add another listener."""
        self.joined += 1
        listener = CheckingListener(
            name=f"{step.way} {self.joined}",
            overflow=step.overflow,
            buffer_size=step.buffer_size,
            accepts=is_red if step.way == "filter" else None,
            marked=self.setting.marked,
            on_notification=self.compare_with_history,
        )
        self.listeners.append(listener)
        # A handler that runs out of patience would end the informer.
        patience = step.patience if step.way == "subscription" else self.patience
        if step.way == "subscription":
            self.nursery.start_soon(listener.run_subscription, self.informer, patience, name=listener.name)
        else:
            listener.add_handler(self.informer, patience, step.resync_period if self.setting.resync_period else None)

    def listener(self, number: int) -> CheckingListener | None:
        """Return one of the active listeners."""
        active = [listener for listener in self.listeners if listener.is_active]
        return active[number % len(active)] if active else None

    async def settle(self) -> None:
        """Wait until all faults are over, the listeners have caught up and the informer watches again; then check."""
        for listener in self.listeners:
            listener.unblock()
            listener.delay = 0.0
        await trio.sleep(1)
        self.transport.heal()
        self.faults.clear()
        stalled, self.transport.has_stalled = self.transport.has_stalled, False
        await trio.sleep(STALLED_RECOVERY_TIME if stalled else RECOVERY_TIME)
        if self.transport.has_corrupted:
            # The cache has the previous state of an undecodable object until the object changes again.
            self.transport.has_corrupted = False
            for pod in self.server.list(Pod):
                self.touch(pod.namespace, pod.name)
        self.touch("a", "x")
        with trio.fail_after(2):
            await self.informer.wait_until_at_least(self.server.get(Pod, "x", namespace="a"))
        await trio.sleep(1)
        await trio.testing.wait_all_tasks_blocked()  # a resync may be due at this moment
        self.check()

    def check(self) -> None:
        """Check everything that must hold at rest."""
        informer = self.informer
        truth = {key_of(pod): pod for pod in self.server.list(Pod)}
        cache = {key_of(pod): pod for pod in informer.lister}
        bad = {
            key: reason
            for key, pod in truth.items()
            if (reason := BAD.get(pod.metadata.labels.get("bad", "").replace("-", " ")))
        }
        assert {key: each.reason for key, each in informer.lister.quarantined().items()} == bad
        good = truth.keys() - bad.keys()
        assert _states({key: pod for key, pod in cache.items() if key not in bad}) == _states(
            {key: truth[key] for key in good}
        )
        states = _states(cache)
        for namespace in NAMESPACES:
            found = {pod.name for pod in informer.lister.list(namespace=namespace)}
            assert found == {pod.name for pod in cache.values() if pod.namespace == namespace}
        for color in ("red", "blue"):
            found = {key_of(pod) for pod in informer.lister.by_index("color", color)}
            assert found == {key for key, pod in cache.items() if pod.metadata.labels["color"] == color}
        for key in truth:
            self._check_reads(key, is_bad=key in bad, stored=cache.get(key))
        self._check_informer()
        lists = sum(each.lists for each in informer.statistics().reflectors.values())
        was_listed, self.lists = lists != self.lists, lists
        for listener in self.listeners:
            if listener.is_active:
                listener.check_order(was_listed=was_listed)
                wanted = {key: state for key, state in states.items() if not listener.accepts or is_red(cache[key])}
                assert _states(listener.view) == wanted, f"{listener.name}: {', '.join(listener.log[-8:])}"
                for key, pod in listener.view.items():
                    assert pod is cache[key]
                listener.check_bounds(self.most_objects)
        found = task_names(self.nursery.parent_task)
        # A resumed watch has a task beside it, until the server is known to have its version.
        checks = [name for name in found if name.endswith(": version check")]
        assert sum(found.pop(name) for name in checks) <= (len(NAMESPACES) if self.setting.namespaced else 1)
        assert found == self._expected_tasks(), found

    def _check_reads(self, key: str, *, is_bad: bool, stored: Pod | None) -> None:
        """Check that an object that exists is never reported as gone."""
        lister = self.informer.lister
        namespace, _, name = key.partition("/")
        assert key in lister
        for allow_stale in (False, True):
            try:
                found = lister.get(name, namespace=namespace, allow_stale=allow_stale)
            except QuarantinedError:
                assert is_bad
                assert not allow_stale or stored is None
            else:
                assert found is stored is not None
                assert not is_bad or allow_stale

    def _check_informer(self) -> None:
        informer, sources = self.informer, len(NAMESPACES) if self.setting.namespaced else 1
        assert informer.has_synced
        assert informer.is_healthy
        assert (str(informer.state).partition(";")[0], informer.state.age) == ("watching", 0)
        statistics = informer.statistics()
        assert statistics.pending == 0
        assert sum(statistics.quarantined.values()) == informer.state.quarantined
        assert statistics.handlers_and_subscriptions == 1 + sum(listener.is_active for listener in self.listeners)
        assert self.server.statistics().open_watches == self.transport.open_bodies == sources

    def _expected_tasks(self) -> Counter[str]:
        """Return the names of exactly the tasks that must be running."""
        name = "informer of Pod"
        expected = Counter(["the informer", "trioformer.testing._server.APIServer.run"])
        if self.setting.namespaced:
            name += f" in namespaces {', '.join(NAMESPACES)}"
            expected.update(f"{name}: reflector of {namespace}" for namespace in NAMESPACES)
        else:
            expected[f"{name}: reflector"] = 1
        expected.update(f"{name}: {part}" for part in ("process loop", "listeners"))
        expected[f"handler picky of {name.replace('informer of', 'informer')}"] = 1
        if self.setting.resync_period:
            expected[f"{name}: resync"] = 1
        for listener in self.listeners:
            if listener.is_active:
                is_handler = listener.registration is not None
                where = name.replace("informer of", "informer")
                expected[f"handler {listener.name} of {where}" if is_handler else listener.name] = 1
        for task in ("testing._in_memory.Exchange.serve", "_asgi._cancel_on_disconnect"):  # of an open watch
            expected[f"trioformer.{task}"] = len(NAMESPACES) if self.setting.namespaced else 1
        return expected


def _states(pods: Mapping[str, Pod]) -> dict[str, tuple[str, str, str]]:
    return {key: (pod.uid, pod.resource_version, pod.metadata.labels["serial"]) for key, pod in pods.items()}


def task_names(task: trio.lowlevel.Task | None) -> Counter[str]:
    """Return the names of all descendants of a task."""
    assert task is not None
    return Counter(child.name.removeprefix("tests.support.cache_machine.") for child in _below(task))


def _below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _below(child)


@asynccontextmanager
async def open_world(setting: Setting, listeners: Sequence[Join] = ()) -> AsyncIterator[World]:
    """Start a world; at the end of the block, check that nothing of it is left."""
    server = APIServer(
        seed=setting.seed, bookmark_period=setting.bookmark_period, expired_as_status=setting.expired_as_status
    )
    for name in NAMESPACES:
        server.create(Namespace(metadata=ObjectMeta(name=name)))
    transport = FaultyTransport(
        server.http_transport(),
        ignores_watch_lists=setting.watch_lists == "ignored",
        checks_retry_after=not setting.namespaced,  # with two reflectors only one of them gets the Retry-After
    )
    options = ReflectorOptions(
        retry_forever=True,
        watch_list=setting.watch_lists != "off",
        max_silence=setting.max_silence,
        watch_error_handler=lambda _: None,
        undecodable_handler=lambda _: None,
    )
    async with open_client(server.config, http_transport=transport) as client, trio.open_nursery() as nursery:
        if setting.namespaced:
            source: ApiListWatch[Pod] | dict[str, ApiListWatch[Pod]]
            source = {namespace: ApiListWatch(client.api(Pod, namespace)) for namespace in NAMESPACES}
        else:
            source = ApiListWatch(client.api(Pod))
        informer = SharedInformer(
            source,
            resync_period=setting.resync_period,
            transform=transform_of(setting),
            indexers={"color": picky_index},
            options=options,
        )
        informer.add_event_handler(PickyHandler(), name="picky")
        for reflector in informer._reflectors.parts.values():
            reflector._pacing.rng.seed(setting.seed)  # so that an example can be repeated
        # In a message the label is spoiled by a wire type that does not exist.
        label = b"\x0b\n\x03bad\x12\x04wire"
        transport.spoils = {b'"wire"': DEEP, b"\x5a" + label: b"\x5e" + label}
        world = World(setting, server, transport, client, nursery, informer)
        for step in listeners:
            world.join(step)
        if setting.watch_lists == "rejected":
            server.fail_next(UNLIMITED, status=_reject_watch_lists)
        await nursery.start(server.run)
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await informer.run()

        nursery.start_soon(run, name="the informer")
        yield world
        before = [listener for listener in world.listeners if listener.is_active]
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert str(informer.state).startswith("stopped")
        assert not informer.has_synced
        assert all(each.is_gone for each in before if each.registration is None), "subscriptions have ended"
        assert server.statistics().open_watches == transport.open_bodies == 0
        assert informer.statistics().handlers_and_subscriptions == 0
        assert task_names(nursery.parent_task) == Counter(["trioformer.testing._server.APIServer.run"])
        nursery.cancel_scope.cancel()


def _reject_watch_lists(request: RequestRecord) -> int | None:
    return 400 if "sendInitialEvents" in request.query else None


# --- steps ---


class Step(Protocol):
    """One step of an example."""

    async def do(self, world: World) -> None: ...


@attrs.frozen
class Touch:
    """Create an object, or change it if it exists."""

    namespace: str
    name: str
    color: str = "red"

    async def do(self, world: World) -> None:
        world.touch(self.namespace, self.name, self.color)


@attrs.frozen
class Delete:
    """Delete an object if it exists."""

    namespace: str
    name: str

    async def do(self, world: World) -> None:
        world.delete(self.namespace, self.name)


@attrs.frozen
class Recreate:
    """Replace an object by another one with the same name."""

    namespace: str
    name: str
    color: str = "red"

    async def do(self, world: World) -> None:
        world.delete(self.namespace, self.name)
        world.touch(self.namespace, self.name, self.color)


@attrs.frozen
class Spoil:
    """Create or change an object so that something fails on it; None corrects it."""

    namespace: str
    name: str
    what: str | None

    async def do(self, world: World) -> None:
        world.touch(self.namespace, self.name)
        bad = None if self.what is None else self.what.replace(" ", "-")
        spec = {"priority": "undecodable" if bad == "handler" else 0}
        world.server.patch(
            Pod, self.name, {"metadata": {"labels": {"bad": bad}}, "spec": spec}, namespace=self.namespace
        )
        world.record(self.namespace, self.name)


@attrs.frozen
class Churn:
    """Make many changes at the same time."""

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
    """Compact the server's history."""

    async def do(self, world: World) -> None:
        world.server.compact()


@attrs.frozen
class Disconnect:
    """End the open watches, after an ERROR event if there is a status."""

    how: Ending
    status: int | None = None

    async def do(self, world: World) -> None:
        if world.server.disconnect_watches(how=self.how, status=self.status) and self.how == "stall":
            world.transport.has_stalled = True


@attrs.frozen
class Fail:
    """Make the next list or watch fail, after the faults that are pending."""

    status: int
    retry_after: int | None = None

    async def do(self, world: World) -> None:
        world.faults.append(self)
        if self.retry_after not in world.retry_afters:
            world.retry_afters.add(self.retry_after)
            world.server.fail_next(
                UNLIMITED, status=partial(world.next_fault, self.retry_after), retry_after=self.retry_after
            )


@attrs.frozen
class CaptivePortal:
    """Respond to the next requests with a web page, as a captive portal does."""

    count: int

    async def do(self, world: World) -> None:
        world.transport.portals = self.count


@attrs.frozen
class CutBody:
    """Cut the next chunk of a list or watch in the middle."""

    at: float
    how: Ending

    async def do(self, world: World) -> None:
        world.transport.cuts.append(Cut(self.at, self.how))


@attrs.frozen
class Corrupt:
    """Make the objects of the next events undecodable, beginning with these changes."""

    count: int
    then: tuple[Touch | Delete | Recreate | Spoil | Churn, ...] = ()

    async def do(self, world: World) -> None:
        world.transport.corrupted = self.count
        for step in self.then:
            await step.do(world)


@attrs.frozen
class LoseBookmarks:
    """Drop every bookmark, or deliver them again."""

    loses: bool

    async def do(self, world: World) -> None:
        world.transport.loses_bookmarks = self.loses


@attrs.frozen
class Halve:
    """Deliver every chunk in two halves, or whole again."""

    halves: bool

    async def do(self, world: World) -> None:
        world.transport.halves = self.halves


@attrs.frozen
class Gather:
    """Deliver frames together, or each by itself again."""

    gathers: bool

    async def do(self, world: World) -> None:
        world.transport.gathers = self.gathers


@attrs.frozen
class Unreachable:
    """Refuse connections for some seconds."""

    seconds: float

    async def do(self, world: World) -> None:
        with world.server.unreachable():
            await trio.sleep(self.seconds)


@attrs.frozen
class Outage:
    """Lose the connection, miss some changes, and usually find the history compacted."""

    missed: tuple[Touch | Delete | Recreate | Spoil | Churn, ...]
    compacts: bool = True
    seconds: float = 0.1
    then: int = 0
    """How many changes follow while the informer reconnects; some arrive together with its first frames."""

    async def do(self, world: World) -> None:
        with world.server.unreachable():
            await trio.sleep(self.seconds)  # until the informer notices it
            for step in self.missed:
                await step.do(world)
            if self.compacts:
                world.server.compact()
        before, world.transport.gathers = world.transport.gathers, world.transport.gathers or self.then > 0
        for number in range(self.then):
            await trio.sleep(0.7)
            await Churn(number, 1).do(world)
        world.transport.gathers = before


@attrs.frozen
class Burst:
    """Block a listener during some changes."""

    listener: int
    changes: tuple[Touch | Delete | Recreate | Spoil | Churn | Outage, ...]
    seconds: float = 2.0

    async def do(self, world: World) -> None:
        listener = world.listener(self.listener)
        if listener is None:
            return
        listener.block()
        for step in self.changes:
            await step.do(world)
            await trio.sleep(self.seconds)
        listener.unblock()


@attrs.frozen
class Join:
    """Add a listener."""

    way: Literal["handler", "filter", "subscription"]
    overflow: Overflow
    buffer_size: int
    patience: float = 5.0
    resync_period: float | None = None

    async def do(self, world: World) -> None:
        if sum(listener.is_active for listener in world.listeners) < 5:
            world.join(self)


@attrs.frozen
class Leave:
    """Remove a listener: from outside, with or without waiting for its end, or inside its next call."""

    listener: int
    how: Literal["remove", "aclose", "inside", "close inside"]

    async def do(self, world: World) -> None:
        listener = world.listener(self.listener)
        if listener is None:
            return
        if listener.registration is None:
            listener.is_gone = True
            listener.scope.cancel()
        elif self.how in ("inside", "close inside"):
            listener.leaves_inside = "aclose" if self.how == "close inside" else "remove"
        else:
            listener.is_gone = True
            if self.how == "aclose":
                listener.unblock()  # otherwise the call would never end
                await listener.registration.aclose()
            else:
                listener.registration.remove()


@attrs.frozen
class Slow:
    """Make a listener slow; if there are no seconds, block it."""

    listener: int
    seconds: float | None

    async def do(self, world: World) -> None:
        listener = world.listener(self.listener)
        if listener is None:
            return
        if self.seconds is None:
            listener.block()
        else:
            listener.delay = self.seconds
            listener.was_slow = listener.was_slow or self.seconds > 0


@attrs.frozen
class Trickle:
    """Make a listener a little slower than the changes, so that it falls behind and catches up repeatedly."""

    listener: int
    seed: int
    count: int

    async def do(self, world: World) -> None:
        listener = world.listener(self.listener)
        if listener is None:
            return
        listener.delay, listener.was_slow = 0.3, True
        rng = random.Random(self.seed)
        for _ in range(self.count):
            await Churn(rng.randrange(1_000), 1 + rng.randrange(3)).do(world)
            await trio.sleep(rng.choice((0.0, 0.1, 0.5, 1.0)))
        listener.delay = 0.0


@attrs.frozen
class Unblock:
    """Unblock a listener."""

    listener: int

    async def do(self, world: World) -> None:
        if (listener := world.listener(self.listener)) is not None:
            listener.unblock()


@attrs.frozen
class Raise:
    """Make a listener fail on its next notification; a handler has an ``on_error``, a subscription ends."""

    listener: int

    async def do(self, world: World) -> None:
        if (listener := world.listener(self.listener)) is not None:
            listener.fails += 1


@attrs.frozen
class Pause:
    """Let time pass."""

    seconds: float
    longest: ClassVar[float] = 700.0

    async def do(self, world: World) -> None:
        await trio.sleep(self.seconds)


@attrs.frozen
class Settle:
    """Wait until everything is at rest, and check everything."""

    async def do(self, world: World) -> None:
        await world.settle()
