"""Candidates for a Lease of the embedded server, with an HTTP transport that injects faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import attrs
import httpx
import trio

from trioformer._secret import Secret
from trioformer.client import Api, open_client
from trioformer.leaderelection._elector import LeaderElector
from trioformer.leaderelection._leadership import LeaderElectionOptions, Leadership
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease, LeaseSpec
from trioformer.testing import APIServer
from trioformer.transport.auth._credentials import Credential

NAME = "the-lease"
NAMESPACE = "default"

Fault: TypeAlias = Literal["none", "refuse", "hang", "lose response", "deliver late", "slow"]
"""What happens to a request.

- ``hang``: it never reaches the server, and there is no response
- ``lose response``: the server handles it, and there is no response
- ``deliver late``: the server handles it after ``delivery_delay``, and there is no response
- ``slow``: request and response are delayed by ``latency`` each
"""


def no_fault(request: httpx.Request) -> Fault:
    return "none"


@attrs.define(eq=False)
class FaultInjector(httpx.AsyncBaseTransport):
    """An HTTP transport that injects faults into the requests of one client."""

    inner: httpx.AsyncBaseTransport
    nursery: trio.Nursery
    fault: Callable[[httpx.Request], Fault] = no_fault
    delivery_delay: Callable[[], float] = lambda: 8.0
    latency: Callable[[], float] = lambda: 2.0
    sent: list[tuple[str, float]] = attrs.field(factory=list)
    """Each request's method, ``WATCH`` for a watch, and when it was sent."""

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.sent]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        is_watch = "watch" in request.url.params
        self.sent.append(("WATCH" if is_watch else request.method, trio.current_time()))
        match self.fault(request):
            case "lose response" | "deliver late" if is_watch:
                await trio.sleep_forever()  # there is no response to wait for
            case "refuse":
                raise httpx.ConnectError("refused")
            case "hang":
                await trio.sleep_forever()
            case "lose response":
                response = await self.inner.handle_async_request(request)
                await response.aread()
                await trio.sleep_forever()
            case "deliver late":
                self.nursery.start_soon(self._deliver_late, request)
                await trio.sleep_forever()
            case "slow":
                await trio.sleep(self.latency())
                response = await self.inner.handle_async_request(request)
                await trio.sleep(self.latency())
                return response
            case "none":
                pass
        return await self.inner.handle_async_request(request)

    async def _deliver_late(self, request: httpx.Request) -> None:
        await trio.sleep(self.delivery_delay())
        response = await self.inner.handle_async_request(request)
        await response.aread()


@attrs.define(eq=False)
class SlowPlugin:
    """A source of credentials that takes its time, as a plugin does that lets the user log in."""

    duration: float
    """Seconds of a run; the deadline of a request is 5."""
    lifetime: float = float("inf")
    """Seconds after which a credential expires."""
    error: Exception | None = None
    """What a run ends with."""
    runs: list[float] = attrs.field(factory=list)
    """When each run began."""
    latest: Credential = attrs.field(factory=Credential)
    expires_at: float = float("-inf")

    async def get(self) -> Credential:
        if trio.current_time() >= self.expires_at:
            self.runs.append(trio.current_time())
            await trio.sleep(self.duration)
            if self.error is not None:
                raise self.error
            self.latest = Credential(Secret(f"Bearer {len(self.runs)}"))
            self.expires_at = trio.current_time() + self.lifetime
        return self.latest

    def reject(self, credential: Credential) -> None:
        self.expires_at = float("-inf")

    def install(self, api: Api[Lease]) -> None:
        """Give the requests of a client these credentials."""
        api._requests.transport._credentials = self
        api._requests.transport.plugin = "sso"


@attrs.define(eq=False)
class LeaderRuns:
    """Records the runs of leader code, and checks that they do not overlap."""

    running: list[str] = attrs.field(factory=list)
    """Identities of the candidates whose leader code runs."""
    ended: list[tuple[str, float, float]] = attrs.field(factory=list)
    """Identity, start and end of each run, in the order of their ends."""
    leaderships: list[Leadership] = attrs.field(factory=list)
    _changed: trio.Event = attrs.field(factory=trio.Event)

    async def wait_for(self, identity: str) -> Leadership:
        """Wait until a candidate's leader code runs."""
        while self.running != [identity]:
            await self._changed.wait()
        return self.leaderships[-1]

    def leader_code(self, *, for_seconds: float = float("inf"), clean_up: float = 0.0) -> Callable[[Leadership], Any]:
        """Make leader code that works for some time, and that takes some time to clean up when it is cancelled."""

        async def work(leadership: Leadership) -> str:
            assert self.running == [], f"{leadership.identity} starts while {self.running} still run"
            self.running.append(leadership.identity)
            self.leaderships.append(leadership)
            started_at = trio.current_time()
            self._notify()
            try:
                await trio.sleep(for_seconds)
                return f"done by {leadership.identity}"
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(clean_up)
                self.running.remove(leadership.identity)
                self.ended.append((leadership.identity, started_at, trio.current_time()))
                self._notify()

        return work

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


@asynccontextmanager
async def candidate(
    server: APIServer, nursery: trio.Nursery, identity: str, **options: Any
) -> AsyncIterator[tuple[LeaderElector, FaultInjector]]:
    """A candidate for the Lease, with its own client."""
    transport = FaultInjector(server.http_transport(), nursery)
    async with open_client(server.config, http_transport=transport) as client:
        elector = LeaderElector(
            client, name=NAME, namespace=NAMESPACE, identity=identity, options=LeaderElectionOptions(**options)
        )
        yield elector, transport


def stored_lease(server: APIServer) -> LeaseSpec:
    """The Lease on the server."""
    return server.get(Lease, NAME, namespace=NAMESPACE).spec


def create_lease(server: APIServer, holder: str, **spec: Any) -> None:
    """Create the Lease with a holder."""
    spec = {"lease_duration_seconds": 15, "lease_transitions": 3, **spec}
    metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
    server.create(Lease(metadata=metadata, spec=LeaseSpec(holder_identity=holder, **spec)))
