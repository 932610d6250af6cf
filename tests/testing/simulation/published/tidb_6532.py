"""TiDB: a store is left behind, because the cache did not contain it yet when its instance was deleted.

The operator removed its finalizer if it found nothing left to delete.  But it looked into caches, and what was created
a moment ago may be missing there.

https://github.com/pingcap/tidb-operator/issues/6532
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import Client, NotFoundError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, drop_finalizer, ensure_finalizer
from trioformer.models import KubernetesObject, from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation import World, step

FINALIZER = "pingcap.com/store"


@crds.custom_resource("core.pingcap.com/v1alpha1")
class TiKV(KubernetesObject):
    """An instance of the storage engine."""


def store_of(instance: TiKV) -> ConfigMap:
    """Return a ConfigMap that stands for the store, which the placement driver keeps and no owner reference reaches."""
    metadata = {
        "name": f"store-{instance.name}",
        "namespace": instance.namespace,
        "labels": {"instance": instance.name},
    }
    return from_dict(ConfigMap, {"metadata": metadata, "data": {"state": "up"}})


@attrs.define(eq=False)
class Reconciler:
    """Registers stores, and deletes them before their instances."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("tikv", self.reconcile)
        controller.watch(self.factory.informer(TiKV))
        controller.watch(self.factory.informer(ConfigMap), enqueue=self.requests_of)
        await run_controller(self.factory, controller)

    def requests_of(self, store: ConfigMap) -> list[Request]:
        name = store.metadata.labels.get("instance")
        return [Request(store.namespace, name)] if name else []

    async def reconcile(self, request: Request) -> None:
        instance = await self.client.api(TiKV).get_or_none(request)
        if instance is None:
            return
        store = store_of(instance)
        if instance.metadata.deletion_timestamp is None:
            instance = await ensure_finalizer(self.client, instance, FINALIZER)
            await self.client.api(ConfigMap).apply(store, field_manager="tikv", force=True)
        elif await self.is_left(store):
            with suppress(NotFoundError):
                await self.client.api(ConfigMap).delete(store)
        else:
            await drop_finalizer(self.client, instance, FINALIZER)

    async def is_left(self, store: ConfigMap) -> bool:
        return self.factory.informer(ConfigMap).lister.get(store) is not None


class FixedReconciler(Reconciler):
    """The server knows what is left."""

    async def is_left(self, store: ConfigMap) -> bool:
        return await self.client.api(ConfigMap).exists(store)


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Instances:
    """An instance is created and deleted."""

    kinds = (TiKV,)

    @step
    def create(self, world: World) -> None:
        world.create(TiKV(metadata=ObjectMeta(name="tikv-0", namespace="default")))

    @step
    def delete(self, world: World) -> None:
        world.delete(TiKV, "tikv-0")
