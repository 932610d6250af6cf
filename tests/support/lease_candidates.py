"""Candidates for a Lease of the embedded server, each with a way there that a test can disturb."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import attrs
import httpx
import trio

from trioformer.client import open_client
from trioformer.leaderelection._elector import LeaderElector
from trioformer.leaderelection._leadership import LeaderElectionOptions, Leadership
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease, LeaseSpec
from trioformer.testing import APIServer

NAME = "the-lease"
NAMESPACE = "default"

Fate: TypeAlias = Literal["pass", "refuse", "swallow", "lose answer", "late", "slow"]
"""What becomes of a request: ``swallow`` never reaches the server and hangs; ``lose answer`` is carried out and hangs;
``late`` hangs and is carried out long after; ``slow`` takes its time in both directions."""


def everything_passes(request: httpx.Request) -> Fate:
    return "pass"


@attrs.define(eq=False)
class Wire(httpx.AsyncBaseTransport):
    """One candidate's way to the server."""

    inner: httpx.AsyncBaseTransport
    nursery: trio.Nursery
    fate: Callable[[httpx.Request], Fate] = everything_passes
    lateness: Callable[[], float] = lambda: 8.0
    slowness: Callable[[], float] = lambda: 2.0
    sent: list[tuple[str, float]] = attrs.field(factory=list)
    """Each request's method, and when it was sent."""

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.sent]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, trio.current_time()))
        match self.fate(request):
            case "refuse":
                raise httpx.ConnectError("refused")
            case "swallow":
                await trio.sleep_forever()
            case "lose answer":
                response = await self.inner.handle_async_request(request)
                await response.aread()
                await trio.sleep_forever()
            case "late":
                self.nursery.start_soon(self._deliver_late, request)
                await trio.sleep_forever()
            case "slow":
                await trio.sleep(self.slowness())
                response = await self.inner.handle_async_request(request)
                await trio.sleep(self.slowness())
                return response
            case "pass":
                pass
        return await self.inner.handle_async_request(request)

    async def _deliver_late(self, request: httpx.Request) -> None:
        await trio.sleep(self.lateness())
        response = await self.inner.handle_async_request(request)
        await response.aread()


@attrs.define(eq=False)
class Stage:
    """Where bodies perform, one at a time."""

    on_stage: list[str] = attrs.field(factory=list)
    performances: list[tuple[str, float, float]] = attrs.field(factory=list)
    """Who, from when, until when; in the order of their ends."""
    leads: list[Leadership] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def wait_for(self, identity: str) -> Leadership:
        """Wait until somebody is on stage."""
        while self.on_stage != [identity]:
            await self._news.wait()
        return self.leads[-1]

    def body(self, *, for_seconds: float = float("inf"), clean_up: float = 0.0) -> Callable[[Leadership], Any]:
        """A body that works for a while, and cleans up when it is cancelled."""

        async def perform(lead: Leadership) -> str:
            assert self.on_stage == [], f"{lead.identity} begins while {self.on_stage} still run"
            self.on_stage.append(lead.identity)
            self.leads.append(lead)
            began = trio.current_time()
            self._news.set()
            self._news = trio.Event()
            try:
                await trio.sleep(for_seconds)
                return f"done by {lead.identity}"
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(clean_up)
                self.on_stage.remove(lead.identity)
                self.performances.append((lead.identity, began, trio.current_time()))
                self._news.set()
                self._news = trio.Event()

        return perform


@asynccontextmanager
async def candidate(
    server: APIServer, nursery: trio.Nursery, identity: str, **options: Any
) -> AsyncIterator[tuple[LeaderElector, Wire]]:
    """A candidate for the Lease, with a client of its own."""
    wire = Wire(server.http_transport(), nursery)
    async with open_client(server.config, http_transport=wire) as client:
        elector = LeaderElector(
            client, name=NAME, namespace=NAMESPACE, identity=identity, options=LeaderElectionOptions(**options)
        )
        yield elector, wire


def lease_in(server: APIServer) -> LeaseSpec:
    """The Lease as it is stored."""
    return server.get(Lease, NAME, namespace=NAMESPACE).spec


def hold(server: APIServer, holder: str, **spec: Any) -> None:
    """Let the Lease be held by somebody, as by hand."""
    spec = {"lease_duration_seconds": 15, "lease_transitions": 3, **spec}
    metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
    server.create(Lease(metadata=metadata, spec=LeaseSpec(holder_identity=holder, **spec)))
