"""MinIO: two operators work at the same time, because the first one goes on after it has lost the lease.

The controller was started when the process became the leader.  It had no connection with the election afterwards, so
it went on when the lease was lost, for example while the API server was not reachable for a while.

https://github.com/minio/operator/pull/2309
"""

from __future__ import annotations

import attrs
import trio

from trioformer import Client, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, apply_owned
from trioformer.leaderelection import Leadership, run_as_leader
from trioformer.models import KubernetesObject, Model, from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class TenantSpec(Model):
    """The desired state."""

    servers: int = 4


@crds.custom_resource("minio.min.io/v2")
class Tenant(KubernetesObject):
    """A tenant with a configuration."""

    spec: TenantSpec = TenantSpec()


@attrs.define(eq=False)
class Operator:
    """Writes the configuration of each tenant, in one of several replicas."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        self.factory.informer(Tenant)
        async with trio.open_nursery() as nursery:
            await nursery.start(self.factory.run)
            await self.elect(nursery)

    async def elect(self, nursery: trio.Nursery) -> None:
        started = trio.Event()

        async def lead(_leadership: Leadership) -> None:
            if not started.is_set():
                started.set()
                nursery.start_soon(self.work)
            await trio.sleep_forever()

        await run_as_leader(self.client, lead, name="minio", namespace="default", again_after_loss=True)

    async def work(self) -> None:
        controller = Controller("tenants", self.reconcile)
        controller.watch(self.factory.informer(Tenant))
        await controller.run()

    async def reconcile(self, request: Request) -> None:
        tenant = self.factory.informer(Tenant).lister.get(request)
        if tenant is None or tenant.metadata.deletion_timestamp is not None:
            return
        data = {"servers": str(tenant.spec.servers)}
        wanted = from_dict(ConfigMap, {"metadata": {"name": tenant.name}, "data": data})
        await apply_owned(self.client, wanted, owner=tenant, field_manager="minio")


class FixedOperator(Operator):
    """The controller runs in the scope of the leadership."""

    async def elect(self, nursery: trio.Nursery) -> None:
        async def lead(_leadership: Leadership) -> None:
            await self.work()

        await run_as_leader(self.client, lead, name="minio", namespace="default", again_after_loss=True)


async def operator(client: Client) -> None:
    await Operator(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedOperator(client, SharedInformerFactory(client)).run()


class Tenants:
    """A tenant grows.  Simulate it with two replicas."""

    kinds = (Tenant,)

    @step
    def create(self, world: World) -> None:
        world.create(Tenant(metadata=ObjectMeta(name="media", namespace="default")))

    @step
    def grow(self, world: World, servers: int = drawn(4, 9)) -> None:
        world.patch(Tenant, "media", {"spec": {"servers": servers}})
