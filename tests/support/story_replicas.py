"""The replicas of a story: all run on virtual time in one process, each with a connection and a clock of its own."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

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
from trioformer.models.core_v1 import ConfigMap, ServiceAccount
from trioformer.sharding import Shares
from trioformer.sharding._open_shares import OpenShares

if TYPE_CHECKING:
    from tests.support.share_stories import ShareStory

OPTIONS: Final = LeaderElectionOptions(retry_period=4.0)  # half as many requests as with the default
LONGEST_REQUEST: Final = 60.0
VALUE: Final = "tests/value"


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
    opened: OpenShares | None = None

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

    def is_settled(self, members: int) -> bool:
        """Return whether this replica knows who has ended, and gives no range up any more."""
        state = None if self.opened is None else self.opened.state
        return state is not None and len(state.members) == members and {*state.own.values()} <= {"ready"}

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
        self.client, self.opened = context.client, context.shares
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
