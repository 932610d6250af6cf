"""Further query parameters of an informer, against the sharded lists and watches of a real kube-apiserver."""

from __future__ import annotations

import itertools
from pathlib import Path

import trio

from trioformer import SharedInformerFactory, open_client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import ControlPlane

FLAGS = ["--feature-gates=ShardedListAndWatch=true"]
LIMITS = ("0x0000000000000000", "0x8000000000000000", "0x10000000000000000")


async def test_two_informers_divide_the_objects(assets: Path) -> None:
    queries = [
        {"shardSelector": f"shardRange(object.metadata.uid, '{begin}', '{end}')"}
        for begin, end in itertools.pairwise(LIMITS)
    ]
    async with (
        ControlPlane(assets=assets, api_server_flags=FLAGS) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
        trio.open_nursery() as nursery,
    ):
        api = client.api(ConfigMap, "default")

        async def create(names: range) -> set[str]:
            return {(await api.create(ConfigMap(metadata=ObjectMeta(name=f"c-{n}")))).name for n in names}

        listed = await create(range(40))
        factory = SharedInformerFactory(client, namespace="default")
        halves = [factory.informer(ConfigMap, query=query) for query in queries]
        whole = factory.informer(ConfigMap)
        with trio.fail_after(30):
            await nursery.start(factory.run)
        watched = await create(range(40, 80))
        newest = await api.create(ConfigMap(metadata=ObjectMeta(name="newest")))
        with trio.fail_after(150):  # one half has to wait for a bookmark
            for one in (*halves, whole):
                await one.wait_until_at_least(newest)
        found = [{each.name for each in half.lister} for half in halves]
        assert found[0] | found[1] == {each.name for each in whole.lister} > listed | watched
        assert not found[0] & found[1]
        for half in found:
            assert half & listed
            assert half & watched
        nursery.cancel_scope.cancel()
