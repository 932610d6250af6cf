"""Replicas that share the objects of the embedded server, each with a controller that records its calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from trioformer import SharedInformerFactory
from trioformer.cache import Notification
from trioformer.client import Client
from trioformer.controller import Controller, Request
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.sharding import Shares, open_shares
from trioformer.sharding._open_shares import OpenShares
from trioformer.testing import APIServer

NAMESPACES = [f"team-{number}-prod" for number in range(40)]
KEYS = {f"{name}/web" for name in NAMESPACES}


@attrs.define(eq=False)
class Replica:
    """One replica with a controller of ConfigMaps."""

    client: Client
    factory: SharedInformerFactory
    shares: OpenShares
    controller: Controller[Request] = attrs.field(init=False)
    work: Callable[[Request], Awaitable[object]] | None = None
    """What a call does after it has read its object."""
    calls: list[Request] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)
    notifications: list[Notification[ConfigMap]] = attrs.field(factory=list)

    async def reconcile(self, request: Request) -> None:
        self.calls.append(request)
        self.times.append(trio.current_time())
        assert self.factory.informer(ConfigMap).lister.get(request) is not None
        if self.work is not None:
            await self.work(request)

    @property
    def keys(self) -> set[str]:
        return {f"{each.namespace}/{each.name}" for each in self.factory.informer(ConfigMap).lister}

    async def record(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.factory.informer(ConfigMap).subscribe() as subscription:
            task_status.started()
            async for each in subscription:
                self.notifications.append(each)


@asynccontextmanager
async def replica(
    server: APIServer, shares: Shares, *, grace: float = 30.0, **options: Any
) -> AsyncGenerator[Replica, None]:
    """A replica during a block, with options of its controller."""
    async with server.open_client() as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        async with open_shares(client, shares, factory, grace=grace) as opened:
            own = Replica(client, factory, opened)
            own.controller = controller = Controller("tests", own.reconcile, **options)
            controller.watch(factory.informer(ConfigMap))
            await nursery.start(factory.run)
            await nursery.start(own.record)
            await nursery.start(controller.run)
            yield own
        nursery.cancel_scope.cancel()


def create_objects(server: APIServer) -> None:
    for name in NAMESPACES:
        server.create(Namespace(metadata=ObjectMeta(name=name)))
        server.create(ConfigMap(metadata=ObjectMeta(name="web", namespace=name)))
