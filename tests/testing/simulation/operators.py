"""A small operator with mistakes that can be switched on, and its scenario."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import trio

from trioformer import AlreadyExistsError, Client, NotFoundError, SharedInformer, SharedInformerFactory
from trioformer.controller import Controller, Request
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Secret
from trioformer.testing.simulation import World, drawn, step


@attrs.define(eq=False)
class Operator:
    """Keeps as many Secrets as a ConfigMap says, and notes the number in an annotation of the ConfigMap."""

    client: Client
    mistake: str
    maps: SharedInformer[ConfigMap]
    secrets: SharedInformer[Secret]

    async def reconcile(self, request: Request) -> None:
        found = self.maps.lister.get(request)
        if found is None or "count" not in found.data:
            return
        count = int(found.data["count"])
        await self.keep(found, count)
        if found.metadata.annotations.get("done") != str(count):
            await self.note(found, str(count))

    async def keep(self, found: ConfigMap, count: int) -> None:
        """Create what is missing, and delete what is too much."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": found.name, "uid": found.uid, "controller": True}
        mine = [
            one for one in self.secrets.lister.list() if any(o.uid == found.uid for o in one.metadata.owner_references)
        ]
        api = self.client.api(Secret, namespace="default")
        metadata: dict[str, Any] = {"ownerReferences": [] if self.mistake == "no owner" else [owner]}
        if self.mistake == "random name":
            for _ in range(len(mine), count):
                metadata["generateName"] = f"{found.name}-"
                await api.create(from_dict(Secret, {"metadata": metadata}))
            return
        names = {one.name for one in mine}
        for number in range(count):
            metadata["name"] = f"{found.name}-{number}"
            if metadata["name"] not in names:
                with suppress(AlreadyExistsError):
                    await api.create(from_dict(Secret, {"metadata": metadata}))
        for name in names - {f"{found.name}-{number}" for number in range(count)}:
            with suppress(NotFoundError):
                await api.delete(name)

    async def note(self, found: ConfigMap, count: str) -> None:
        api = self.client.api(ConfigMap, namespace="default")
        if self.mistake == "lost update":
            metadata = found.metadata.evolve(
                annotations={**found.metadata.annotations, "done": count}, resource_version=""
            )
            await api.replace(found.evolve(metadata=metadata))
        else:
            await api.patch(found.name, {"metadata": {"annotations": {"done": count}}})


async def operate(client: Client, mistake: str = "") -> None:
    """Run the operator until cancelled."""
    if mistake == "loop":
        while True:
            await trio.lowlevel.checkpoint()
    factory = SharedInformerFactory(client)
    operator = Operator(client, mistake, factory.informer(ConfigMap), factory.informer(Secret))
    controller = Controller("maps", operator.reconcile)
    controller.watch(operator.maps)
    controller.owns(factory, Secret, owner=ConfigMap)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await controller.run()


with_random_name = partial(operate, mistake="random name")
without_owner = partial(operate, mistake="no owner")
with_lost_update = partial(operate, mistake="lost update")
in_a_loop = partial(operate, mistake="loop")


class Maps:
    """The user of the operator."""

    kinds = (ConfigMap,)

    @step
    def create(self, world: World, count: int = drawn(0, 3)) -> None:
        """Create the ConfigMap."""
        metadata = {"name": "one", "namespace": "default"}
        world.create(from_dict(ConfigMap, {"metadata": metadata, "data": {"count": str(count)}}))

    @step
    def scale(self, world: World, count: int = drawn(0, 3)) -> None:
        """Change the number."""
        world.patch(ConfigMap, "one", {"data": {"count": str(count)}})

    @step
    def annotate(self, world: World, what: str = drawn("a", "b")) -> None:
        """Write another annotation."""
        world.patch(ConfigMap, "one", {"metadata": {"annotations": {"user": what}}})

    @step
    def delete(self, world: World) -> None:
        """Delete the ConfigMap."""
        world.delete(ConfigMap, "one")
