"""Nine classic mistakes, each planted in one place of the operator of databases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

import trio

from tests.testing.simulation.databases import (
    FINALIZER,
    LABEL,
    NAME,
    Database,
    DatabaseStatus,
    Operator,
    credentials_of,
    target_of,
    volume_of,
)
from trioformer import AlreadyExistsError, Client, ConflictError, NotFoundError, SharedInformerFactory
from trioformer.controller import Request, drop_finalizer, set_controller_reference
from trioformer.leaderelection import Leadership, run_as_leader
from trioformer.models import merge_patch
from trioformer.models.core_v1 import ConfigMap, Secret


class LostUpdate(Operator):
    """Sends the list of conditions without the version in which it was read."""

    async def save(self, database: Database, status: DatabaseStatus) -> Database:
        changes = merge_patch(database, database.evolve(status=status))
        return await self.client.api(Database).patch(database, changes, subresource="status")


class RandomName(Operator):
    """Lets the server choose the name of the Secret, and looks for it in the cache."""

    async def ensure_credentials(self, database: Database) -> None:
        found = self.factory.informer(Secret).lister.list(
            namespace=database.namespace, label_selector={LABEL: database.name}
        )
        if not found:
            wanted = credentials_of(database)
            metadata = wanted.metadata.evolve(name="", generate_name=f"{database.name}-credentials-")
            wanted = set_controller_reference(wanted.evolve(metadata=metadata), database)
            await self.client.api(Secret).create(wanted)


class FinalizerFirst(Operator):
    """Removes the finalizer, and then cleans up."""

    async def take_down(self, database: Database) -> None:
        await drop_finalizer(self.client, database, FINALIZER)
        with suppress(NotFoundError):
            await self.client.api(ConfigMap).delete(target_of(database))


class StaleCache(Operator):
    """Decides by the cache which volumes to create and to delete, also after a fail-over."""

    async def read(self, request: Request) -> Database | None:
        return self.factory.informer(Database).lister.get(request)


class IgnoredConflict(Operator):
    """Expects an event after a conflict, but the predicate drops events that do not change the spec."""

    async def save(self, database: Database, status: DatabaseStatus) -> Database:
        with suppress(ConflictError):
            return await super().save(database, status)
        return database


class NoOwner(Operator):
    """Creates the Secret without an owner reference."""

    async def ensure_credentials(self, database: Database) -> None:
        wanted = credentials_of(database)
        if self.factory.informer(Secret).lister.get(wanted) is None:
            with suppress(AlreadyExistsError):
                await self.client.api(Secret).create(wanted)


class StatusFirst(Operator):
    """Records the number of volumes, and then creates them."""

    async def ensure_volumes(self, database: Database) -> Database:
        saved = await self.save(database, database.status.evolve(volumes=database.spec.members))
        for number in range(database.status.volumes, database.spec.members):
            await self.create(database, volume_of(database, number))
        return saved


class ForgottenNotFound(Operator):
    """Fails for ever if there is nothing left to clean up."""

    async def take_down(self, database: Database) -> None:
        await self.client.api(ConfigMap).delete(target_of(database))
        await drop_finalizer(self.client, database, FINALIZER)


class TwoLeaders(Operator):
    """Starts the controller when this process leads, but in a nursery that outlives the leadership."""

    async def run(self) -> None:
        started = trio.Event()

        async def lead(_leadership: Leadership) -> None:
            if not started.is_set():
                started.set()
                await nursery.start(self.controller().run)
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            await nursery.start(self.factory.run)
            await run_as_leader(self.client, lead, name=NAME, namespace="default", again_after_loss=True)


MISTAKES: Final[Mapping[str, type[Operator]]] = MappingProxyType(
    {
        "lost update": LostUpdate,
        "create that is not idempotent": RandomName,
        "finalizer removed before the clean-up": FinalizerFirst,
        "decision on a stale cache after fail-over": StaleCache,
        "conflict ignored": IgnoredConflict,
        "owner reference missing": NoOwner,
        "status written before the work": StatusFirst,
        "NotFound forgotten": ForgottenNotFound,
        "two leaders": TwoLeaders,
    }
)


def make_operator(mistake: str | None) -> Callable[[Client], Awaitable[None]]:
    """Return the operator with one mistake, or without."""
    kind = Operator if mistake is None else MISTAKES[mistake]

    async def operator(client: Client) -> None:
        await kind(client, SharedInformerFactory(client)).run()

    return operator
