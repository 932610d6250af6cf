"""CassKop: after a crash while a node is removed, its volume stays, and no other change is possible.

To remove a node, the operator scaled the StatefulSet down, and then recorded that it was about to finish.  After a
crash between the two, it looked for the pod of a node that was still being removed.  It did not find the pod, and
failed for ever.  Now it records its intention first.

https://github.com/Orange-OpenSource/casskop/issues/370
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import AlreadyExistsError, Client, NotFoundError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, RetryAfter, apply_owned, set_controller_reference
from trioformer.models import KubernetesObject, Model, from_dict
from trioformer.models.apps_v1 import StatefulSet
from trioformer.models.core_v1 import PersistentVolumeClaim, Pod
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class CassandraClusterSpec(Model):
    """The desired state."""

    nodes: int = 2


@crds.resource_part()
class CassandraClusterStatus(Model):
    """The observed state."""

    nodes: int = 0
    operation: str = ""
    """``Ongoing`` while the last node hands over its data, and ``Finalizing`` while it is removed."""


@crds.custom_resource("db.orange.com/v2")
class CassandraCluster(KubernetesObject):
    """A cluster of nodes, which are removed one after the other."""

    spec: CassandraClusterSpec = CassandraClusterSpec()
    status: CassandraClusterStatus = CassandraClusterStatus()


def claim_of(cluster: CassandraCluster, number: int) -> PersistentVolumeClaim:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": f"data-{cluster.name}-{number}", "namespace": cluster.namespace}
    return from_dict(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


def nodes_of(cluster: CassandraCluster, number: int) -> StatefulSet:
    labels = {"app": cluster.name}
    containers = [{"name": "cassandra", "image": "cassandra:4"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": number, "serviceName": cluster.name, "selector": {"matchLabels": labels}, "template": template}
    spec |= {"podManagementPolicy": "Parallel"}
    return from_dict(StatefulSet, {"metadata": {"name": cluster.name, "namespace": cluster.namespace}, "spec": spec})


@attrs.define(eq=False)
class Reconciler:
    """Adds nodes at once, and removes them in steps."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("casskop", self.reconcile)
        controller.watch(self.factory.informer(CassandraCluster))
        controller.owns(self.factory, StatefulSet, owner=CassandraCluster)
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        cluster = await self.client.api(CassandraCluster).get_or_none(request)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            return
        nodes, wanted = cluster.status.nodes, cluster.spec.nodes
        match cluster.status.operation:
            case "Ongoing":
                await self.client.api(Pod).get(f"{cluster.name}-{nodes - 1}", namespace=cluster.namespace)
                await self.remove_node(cluster)
            case "Finalizing":
                await self.finish(cluster)
            case _ if wanted < nodes:
                await self.save(cluster, CassandraClusterStatus(nodes=nodes, operation="Ongoing"))
            case _:
                for number in range(wanted):
                    with suppress(AlreadyExistsError):
                        claim = set_controller_reference(claim_of(cluster, number), cluster)
                        await self.client.api(PersistentVolumeClaim).create(claim)
                await self.scale(cluster, wanted)
                await self.save(cluster, CassandraClusterStatus(nodes=wanted))

    async def remove_node(self, cluster: CassandraCluster) -> None:
        await self.scale(cluster, cluster.status.nodes - 1)
        await self.save(cluster, cluster.status.evolve(operation="Finalizing"))

    async def finish(self, cluster: CassandraCluster) -> None:
        last = cluster.status.nodes - 1
        if await self.client.api(Pod).exists(f"{cluster.name}-{last}", namespace=cluster.namespace):
            raise RetryAfter(5, "the node is still running")
        with suppress(NotFoundError):
            await self.client.api(PersistentVolumeClaim).delete(claim_of(cluster, last))
        await self.save(cluster, CassandraClusterStatus(nodes=last))

    async def scale(self, cluster: CassandraCluster, number: int) -> None:
        await apply_owned(self.client, nodes_of(cluster, number), owner=cluster, field_manager="casskop")

    async def save(self, cluster: CassandraCluster, status: CassandraClusterStatus) -> None:
        changed = cluster.evolve(status=status)
        await self.client.api(CassandraCluster).update_status(cluster, changed, optimistic_lock=True)


class FixedReconciler(Reconciler):
    """The status tells what is done next, and this can be repeated."""

    async def remove_node(self, cluster: CassandraCluster) -> None:
        await self.save(cluster, cluster.status.evolve(operation="Finalizing"))

    async def finish(self, cluster: CassandraCluster) -> None:
        await self.scale(cluster, cluster.status.nodes - 1)
        await super().finish(cluster)


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Clusters:
    """A user adds and removes nodes."""

    kinds = (CassandraCluster,)

    @step
    def create(self, world: World) -> None:
        world.create(CassandraCluster(metadata=ObjectMeta(name="ring", namespace="default")))

    @step
    def scale(self, world: World, nodes: int = drawn(1, 3)) -> None:
        world.patch(CassandraCluster, "ring", {"spec": {"nodes": nodes}})
