"""The types of clients, informers, listers and notifications; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, assert_never, assert_type

import trio

from trioformer import (
    Added,
    Api,
    Client,
    Deleted,
    HandlerRegistration,
    Lister,
    ObjectList,
    ResourceEventHandler,
    SharedInformer,
    SharedInformerFactory,
    Updated,
    annotation_index,
    field_index,
    label_index,
    open_client,
)
from trioformer.cache import Released
from trioformer.cache._bad_objects import Quarantined, QuarantineReason
from trioformer.cache.factory._requests import InformerKey
from trioformer.models import KubernetesObject, PartialObjectMetadata, metadata_kind
from trioformer.models.core_v1 import ConfigMap, Pod

K = TypeVar("K", bound=KubernetesObject)


async def client_calls() -> None:
    async with open_client() as client:
        assert_type(client, Client)
        pods = client.api(Pod, namespace="default")
        assert_type(pods, Api[Pod])
        assert_type(await pods.get("a"), Pod)
        listing = await pods.list(label_selector={"app": "web"})
        assert_type(listing, ObjectList[Pod])
        assert_type(listing[0], Pod)
        assert_type(listing[:2], tuple[Pod, ...])
        assert_type(list(await pods.list()), list[Pod])
        assert_type(await pods.patch("a", {"metadata": {"labels": {"a": None}}}), Pod)
        assert_type(await pods.delete("a"), Pod | None)
        async with pods.watch() as events:
            async for event in events:
                assert_type(event.object, Pod)
        await pods.create(ConfigMap())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # another kind


class Handler(ResourceEventHandler[Pod]):
    async def on_update(self, old: Pod, new: Pod) -> None:
        assert_type(new.spec.node_name, str | None)


def smaller(obj: K) -> K:
    return obj


def in_default(obj: PartialObjectMetadata) -> list[str]:
    return [obj.name]


async def factories(client: Client) -> None:
    factory = SharedInformerFactory(
        client,
        namespace=["a", "b"],
        label_selector={"app": "web"},
        query={"shardSelector": "…"},
        transform=smaller,
        resync_period={Pod: 60, None: 600.0},
    )
    assert_type(factory.informer(Pod, query={"pretty": "true"}), SharedInformer[Pod])
    assert_type(factory.informer(Pod, indexers={"app": label_index("app")}), SharedInformer[Pod])
    assert_type(factory.informer(Pod, indexers={"owner": annotation_index("owner")}), SharedInformer[Pod])
    assert_type(factory.informer(Pod, namespace=None, transform=None), SharedInformer[Pod])
    assert_type(
        factory.informer(Pod, transform=smaller, indexers={"name": lambda pod: [pod.name]}), SharedInformer[Pod]
    )
    metadata = factory.informer(metadata_kind(Pod), indexers={"name": in_default})
    assert_type(metadata, SharedInformer[PartialObjectMetadata])
    async with factory.open_informer(Pod, namespace="a") as informer:
        assert_type(informer, SharedInformer[Pod])
        registration = informer.add_event_handler(Handler())
    async with factory.open_informer(metadata_kind(Pod)) as nothing_else:
        assert_type(nothing_else, SharedInformer[PartialObjectMetadata])
        other = nothing_else.add_event_handler(ResourceEventHandler())
    await factory.wait_for_cache_sync(registration, other, deadline=trio.current_time() + 30)
    for key, error in factory.failures.items():
        assert_type(key, InformerKey)
        assert_type(error, Exception)
    assert_type(factory.problems()[InformerKey(Pod)], str)


async def informers(client: Client, nursery: trio.Nursery) -> None:
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod, indexers={"node": field_index("spec.node_name"), "name": lambda pod: [pod.name]})
    assert_type(informer, SharedInformer[Pod])
    assert_type(informer.add_event_handler(Handler()), HandlerRegistration[Pod])
    assert_type(informer.lister, Lister[Pod])
    assert_type(informer.lister.get("a", namespace="b"), Pod | None)
    assert_type(informer.lister.get("a", namespace="b", allow_stale=True), Pod | None)
    assert_type(informer.lister.quarantined(), Mapping[str, Quarantined])
    assert_type(informer.statistics().quarantined, Mapping[QuarantineReason, int])
    assert_type(informer.lister["b/a"], Pod)
    assert_type(informer.lister.by_index("node", "n"), tuple[Pod, ...])
    await nursery.start(factory.run)
    with informer.subscribe() as notifications:
        async for notification in notifications:
            match notification:
                case Added(object=pod):
                    assert_type(pod, Pod)
                case Updated(old=old, new=new):
                    assert_type((old, new), tuple[Pod, Pod])
                case Deleted(object=pod, is_stale=stale):
                    assert_type((pod, stale), tuple[Pod, bool])
                case Released(object=pod):
                    assert_type(pod, Pod)
                case other:
                    assert_never(other)
