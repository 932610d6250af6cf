"""Replicas that share the objects of a real kube-apiserver, which filters them if ``ShardedListAndWatch`` is on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import attrs
import pytest
import trio

from trioformer import Client, ClientOptions, SharedInformerFactory, open_client
from trioformer.cache import Added, Deleted, Notification, Released
from trioformer.client._internal import without_retries
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.sharding import Shares, open_shares
from trioformer.sharding import _ownership as ownership
from trioformer.sharding._open_shares import OpenShares
from trioformer.sharding._ranges import range_of, shard_selector
from trioformer.testing import ControlPlane

By = Literal["namespace", "uid"]
RANGES = 16
NAMESPACES = [f"team-{number}-prod" for number in range(50)]  # the hashes of names with equal ends are close together
CLIENTS = {"protobuf": ClientOptions(), "JSON": ClientOptions(protobuf=False)}


@attrs.define(eq=False)
class Replica:
    """A replica that caches ConfigMaps."""

    factory: SharedInformerFactory
    shares: OpenShares
    notifications: list[Notification[ConfigMap]] = attrs.field(factory=list)

    @property
    def keys(self) -> set[str]:
        """The keys of the cached objects, without those that kube-apiserver makes itself."""
        lister = self.factory.informer(ConfigMap).lister
        return {f"{each.namespace}/{each.name}" for each in lister if each.namespace in NAMESPACES}

    def noticed(self, kind: type[Notification[ConfigMap]]) -> list[str]:
        """The keys of the objects with this notification, in order."""
        objects = [each.object for each in self.notifications if type(each) is kind]
        return sorted(f"{each.namespace}/{each.name}" for each in objects if each.namespace in NAMESPACES)

    async def record(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.factory.informer(ConfigMap).subscribe() as subscription:
            task_status.started()
            async for each in subscription:
                self.notifications.append(each)


@asynccontextmanager
async def replica(kubeconfig: Path, shares: Shares, encoding: str) -> AsyncGenerator[Replica, None]:
    async with open_client(kubeconfig=kubeconfig, options=CLIENTS[encoding]) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        async with open_shares(client, shares, factory) as opened:
            own = Replica(factory, opened)
            factory.informer(ConfigMap)
            await nursery.start(factory.run)
            await nursery.start(own.record)
            yield own
        nursery.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # the state of shares has no event
        await trio.sleep(0.05)


async def create_objects(client: Client) -> set[str]:
    """Create 500 ConfigMaps in 50 namespaces, and return their keys."""

    async def fill(namespace: str) -> None:
        await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
        api = client.api(ConfigMap, namespace)
        for number in range(10):
            created = await api.create(ConfigMap(metadata=ObjectMeta(name=f"c-{number}")))
            keys.add(f"{namespace}/{created.name}")

    keys = set[str]()
    async with trio.open_nursery() as nursery:
        for namespace in NAMESPACES:
            nursery.start_soon(fill, namespace)
    return keys


async def check_server_ranges(client: Client, by: By, *, is_enabled: bool) -> None:
    """Compare what the server sends for each range with the library's hash."""
    api = client.api(ConfigMap)
    everything = {each.uid for each in (await api.list()).items}
    found = set[str]()
    for number in range(RANGES):
        selector = shard_selector(f"metadata.{by}", [number], RANGES)
        listed = await without_retries(api, {"shardSelector": selector}).list()
        assert listed.shard_selector == (selector if is_enabled else "")
        if is_enabled:
            assert {range_of(getattr(each.metadata, by), RANGES) for each in listed.items} <= {number}
            assert not found & {each.uid for each in listed.items}
        found |= {each.uid for each in listed.items}
    assert found == everything
    several = [0, 1, RANGES - 2]
    listed = await without_retries(api, {"shardSelector": shard_selector(f"metadata.{by}", several, RANGES)}).list()
    numbers = {range_of(getattr(each.metadata, by), RANGES) for each in listed.items}
    assert numbers <= set(several if is_enabled else range(RANGES))


async def follow_a_move(client: Client, kubeconfig: Path, keys: set[str], by: By, *, is_enabled: bool) -> None:
    """Let a second replica join and leave; the first has another encoding."""
    shares = Shares(f"by-{by}", RANGES, by)
    async with replica(kubeconfig, shares, "JSON") as first:
        await until(lambda: first.keys == keys)
        async with replica(kubeconfig, shares, "protobuf") as second:
            await until(lambda: [*second.shares.state.own.values()] == ["ready"] * (RANGES // 2))
            await until(lambda: len(first.shares.state.own) == RANGES // 2)
            assert first.keys | second.keys == keys
            assert not first.keys & second.keys
            for each in (first, second):
                owned = {range_of(getattr(obj.metadata, by), RANGES) for obj in each.factory.informer(ConfigMap).lister}
                assert owned <= set(each.shares.state.own)
                assert each.shares.state.filtered_by_server == {"configmaps": is_enabled}
            moved = sorted(second.keys)
            assert first.noticed(Released) == moved
            namespace, name = moved[0].split("/")
            await client.api(ConfigMap, namespace).delete(name)
            keys.remove(moved[0])
            await until(lambda: moved[0] not in second.keys)
        await until(lambda: first.keys == keys)
        assert first.noticed(Deleted) == []
        assert second.noticed(Deleted) == moved[:1]
        assert second.noticed(Added) == moved
        assert second.noticed(Released) == moved[1:]


@pytest.mark.parametrize("is_enabled", [True, False], ids=["filtered-by-server", "filtered-here"])
async def test_two_replicas_divide_the_objects(assets: Path, monkeypatch: pytest.MonkeyPatch, is_enabled: bool) -> None:
    monkeypatch.setattr(ownership, "QUIET_PERIOD", 1.0)
    flags = ["--feature-gates=ShardedListAndWatch=true"] if is_enabled else []
    with trio.fail_after(120):
        async with ControlPlane(assets=assets, api_server_flags=flags) as control_plane:
            kubeconfig = control_plane.kubeconfig
            async with open_client(kubeconfig=kubeconfig) as client:
                keys = await create_objects(client)
                for options in CLIENTS.values():
                    async with open_client(kubeconfig=kubeconfig, options=options) as other:
                        for by in ("namespace", "uid"):
                            await check_server_ranges(other, by, is_enabled=is_enabled)
                for by in ("namespace", "uid"):
                    await follow_a_move(client, kubeconfig, keys, by, is_enabled=is_enabled)
