"""Kubermatic: a finalizer gets lost, because several controllers send the whole list in a merge patch.

Each controller added its own finalizer to the list that it had read, and sent the list without the resourceVersion.
The finalizer that another controller had added in the meantime was gone, and its resources were never cleaned up.

https://github.com/kubermatic/kubermatic/issues/6759
"""

from __future__ import annotations

from contextlib import suppress

import attrs
import trio

from trioformer import Client, NotFoundError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, drop_finalizer, ensure_finalizer
from trioformer.models import KubernetesObject, from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation import World, step

RESOURCES = ("network", "ssh-keys")
"""What a cluster has in the cloud.  Each is the work of one controller."""


@crds.custom_resource("kubermatic.k8c.io/v1")
class Cluster(KubernetesObject):
    """A user cluster."""


@attrs.define(eq=False)
class Operator:
    """Creates resources of each cluster, and deletes them with it."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            controllers = [self.controller(each) for each in RESOURCES]
            await nursery.start(self.factory.run)
            for controller in controllers:
                nursery.start_soon(controller.run)

    def controller(self, resource: str) -> Controller:
        async def reconcile(request: Request) -> None:
            cluster = self.factory.informer(Cluster).lister.get(request)
            if cluster is not None:
                await self.reconcile(cluster, resource)

        controller = Controller(resource, reconcile)
        controller.watch(self.factory.informer(Cluster))
        return controller

    async def reconcile(self, cluster: Cluster, resource: str) -> None:
        finalizer, metadata = f"kubermatic.k8c.io/cleanup-{resource}", {"name": f"{cluster.name}-{resource}"}
        stand_in = from_dict(ConfigMap, {"metadata": {**metadata, "namespace": "default"}, "data": {"state": "ready"}})
        resources = self.client.api(ConfigMap)
        if cluster.metadata.deletion_timestamp is None:
            if not await resources.exists(stand_in):
                await self.add_finalizer(cluster, finalizer)
                await resources.apply(stand_in, field_manager=resource, force=True)
        elif finalizer in cluster.metadata.finalizers:
            with suppress(NotFoundError):
                await resources.delete(stand_in)
            await drop_finalizer(self.client, cluster, finalizer)

    async def add_finalizer(self, cluster: Cluster, finalizer: str) -> None:
        finalizers = [*cluster.metadata.finalizers, finalizer]
        await self.client.api(Cluster).patch(cluster, {"metadata": {"finalizers": finalizers}})


class FixedOperator(Operator):
    """The patch contains the resourceVersion, and is repeated after a conflict."""

    async def add_finalizer(self, cluster: Cluster, finalizer: str) -> None:
        await ensure_finalizer(self.client, cluster, finalizer)


async def operator(client: Client) -> None:
    await Operator(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedOperator(client, SharedInformerFactory(client)).run()


class Clusters:
    """A cluster is created and deleted."""

    kinds = (Cluster,)

    @step
    def create(self, world: World) -> None:
        world.create(Cluster(metadata=ObjectMeta(name="lab", namespace="default")))

    @step
    def delete(self, world: World) -> None:
        world.delete(Cluster, "lab")
