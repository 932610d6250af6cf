"""Cass Operator: the StatefulSet stays when its datacenter is deleted, if its pods were changed before.

The operator set the owner reference when it created the StatefulSet.  To change it, the operator replaced it with a new
one, without the owner reference.

https://github.com/datastax/cass-operator/issues/120
"""

from __future__ import annotations

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import Client, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, set_controller_reference
from trioformer.models import KubernetesObject, Model, from_dict
from trioformer.models.apps_v1 import StatefulSet
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class CassandraDatacenterSpec(Model):
    """The desired state."""

    grace_period: int = 30


@crds.custom_resource("cassandra.datastax.com/v1beta1")
class CassandraDatacenter(KubernetesObject):
    """A datacenter with one node."""

    spec: CassandraDatacenterSpec = CassandraDatacenterSpec()


def nodes_of(datacenter: CassandraDatacenter) -> StatefulSet:
    labels, containers = {"app": datacenter.name}, [{"name": "cassandra", "image": "cassandra:3.11"}]
    pod = {"containers": containers, "terminationGracePeriodSeconds": datacenter.spec.grace_period}
    template = {"metadata": {"labels": labels}, "spec": pod}
    metadata = {"name": datacenter.name, "namespace": datacenter.namespace}
    selector = {"matchLabels": labels}
    spec = {"replicas": 1, "serviceName": datacenter.name, "selector": selector, "template": template}
    return from_dict(StatefulSet, {"metadata": metadata, "spec": spec})


@attrs.define(eq=False)
class Reconciler:
    """Creates and changes the StatefulSet."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("cassandra", self.reconcile)
        controller.watch(self.factory.informer(CassandraDatacenter))
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        datacenter = await self.client.api(CassandraDatacenter).get_or_none(request)
        if datacenter is None or datacenter.metadata.deletion_timestamp is not None:
            return
        wanted, sets = nodes_of(datacenter), self.client.api(StatefulSet)
        found = await sets.get_or_none(wanted)
        if found is None:
            await sets.create(set_controller_reference(wanted, datacenter))
            return
        if found.spec.template.spec.termination_grace_period_seconds != datacenter.spec.grace_period:
            metadata = wanted.metadata.evolve(resource_version=found.resource_version)
            await sets.replace(self.completed(wanted.evolve(metadata=metadata), datacenter))

    def completed(self, changed: StatefulSet, datacenter: CassandraDatacenter) -> StatefulSet:
        return changed


class FixedReconciler(Reconciler):
    """The new state has the owner reference, too."""

    def completed(self, changed: StatefulSet, datacenter: CassandraDatacenter) -> StatefulSet:
        return set_controller_reference(changed, datacenter)


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Datacenters:
    """A datacenter is created, changed and deleted."""

    kinds = (CassandraDatacenter,)

    @step
    def create(self, world: World) -> None:
        world.create(CassandraDatacenter(metadata=ObjectMeta(name="dc1", namespace="default")))

    @step
    def change(self, world: World, seconds: int = drawn(31, 40)) -> None:
        world.patch(CassandraDatacenter, "dc1", {"spec": {"gracePeriod": seconds}})

    @step
    def delete(self, world: World) -> None:
        world.delete(CassandraDatacenter, "dc1")
