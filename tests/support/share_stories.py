"""Random stories of replicas that share the objects of an operator, and what must be true at every moment of them.

All replicas run in one process, on virtual time.  Each has a client of its own, whose connection to the embedded server
fails, hangs or is slow in some scenes of a story.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs
import httpx
import trio

from tests.support.lease_candidates import Fault, FaultInjector
from trioformer import SharedInformer, SharedInformerFactory
from trioformer._surroundings import Surroundings, surroundings
from trioformer.cache import Deleted
from trioformer.client import ClientOptions, open_client
from trioformer.controller import Controller, Request, create_or_update, current_request
from trioformer.errors import NotFoundError, NotOwnedError
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.manager import ManagerContext, run_controllers
from trioformer.models import KubernetesObject, ObjectMeta, key_of
from trioformer.models.core_v1 import ConfigMap, Namespace, ServiceAccount
from trioformer.sharding import Shares
from trioformer.sharding._ranges import range_of
from trioformer.testing import APIServer

RANGES: Final = 8
MOST_REPLICAS: Final = 8
OPTIONS: Final = LeaderElectionOptions(retry_period=4.0)  # half as many requests as with the default
LONGEST_REQUEST: Final = 60.0
LONGEST_SETTLING: Final = 240.0
"""The longest time after the last change until everything is reconciled by the right replica."""
NAMESPACES: Final = [f"team-{number}-prod" for number in range(24)]
LABEL: Final = "tests/range"
VALUE: Final = "tests/value"
PARTITIONS: Final[tuple[Fault, ...]] = ("refuse", "hang", "lose response", "deliver late")


@attrs.define(eq=False)
class Chunks(httpx.AsyncByteStream):
    """The chunks of a watch, which arrive late, or never while the replica is cut off."""

    stream: Any
    replica: Replica

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            await trio.sleep(self.replica.watch_delay)
            while self.replica.is_cut_off:
                await self.replica.healed.wait()
            yield chunk

    async def aclose(self) -> None:
        await self.stream.aclose()


@attrs.define(eq=False)
class Replica(httpx.AsyncBaseTransport):
    """A replica of the operator, and its connection to the server."""

    name: str
    story: ShareStory
    faults: FaultInjector
    shares: Shares
    stop: trio.Event = attrs.field(factory=trio.Event)
    process: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    ended: trio.Event = attrs.field(factory=trio.Event)
    healed: trio.Event = attrs.field(factory=trio.Event)
    is_cut_off: bool = False
    watch_delay: float = 0.0
    leases: dict[int, float] = attrs.field(factory=dict)
    """When the Leases of its ranges expire, unless they are renewed: counted from when a renewal was sent."""
    informers: dict[type[KubernetesObject], SharedInformer[Any]] = attrs.field(factory=dict)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if (current := current_request()) is not None:
            self.check_lease(str(current.request), f"sends {request.method}")
        number, is_release = self._range_in(request)
        if number is not None and is_release:
            self.leases.pop(number, None)
        sent = trio.current_time()
        response = None
        with trio.move_on_after(LONGEST_REQUEST):
            response = await self.faults.handle_async_request(request)
        if response is None:
            raise httpx.ReadTimeout("the connection is broken")
        if number is not None and response.is_success and not is_release:
            self.story.moves += number not in self.leases or self.leases[number] < sent
            self.leases[number] = sent + OPTIONS.lease_duration
        if "watch" in request.url.params and response.is_success:
            return httpx.Response(
                response.status_code, headers=response.headers, stream=Chunks(response.stream, self), request=request
            )
        return response

    def _range_in(self, request: httpx.Request) -> tuple[int | None, bool]:
        """The range whose Lease a request writes, and whether it gives the Lease away."""
        if request.method not in ("POST", "PUT") or "/leases" not in request.url.path:
            return None, False
        lease = json.loads(request.content)
        name = lease["metadata"]["name"]
        is_release = not lease["spec"].get("holderIdentity")
        return (int(name.rpartition("-")[2]), is_release) if "-range-" in name else (None, False)

    def check_lease(self, key: str, what: str) -> None:
        number = self.story.range_of_key(key)
        if trio.current_time() >= self.leases.get(number, 0.0):
            self.story.fail(f"{self.name} {what} for {key}, but does not hold the Lease of range {number}")

    def owned(self) -> set[int]:
        return {number for number, expires_at in self.leases.items() if trio.current_time() < expires_at}

    # --- faults ---

    def cut_off(self, fault: Fault) -> None:
        self.faults.fault = lambda _: fault
        self.is_cut_off = True

    def slow_down(self, latency: float, watch_delay: float) -> None:
        self.faults.fault, self.faults.latency = lambda _: "slow", lambda: latency
        self.watch_delay = watch_delay

    def heal(self) -> None:
        self.faults.fault, self.is_cut_off, self.watch_delay = lambda _: "none", False, 0.0
        self.healed.set()
        self.healed = trio.Event()

    def kill(self) -> None:
        """End the process: nothing that it sends reaches the server any more."""
        self.cut_off("refuse")
        self.process.cancel()

    # --- the operator ---

    async def run(self, skew: float, *, task_status: trio.TaskStatus[None]) -> None:
        seed = self.story.rng.getrandbits(64)
        surroundings.set(
            Surroundings(
                wall_time=lambda: 1e9 + skew + trio.current_time(),
                machine_time=trio.current_time,
                boot_time=trio.current_time,
                new_generator=lambda: random.Random(seed),
            )
        )
        self.story.replicas[self.name] = self
        task_status.started()
        try:
            with self.process:
                options = ClientOptions(protobuf=False)
                config = self.story.server.config
                async with open_client(config, http_transport=self, options=options) as client:
                    self.factory = SharedInformerFactory(client)
                    start = {"tests": self.start}
                    await run_controllers(
                        client, start, shares=self.shares, factory=self.factory, stop=self.stop, shutdown_grace=5.0
                    )
        finally:
            self.story.replicas.pop(self.name, None)
            self.ended.set()

    async def start(self, context: ManagerContext) -> Controller[Request]:
        controller = Controller("tests", self.reconcile)
        self.informers[ServiceAccount] = self.factory.informer(ServiceAccount)
        controller.watch(self.informers[ServiceAccount])
        self.informers[ConfigMap] = controller.owns(self.factory, ConfigMap, owner=ServiceAccount)
        for informer in self.informers.values():
            self.story.nursery.start_soon(self.follow, informer)
        self.client = context.client
        return controller

    async def follow(self, informer: SharedInformer[Any]) -> None:
        with informer.subscribe() as notifications:
            async for each in notifications:
                if isinstance(each, Deleted) and self.story.find(each.object) is not None:
                    self.story.fail(f"{self.name} was told that {each.object.kind} {key_of(each.object)} is deleted")

    async def reconcile(self, request: Request) -> None:
        story, key = self.story, str(request)
        self.check_lease(key, "begins")
        with story.running_on(key, self.name):
            try:
                await trio.sleep(story.rng.expovariate(1.0))
                await self.act(request)
            except trio.Cancelled:
                with trio.CancelScope(shield=not self.process.cancel_called):
                    await trio.sleep(story.rng.uniform(0, 2))  # it cleans up
                raise

    async def act(self, request: Request) -> None:
        key = str(request)
        try:
            account = self.informers[ServiceAccount].lister.get(request)
        except NotOwnedError:
            self.story.fail(f"{self.name} cannot read {key} while it reconciles it")
            return
        if account is None:
            with suppress(NotFoundError):
                await self.client.api(ConfigMap, namespace=request.namespace).delete(request.name)
            return
        labels = self.shares.label_for(ConfigMap, account) if self.shares.labels else {}
        data = {"value": account.metadata.annotations[VALUE]}
        wanted = ConfigMap(metadata=ObjectMeta(name=account.name, labels=labels), data=data)
        await create_or_update(self.client, wanted, owner=account)
        self.story.reconciled[key].add((self.name, account.resource_version))


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
        labels = {ConfigMap: LABEL} if self.by == "uid" else {}
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
