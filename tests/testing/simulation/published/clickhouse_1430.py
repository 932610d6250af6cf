"""ClickHouse: each reconcile causes the next one, many times a second.

The operator put the resourceVersion of the object into its status.  Writing the status changes the resourceVersion, so
the status always differed, was written, and the event of this write led to the next reconcile.

https://github.com/Altinity/clickhouse-operator/pull/1430 and https://github.com/Altinity/clickhouse-operator/issues/1413
"""

from __future__ import annotations

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import Client, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, apply_owned
from trioformer.models import KubernetesObject, Model, from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class KeeperSpec(Model):
    """The desired state."""

    level: str = "information"


@crds.resource_part()
class KeeperStatus(Model):
    """The state of the last reconcile."""

    normalized: str = ""


@crds.custom_resource("clickhouse-keeper.altinity.com/v1")
class Keeper(KubernetesObject):
    """An installation with a configuration."""

    spec: KeeperSpec = KeeperSpec()
    status: KeeperStatus = KeeperStatus()


@attrs.define(eq=False)
class Reconciler:
    """Writes the configuration, and reports which state of the object it is for."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("keepers", self.reconcile)
        controller.watch(self.factory.informer(Keeper))
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        keeper = self.factory.informer(Keeper).lister.get(request)
        if keeper is None or keeper.metadata.deletion_timestamp is not None:
            return
        wanted = from_dict(ConfigMap, {"metadata": {"name": keeper.name}, "data": {"level": keeper.spec.level}})
        await apply_owned(self.client, wanted, owner=keeper, field_manager="keepers")
        status = KeeperStatus(normalized=self.normalize(keeper))
        await self.client.api(Keeper).update_status(keeper, keeper.evolve(status=status))

    def normalize(self, keeper: Keeper) -> str:
        return f"{keeper.name} at {keeper.resource_version}: {keeper.spec.level}"


class FixedReconciler(Reconciler):
    """The status contains nothing that changes when it is written."""

    def normalize(self, keeper: Keeper) -> str:
        return f"{keeper.name}: {keeper.spec.level}"


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Keepers:
    """An installation is created and changed."""

    kinds = (Keeper,)

    @step
    def create(self, world: World) -> None:
        world.create(Keeper(metadata=ObjectMeta(name="keeper", namespace="default")))

    @step
    def change(self, world: World, level: str = drawn("trace", "debug")) -> None:
        world.patch(Keeper, "keeper", {"spec": {"level": level}})
