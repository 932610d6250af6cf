"""RabbitMQ: a volume keeps its size, if the operator crashes while it resizes the volume.

To resize, the operator deleted the StatefulSet, changed the claim, and created the StatefulSet with the new size. It
compared only the StatefulSet with the spec. After a crash behind the deletion, the StatefulSet was created with the
new size, nothing differed any more, and the claim was never changed.

https://github.com/rabbitmq/cluster-operator/issues/782
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import AlreadyExistsError, Client, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, apply_owned, set_controller_reference
from trioformer.models import KubernetesObject, Model, from_dict
from trioformer.models.apps_v1 import StatefulSet
from trioformer.models.core_v1 import PersistentVolumeClaim
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class RabbitmqClusterSpec(Model):
    """The desired state."""

    storage: str = "1Gi"


@crds.custom_resource("rabbitmq.com/v1beta1")
class RabbitmqCluster(KubernetesObject):
    """A cluster with one server."""

    spec: RabbitmqClusterSpec = RabbitmqClusterSpec()


def claim_of(cluster: RabbitmqCluster) -> PersistentVolumeClaim:
    requests = {"resources": {"requests": {"storage": cluster.spec.storage}}}
    metadata = {"name": f"persistence-{cluster.name}-0", "namespace": cluster.namespace}
    return from_dict(
        PersistentVolumeClaim, {"metadata": metadata, "spec": {"accessModes": ["ReadWriteOnce"], **requests}}
    )


def servers_of(cluster: RabbitmqCluster) -> StatefulSet:
    labels = {"app": cluster.name}
    template = {
        "metadata": {"labels": labels, "annotations": {"storage": cluster.spec.storage}},
        "spec": {"containers": [{"name": "rabbitmq", "image": "rabbitmq:3.8"}]},
    }
    spec = {"replicas": 1, "serviceName": cluster.name, "selector": {"matchLabels": labels}, "template": template}
    return from_dict(StatefulSet, {"metadata": {"name": cluster.name, "namespace": cluster.namespace}, "spec": spec})


@attrs.define(eq=False)
class Reconciler:
    """Runs the server, and resizes its volume."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("rabbitmq", self.reconcile)
        controller.watch(self.factory.informer(RabbitmqCluster))
        controller.owns(self.factory, StatefulSet, owner=RabbitmqCluster)
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        cluster = await self.client.api(RabbitmqCluster).get_or_none(request)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            return
        with suppress(AlreadyExistsError):
            await self.client.api(PersistentVolumeClaim).create(set_controller_reference(claim_of(cluster), cluster))
        await self.resize(cluster)
        await apply_owned(self.client, servers_of(cluster), owner=cluster, field_manager="rabbitmq")

    async def resize(self, cluster: RabbitmqCluster) -> None:
        servers = await self.client.api(StatefulSet).get_or_none(servers_of(cluster))
        if servers is None:
            return
        if servers.spec.template.metadata.annotations.get("storage") != cluster.spec.storage:
            await self.client.api(StatefulSet).delete(servers, propagation_policy="Orphan")
            await self.resize_claim(cluster)

    async def resize_claim(self, cluster: RabbitmqCluster) -> None:
        claim = claim_of(cluster)
        await self.client.api(PersistentVolumeClaim).apply(claim, field_manager="rabbitmq", force=True)


class FixedReconciler(Reconciler):
    """The claim itself is compared, whether there is a StatefulSet or not."""

    async def resize(self, cluster: RabbitmqCluster) -> None:
        claim = await self.client.api(PersistentVolumeClaim).get(claim_of(cluster))
        if str(claim.spec.resources.requests["storage"]) != cluster.spec.storage:
            await self.resize_claim(cluster)
        await super().resize(cluster)


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Clusters:
    """A user lets the volume grow."""

    kinds = (RabbitmqCluster,)

    @step
    def create(self, world: World) -> None:
        world.create(RabbitmqCluster(metadata=ObjectMeta(name="queues", namespace="default")))

    @step
    def grow(self, world: World, gibibytes: int = drawn(2, 5)) -> None:
        if gibibytes > int(world.get(RabbitmqCluster, "queues").spec.storage.removesuffix("Gi")):
            world.patch(RabbitmqCluster, "queues", {"spec": {"storage": f"{gibibytes}Gi"}})
