"""A source of one's own: a list and a watch, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from tests.support.scripted_list_watch import added, listing, pod
from trioformer.cache import SharedInformer
from trioformer.cache.reflector._list_watch import ListWatch
from trioformer.client import ObjectList, WatchEvent
from trioformer.client._internal import UndecodableHandler
from trioformer.errors import ConnectionFailedError
from trioformer.models.core_v1 import Pod


class Events:
    """The events of one watch, which then breaks."""

    def __init__(self, batch: list[WatchEvent[Pod]]) -> None:
        self.batch = batch

    async def receive_batch(self) -> list[WatchEvent[Pod]]:
        if self.batch:
            await trio.sleep(1)
            batch, self.batch = self.batch, []
            return batch
        await trio.sleep(60)
        raise ConnectionFailedError("the file is gone; try again")


class TwoMethods(ListWatch[Pod]):
    """Lists one pod, and watches another come."""

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[Pod]:
        await trio.lowlevel.checkpoint()
        return listing(pod("a"), version=1)

    @asynccontextmanager
    async def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AsyncIterator[Events]:
        await trio.lowlevel.checkpoint()
        yield Events(added(pod("b", 2)) if resource_version == "1" else [])


async def test_a_source_needs_a_list_and_a_watch(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    informer = SharedInformer(TwoMethods())
    await nursery.start(informer.run)
    await trio.sleep(100)
    assert informer.has_synced
    assert sorted(obj.name for obj in informer.lister) == ["a", "b"]
    assert informer.lister.get("a", namespace="default") is not None
    assert "TwoMethods" in repr(informer)
    assert informer.statistics().reflector.watches == 2, "it watches again after a failure"


async def test_a_mapping_of_such_sources_has_a_name(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    informer = SharedInformer({"default": TwoMethods()})
    await nursery.start(informer.run)
    assert "TwoMethods in namespaces default" in repr(informer)
    many = SharedInformer({f"namespace-{number}": TwoMethods() for number in range(500)})
    assert "and 495 more" in repr(many)
    assert len(repr(many)) < 300
