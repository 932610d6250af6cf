"""Random stories of replicas that share the objects of an operator, and what must be true at every moment of them."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import trio

from tests.support.lease_candidates import Fault, FaultInjector
from tests.support.story_replicas import OPTIONS, VALUE, Replica
from trioformer.errors import NotFoundError
from trioformer.models import KubernetesObject, ObjectMeta, key_of
from trioformer.models.core_v1 import ConfigMap, Namespace, ServiceAccount
from trioformer.sharding import Shares
from trioformer.sharding._ranges import range_of
from trioformer.testing import APIServer

RANGES: Final = 8
MOST_REPLICAS: Final = 8
LONGEST_SETTLING: Final = 240.0
"""The longest time after the last change until everything is reconciled by the right replica."""
NAMESPACES: Final = [f"team-{number}-prod" for number in range(24)]
PARTITIONS: Final[tuple[Fault, ...]] = ("refuse", "hang", "lose response", "deliver late")


@attrs.define(eq=False)
class ShareStory:
    """A story: what happens to the replicas and the objects, and what was wrong."""

    server: APIServer
    nursery: trio.Nursery
    rng: random.Random
    by: Any
    replicas: dict[str, Replica] = attrs.field(factory=dict)
    """The replicas that have not ended."""
    moves: int = 0
    """How often a replica acquired a range."""
    events: list[str] = attrs.field(factory=list)
    problems: list[str] = attrs.field(factory=list)
    reconciled: dict[str, set[tuple[str, str]]] = attrs.field(factory=lambda: defaultdict(set))
    """Which replica reconciled an object successfully, and in which state."""
    running: dict[str, str] = attrs.field(factory=dict)
    _uids: dict[str, str] = attrs.field(factory=dict)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def tell(self, event: str) -> None:
        self.events.append(f"{trio.current_time():8.2f} {event}")

    def fail(self, problem: str) -> None:
        self.problems.append(f"{trio.current_time():8.2f} {problem}")

    @contextmanager
    def running_on(self, key: str, replica: str) -> Iterator[None]:
        if key in self.running:
            self.fail(f"{replica} reconciles {key}, which {self.running[key]} still reconciles")
        self.running[key] = replica
        try:
            yield
        finally:
            self.running.pop(key, None)

    # --- replicas ---

    def alive(self) -> list[Replica]:
        return [each for each in self.replicas.values() if not each.process.cancel_called]

    async def start(self) -> None:
        name = f"pod-{next(self._numbers)}"
        labels = {ConfigMap: "tests/range"} if self.by == "uid" else {}
        shares = Shares("tests", RANGES, self.by, labels=labels, identity=name, options=OPTIONS)
        replica = Replica(name, self, FaultInjector(self.server.http_transport(), self.nursery), shares)
        self.tell(f"start {name}")
        await self.nursery.start(replica.run, self.rng.uniform(-1e5, 1e5))

    async def stop(self, replica: Replica) -> None:
        self.tell(f"stop {replica.name}")
        replica.stop.set()
        with trio.move_on_after(30) as scope:
            await replica.ended.wait()
        if scope.cancelled_caught and not replica.is_cut_off and not replica.watch_delay:
            self.fail(f"{replica.name} has not stopped")
        replica.kill()

    async def scale(self, number: int) -> None:
        self.tell(f"scale to {number}")
        while len(self.alive()) < number:
            await self.start()
        for replica in self.alive()[number:]:
            await self.stop(replica)

    async def roll(self) -> None:
        self.tell("roll")
        for replica in self.alive():
            await self.start()
            await trio.sleep(self.rng.uniform(0, 10))
            await self.stop(replica)

    # --- objects ---

    def accounts(self) -> list[ServiceAccount]:
        return self.server.list(ServiceAccount)

    def find(self, obj: KubernetesObject) -> KubernetesObject | None:
        try:
            found = self.server.get(type(obj), obj.name, namespace=obj.namespace or "")
        except NotFoundError:
            return None
        return found if found.uid == obj.uid else None

    def range_of_key(self, key: str) -> int:
        return range_of(self._uids[key] if self.by == "uid" else key.partition("/")[0], RANGES)

    def change(self) -> None:
        """Create, change or delete an object."""
        rng, accounts = self.rng, self.accounts()
        choice, value = rng.random(), str(next(self._numbers))
        if len(accounts) < 10 or choice < 0.3:
            # With by="uid", another object with the same name is in another range.
            name = f"web-{value if self.by == 'uid' else rng.randrange(3)}"
            metadata = ObjectMeta(name=name, namespace=rng.choice(NAMESPACES), annotations={VALUE: value})
            if not any((each.namespace, each.name) == (metadata.namespace, name) for each in accounts):
                created = self.server.create(ServiceAccount(metadata=metadata))
                self._uids[key_of(created)] = created.uid
            return
        account = rng.choice(accounts)
        if choice < 0.8:
            patch = {"metadata": {"annotations": {VALUE: value}}}
            self.server.patch(ServiceAccount, account.name, patch, namespace=account.namespace or "")
        elif choice < 0.9:
            self.server.delete(account)
        elif child := next((each for each in self.server.list(ConfigMap) if key_of(each) == key_of(account)), None):
            self.server.delete(child)

    # --- the end ---

    def unsettled(self) -> str:
        """What is not as it must be some time after the last change, or an empty string."""
        owned = {replica: replica.owned() for replica in self.alive()}
        loads = [len(each) for each in owned.values()]
        if sum(loads) != RANGES or max(loads) - min(loads) > 1:
            return f"the ranges are not spread evenly: {loads}"
        if restless := [each.name for each in owned if not each.is_settled(len(owned))]:
            return f"{restless} may still give ranges up to a member that has ended"
        for replica, own in owned.items():
            for kind, informer in replica.informers.items():
                objects = self.server.list(kind)
                expected = {key_of(each) for each in objects if self.range_of_key(key_of(each)) in own}
                if expected != {key_of(each) for each in informer.lister}:
                    return f"{replica.name} caches other {kind.__name__}s than those in its ranges {own}"
        children = {key_of(each): each.data for each in self.server.list(ConfigMap)}
        for account in self.accounts():
            key = key_of(account)
            owner = next(replica for replica, own in owned.items() if self.range_of_key(key) in own)
            if (owner.name, account.resource_version) not in self.reconciled[key]:
                return f"{owner.name} has not reconciled {key} in its last state"
            if children.pop(key, {}) != {"value": account.metadata.annotations[VALUE]}:
                return f"the ConfigMap of {key} is missing or old"
        return f"ConfigMaps are left: {children}" if children else ""

    # --- the plot ---

    async def scene(self) -> None:
        """Do one random thing to the replicas, and some to the objects."""
        rng, replicas = self.rng, self.alive()
        for _ in range(rng.randrange(4)):
            self.change()
        if not replicas:
            await self.start()
            return
        replica, action = rng.choice(replicas), rng.random()
        if action < 0.2 and len(replicas) < MOST_REPLICAS:
            await self.start()
        elif action < 0.3:
            await self.stop(replica)
        elif action < 0.4:
            self.tell(f"kill {replica.name}")
            replica.kill()
        elif action < 0.6:
            self.tell(f"cut off {replica.name}: {(fault := rng.choice(PARTITIONS))}")
            replica.cut_off(fault)
        elif action < 0.7:
            self.tell(f"slow down {replica.name}")
            replica.slow_down(rng.uniform(0, 3), rng.uniform(0, 10))
        elif action < 0.9:
            self.tell(f"heal {replica.name}")
            replica.heal()
        elif action < 0.95 and len(replicas) <= MOST_REPLICAS // 2:
            await self.roll()
        else:
            await self.scale(rng.randint(1, MOST_REPLICAS))

    async def play(self) -> None:
        for _ in range(30):
            self.change()
        await self.scale(self.rng.randint(1, 3))
        for _ in range(self.rng.randint(4, 12)):
            await trio.sleep(self.rng.expovariate(1 / 8))
            await self.scene()
        for replica in self.alive():
            replica.heal()
        await self.scale(self.rng.randint(1, 4))
        self.change()
        self.tell("the end")
        with trio.move_on_after(LONGEST_SETTLING):
            while self.unsettled():  # noqa: ASYNC110  # it depends on everything, and time is virtual
                await trio.sleep(5)
        moves = self.moves
        await trio.sleep(20)
        self.tell("settled")
        if problem := self.unsettled():
            self.fail(problem)
        if self.moves != moves:
            self.fail("ranges move although nothing happens")


async def tell(seed: int) -> ShareStory:
    """Tell one story, which is always the same for a seed."""
    rng = random.Random(seed)
    by = rng.choice(("namespace", "uid"))
    # With by="uid", nobody may know the key of an object that was deleted while its range had no owner.
    server = APIServer(garbage_collector=by == "uid")
    for name in NAMESPACES:
        server.create(Namespace(metadata=ObjectMeta(name=name)))
    async with trio.open_nursery() as outer:
        await outer.start(server.run)
        async with trio.open_nursery() as nursery:
            story = ShareStory(server, nursery, rng, by)
            await story.play()
            nursery.cancel_scope.cancel()
        outer.cancel_scope.cancel()
    return story
