"""ZooKeeper: the volume of a new cluster is deleted, because its predecessor of the same name was deleted.

After a restart the operator read an old state from its cache, in which a cluster had a deletion timestamp.  It deleted
all claims with the name of the cluster, but these belonged to a new cluster that a user had created since.

https://github.com/pravega/zookeeper-operator/issues/312
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import AlreadyExistsError, Client, NotFoundError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, apply_owned, drop_finalizer, ensure_finalizer
from trioformer.models import KubernetesObject, from_dict
from trioformer.models.apps_v1 import StatefulSet
from trioformer.models.core_v1 import PersistentVolumeClaim
from trioformer.testing.simulation import World, step

FINALIZER, LABEL, UID = "cleanUpZookeeperPVC", "app", "uid"


@crds.custom_resource("zookeeper.pravega.io/v1beta1")
class ZookeeperCluster(KubernetesObject):
    """A cluster with one server and its volume."""


def claim_of(cluster: ZookeeperCluster) -> PersistentVolumeClaim:
    labels = {LABEL: cluster.name, UID: cluster.uid}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": f"data-{cluster.name}-0", "namespace": cluster.namespace, "labels": labels}
    return from_dict(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


def servers_of(cluster: ZookeeperCluster) -> StatefulSet:
    labels = {LABEL: cluster.name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "zookeeper", "image": "zookeeper:3.6"}]},
    }
    spec = {"replicas": 1, "serviceName": cluster.name, "selector": {"matchLabels": labels}, "template": template}
    return from_dict(StatefulSet, {"metadata": {"name": cluster.name, "namespace": cluster.namespace}, "spec": spec})


@attrs.define(eq=False)
class Reconciler:
    """Runs the server, and deletes its volume at the end."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("zookeeper", self.reconcile)
        controller.watch(self.factory.informer(ZookeeperCluster))
        controller.owns(self.factory, StatefulSet, owner=ZookeeperCluster)
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        cluster = self.factory.informer(ZookeeperCluster).lister.get(request)
        if cluster is None:
            return
        if cluster.metadata.deletion_timestamp is not None:
            await self.delete_claims(cluster)
            await drop_finalizer(self.client, cluster, FINALIZER)
            return
        cluster = await ensure_finalizer(self.client, cluster, FINALIZER)
        if await self.client.api(StatefulSet).exists(servers_of(cluster)):
            return
        now = await self.client.api(ZookeeperCluster).get_or_none(cluster)
        if now is not None and now.uid == cluster.uid and now.metadata.deletion_timestamp is None:
            # the claim is created with the pod, as the StatefulSet controller does
            with suppress(AlreadyExistsError):
                await self.client.api(PersistentVolumeClaim).create(claim_of(cluster))
            await apply_owned(self.client, servers_of(cluster), owner=cluster, field_manager="zookeeper")

    async def delete_claims(self, cluster: ZookeeperCluster) -> None:
        claims = self.client.api(PersistentVolumeClaim, namespace=cluster.namespace)
        for claim in await claims.list(label_selector=self.labels_of(cluster)):
            with suppress(NotFoundError):
                await claims.delete(claim, uid=claim.uid)

    def labels_of(self, cluster: ZookeeperCluster) -> dict[str, str]:
        return {LABEL: cluster.name}


class FixedReconciler(Reconciler):
    """Only the claims of this cluster are deleted, not those of others with its name."""

    def labels_of(self, cluster: ZookeeperCluster) -> dict[str, str]:
        return {LABEL: cluster.name, UID: cluster.uid}


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Clusters:
    """A user deletes a cluster, and creates another one with its name."""

    kinds = (ZookeeperCluster,)

    @step
    def create(self, world: World) -> None:
        world.create(ZookeeperCluster(metadata=ObjectMeta(name="zk", namespace="default")))

    @step
    def delete(self, world: World) -> None:
        world.delete(ZookeeperCluster, "zk")
