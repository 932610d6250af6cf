"""The doors for asyncio and for threads, on a real kube-apiserver: their caches become what a fresh list is."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest
import uvloop

from tests.e2e.workloads import versions
from trioformer import aio, sync
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.testing import ControlPlane

NAMES = [f"map-{number}" for number in range(20)]
numbers = itertools.count()


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"x": "1"})


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_cache_in_asyncio_follows_the_server(
    control_plane: ControlPlane, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    namespace = f"doors-asyncio-{next(numbers)}"

    async def main() -> None:
        async with aio.open_client(kubeconfig=control_plane.kubeconfig) as client:
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
            maps = client.api(ConfigMap, namespace=namespace)
            async with aio.open_cache(ConfigMap, client=client, namespace=namespace) as cache:
                await cache.wait_until_synced()
                await asyncio.gather(*(maps.create(config_map(name)) for name in NAMES))
                await asyncio.gather(*(maps.patch(name, {"data": {"x": "2"}}) for name in NAMES))
                await asyncio.gather(*(maps.delete(name) for name in NAMES[:10]))
                async for _ in cache.subscribe():
                    if versions(cache) == versions(await maps.list()):
                        break
                assert {f"{namespace}/{name}" for name in NAMES[10:]} <= set(versions(cache))

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(main(), 60))


def test_a_cache_in_a_thread_follows_the_server(control_plane: ControlPlane) -> None:
    namespace = f"doors-threads-{next(numbers)}"
    with sync.open_client(kubeconfig=control_plane.kubeconfig) as client:
        client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
        maps = client.api(ConfigMap, namespace=namespace)
        with sync.open_cache(ConfigMap, client=client, namespace=namespace) as cache:
            cache.wait_until_synced()
            for name in NAMES:
                maps.create(config_map(name))
                maps.patch(name, {"data": {"x": "2"}})
            for name in NAMES[:10]:
                maps.delete(name)
            for _ in cache.subscribe():
                if versions(cache) == versions(maps.list()):
                    break
            assert {f"{namespace}/{name}" for name in NAMES[10:]} <= set(versions(cache))
