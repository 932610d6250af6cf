"""Replicas that share the objects of a controller: each object has one, and moves between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from trioformer import SharedInformerFactory
from trioformer.cache import Deleted, Notification, Released
from trioformer.controller import Controller, Request
from trioformer.errors import NotOwnedError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.sharding import Shares, open_shares
from trioformer.sharding._shares import OpenShares
from trioformer.testing import APIServer

NAMESPACES = [f"team-{number}-prod" for number in range(40)]


@attrs.define(eq=False)
class Replica:
    """One replica with a controller that records its calls."""

    factory: SharedInformerFactory
    shares: OpenShares
    calls: list[Request] = attrs.field(factory=list)
    running: Counter[Request] = attrs.field(factory=Counter)
    notifications: list[Notification[ConfigMap]] = attrs.field(factory=list)
    pause: float = 0.0

    async def reconcile(self, request: Request) -> None:
        lister = self.factory.informer(ConfigMap).lister
        assert lister.get(request) is not None
        self.calls.append(request)
        await trio.sleep(self.pause)

    @property
    def keys(self) -> set[str]:
        return {f"{each.namespace}/{each.name}" for each in self.factory.informer(ConfigMap).lister}

    async def record(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.factory.informer(ConfigMap).subscribe() as subscription:
            task_status.started()
            async for each in subscription:
                self.notifications.append(each)


@asynccontextmanager
async def replica(server: APIServer, shares: Shares) -> AsyncGenerator[Replica, None]:
    async with server.open_client() as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        async with open_shares(client, shares, factory) as opened:
            own = Replica(factory, opened)
            controller = Controller("tests", own.reconcile)
            controller.watch(factory.informer(ConfigMap))
            await nursery.start(factory.run)
            await nursery.start(own.record)
            await nursery.start(controller.run)
            yield own
        nursery.cancel_scope.cancel()


@pytest.fixture
async def server(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> APIServer:
    server = APIServer()
    await nursery.start(server.run)
    for name in NAMESPACES:
        server.create(Namespace(metadata=ObjectMeta(name=name)))
        server.create(ConfigMap(metadata=ObjectMeta(name="web", namespace=name)))
    return server


KEYS = {f"{name}/web" for name in NAMESPACES}


@pytest.mark.parametrize("by", ["namespace", "uid"])
async def test_two_replicas_divide_the_objects(
    server: APIServer, autojump_clock: trio.testing.MockClock, by: str
) -> None:
    shares = Shares("tests", by=by)  # type: ignore[arg-type]
    async with replica(server, shares) as first:
        await trio.sleep(1)
        assert first.keys == KEYS
        assert {str(each) for each in first.calls} == KEYS
        assert set(first.shares.state.own.values()) == {"ready"}
        async with replica(server, shares) as second:
            await trio.sleep(60)
            assert first.keys | second.keys == KEYS
            assert not first.keys & second.keys
            assert len(second.keys) >= 5
            assert {str(each) for each in second.calls} == second.keys
            assert not [each for each in first.notifications if isinstance(each, Deleted)]
            assert len([each for each in first.notifications if isinstance(each, Released)]) == len(second.keys)
            key = min(second.keys)
            with pytest.raises(NotOwnedError):
                first.factory.informer(ConfigMap).lister.get(key)
            before = len(first.calls)
            second.calls.clear()
            for name in NAMESPACES:
                server.patch(ConfigMap, "web", {"data": {"a": "b"}}, namespace=name)
            await trio.sleep(1)
            assert len(first.calls) - before + len(second.calls) == len(KEYS)
            assert {str(each) for each in second.calls} == second.keys
        await trio.sleep(1)
        assert first.keys == KEYS
