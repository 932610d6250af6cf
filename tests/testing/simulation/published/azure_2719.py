"""Azure Service Operator: a conflict was ignored, and no event followed that could have helped.

A conflict means that the object has changed, so the controller expected an event and dropped the error. But it watched
only some changes, and another client's change of an unwatched annotation made no event, so the work was not continued.

https://github.com/Azure/azure-service-operator/pull/2719
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import Client, ConflictError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, generation_changed
from trioformer.models import KubernetesObject, Model
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class RedisSpec(Model):
    """The desired state."""

    capacity: int = 1


@crds.resource_part()
class RedisStatus(Model):
    """The state in the cloud."""

    capacity: int = 0


@crds.custom_resource("cache.azure.com/v1")
class Redis(KubernetesObject):
    """A cache in the cloud."""

    spec: RedisSpec = RedisSpec()
    status: RedisStatus = RedisStatus()


@attrs.define(eq=False)
class Reconciler:
    """Reports the capacity."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("redis", self.reconcile)
        controller.watch(self.factory.informer(Redis), predicates=[generation_changed])
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        redis = self.factory.informer(Redis).lister.get(request)
        if redis is not None and redis.metadata.deletion_timestamp is None:
            await self.report(redis)

    async def report(self, redis: Redis) -> None:
        with suppress(ConflictError):  # an event follows
            await self.save(redis)

    async def save(self, redis: Redis) -> None:
        status = RedisStatus(capacity=redis.spec.capacity)
        await self.client.api(Redis).update_status(redis, redis.evolve(status=status), optimistic_lock=True)


class FixedReconciler(Reconciler):
    """The error is raised, so the request is reconciled again."""

    async def report(self, redis: Redis) -> None:
        await self.save(redis)


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Caches:
    """A user changes the capacity, and another program an annotation."""

    kinds = (Redis,)

    @step
    def create(self, world: World) -> None:
        world.create(Redis(metadata=ObjectMeta(name="sessions", namespace="default")))

    @step
    def resize(self, world: World, capacity: int = drawn(1, 6)) -> None:
        world.patch(Redis, "sessions", {"spec": {"capacity": capacity}})

    @step
    def annotate(self, world: World, value: str = drawn("a", "b")) -> None:
        world.patch(Redis, "sessions", {"metadata": {"annotations": {"example.com/team": value}}})
