"""A controller that reads its own writes, beside caches that are behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
import trio

from trioformer import Client, SharedInformerFactory
from trioformer.controller import Controller, Request
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

WEB = Request("default", "web")
OTHER = Request("default", "other")
Work = Callable[["Setup"], Awaitable[object]]


def config_map(name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels=labels))


@attrs.define(eq=False)
class Setup:
    """A controller whose first call for ``web`` does some work, and what its later calls see."""

    server: APIServer
    client: Client
    factory: SharedInformerFactory
    controller: Controller[Request]
    work: Work | None = None
    finished: trio.Event = attrs.field(factory=trio.Event)
    """Set at the second call for ``web``."""
    began: list[tuple[Request, float]] = attrs.field(factory=list)
    seen: list[set[str]] = attrs.field(factory=list)
    """The names of the cached ConfigMaps at the beginning of each call for ``web``."""
    look: Callable[[Setup], object] | None = None
    """What a test wants to know at the beginning of each call for ``web``."""
    looks: list[object] = attrs.field(factory=list)

    async def reconcile(self, request: Request) -> None:
        self.began.append((request, trio.current_time()))
        if request != WEB:
            return
        self.seen.append({one.name for one in self.factory.informer(ConfigMap).lister.list()})
        if self.look is not None:
            self.looks.append(self.look(self))
        if len(self.seen) == 2:
            self.finished.set()
        if (work := self.work) is not None:
            self.work = None
            await work(self)

    def break_watches(self, times: int = 3, *, kind: type[KubernetesObject] = ConfigMap) -> None:
        """Break the watches of a kind, which are open again after some seconds."""
        self.server.fail_next(times, verb="watch", resource=kind.__resource__.plural)
        self.server.disconnect_watches(kind=kind)

    async def run_twice(self, work: Work, kind: type[KubernetesObject] = ConfigMap) -> float:
        """Call ``reconcile`` twice while the caches are behind, and return the time between the calls."""
        self.break_watches(kind=kind)
        await trio.sleep(0.01)
        self.work = work
        self.controller.add(WEB)
        await trio.sleep(0.05)
        self.controller.add(WEB)
        self.controller.add(OTHER)
        await trio.sleep(200)
        times = [time for request, time in self.began if request == WEB]
        assert len(times) == 2
        return times[1] - times[0]


@contextmanager
def broken_informers(server: APIServer, kind: type[KubernetesObject]) -> Iterator[None]:
    """Let all lists and watches of a kind fail while the block runs."""
    is_broken = True
    for verb in ("list", "watch"):
        resource = kind.__resource__.plural
        server.fail_next(10**9, verb=verb, resource=resource, status=lambda _: 500 if is_broken else None)
    server.disconnect_watches(kind=kind)
    try:
        yield
    finally:
        is_broken = False


@asynccontextmanager
async def controlled(
    server: APIServer,
    client: Client,
    *,
    configure: Callable[[SharedInformerFactory], object] = lambda factory: factory.informer(ConfigMap),
    factory_of: Callable[[Client], SharedInformerFactory] = SharedInformerFactory,
    **options: Any,
) -> AsyncIterator[Setup]:
    factory = factory_of(client)
    configure(factory)
    factory.informer(ConfigMap)
    setup: Setup
    controller = Controller("own", lambda request: setup.reconcile(request), **options)
    setup = Setup(server, client, factory, controller)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        yield setup
        nursery.cancel_scope.cancel()


async def create(setup: Setup) -> None:
    await setup.client.create(config_map("new"))
