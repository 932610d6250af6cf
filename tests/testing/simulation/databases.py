"""An operator of databases, written to survive crashes, stale caches, conflicts, lost responses and fail-over.

A Database has members, which a StatefulSet runs, a volume for each member, and a Secret with a password.  The
monitoring of the cluster finds a database by a ConfigMap in another namespace, which owner references cannot clean up.
Another program decides whether a database is approved, and writes this in a condition beside the operator's own.

The promises, each of which ``mistakes.py`` breaks in one place:

- The operator changes the status only in the state that it has read, so the other program's condition is never lost.
- What is created has a fixed name, so a second try finds the first.
- The finalizer stays until the monitoring forgets the database, even if it is forgotten already.
- The Database is read from the server, because volumes that are deleted by mistake cannot be brought back.
- A conflict ends the reconcile with an error, which is tried again.
- Everything in the database's namespace has an owner.
- A volume counts as initialized after it was created, because a lost volume is not replaced by an empty one.
- The controller runs in the scope of the leadership, and ends with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, TypeVar

import attrs
import trio

from trioformer import AlreadyExistsError, Client, NotFoundError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import (
    Controller,
    Request,
    apply_owned,
    drop_finalizer,
    ensure_finalizer,
    generation_changed,
    is_controlled_by,
    set_controller_reference,
)
from trioformer.leaderelection import Leadership, run_as_leader
from trioformer.models import KubernetesObject, Model, from_dict, to_dict
from trioformer.models.apps_v1 import StatefulSet
from trioformer.models.conditions import Condition, set_condition
from trioformer.models.core_v1 import ConfigMap, Namespace, PersistentVolumeClaim, Secret
from trioformer.testing.simulation import World, drawn, step

NAME = "database-operator"
LABEL = "example.com/database"
FINALIZER = "example.com/monitoring"
MONITORING = "monitoring"
"""The namespace of the ConfigMaps for the monitoring."""
T = TypeVar("T", bound=KubernetesObject)


@crds.resource_part()
class DatabaseSpec(Model):
    """The desired state."""

    members: Annotated[int, crds.Schema(minimum=0, maximum=9)] = 1


@crds.resource_part()
class DatabaseStatus(Model):
    """The observed state."""

    volumes: int = 0
    """The number of initialized volumes.  If one of them is missing, its data is lost."""
    ready: int = 0
    conditions: tuple[Condition, ...] = ()


@crds.custom_resource("example.com/v1")
class Database(KubernetesObject):
    """A database and its number of members."""

    spec: DatabaseSpec = DatabaseSpec()
    status: DatabaseStatus = DatabaseStatus()


def build(database: Database, kind: type[T], name: str, **fields: object) -> T:
    """Return an object in the namespace of the database, with its label."""
    metadata = {"name": name, "namespace": database.namespace, "labels": {LABEL: database.name}}
    return from_dict(kind, {"metadata": metadata, **fields})


def credentials_of(database: Database) -> Secret:
    """Return a Secret with a new password."""
    return build(database, Secret, f"{database.name}-credentials", stringData={"password": secrets.token_urlsafe()})


def volume_of(database: Database, number: int) -> PersistentVolumeClaim:
    """Return the claim that the StatefulSet mounts into a member."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return build(database, PersistentVolumeClaim, f"data-{database.name}-{number}", spec=spec)


def members_of(database: Database) -> StatefulSet:
    """Return the StatefulSet that runs the members."""
    mount = {"name": "data", "mountPath": "/var/lib/database"}
    template = {
        "metadata": {"labels": {LABEL: database.name}},
        "spec": {"containers": [{"name": "database", "image": "database:17", "volumeMounts": [mount]}]},
    }
    claim = {"metadata": {"name": "data"}, "spec": volume_of(database, 0).spec}
    spec = {
        "replicas": database.spec.members,
        "podManagementPolicy": "Parallel",
        "serviceName": database.name,
        "selector": {"matchLabels": {LABEL: database.name}},
        "template": template,
        "volumeClaimTemplates": [claim],
    }
    return build(database, StatefulSet, database.name, spec=spec)


def target_of(database: Database) -> ConfigMap:
    """Return the ConfigMap by which the monitoring finds the database."""
    metadata = {
        "name": f"{database.namespace}-{database.name}",
        "namespace": MONITORING,
        "annotations": {LABEL: f"{database.namespace}/{database.name}"},
    }
    return from_dict(ConfigMap, {"metadata": metadata, "data": {"address": f"{database.name}:9187"}})


def request_for_target(target: ConfigMap) -> Iterable[Request]:
    """Return the database that a ConfigMap makes known to the monitoring."""
    namespace, _, name = target.metadata.annotations.get(LABEL, "").partition("/")
    return [Request(namespace, name)] if name else []


OWNED: tuple[type[KubernetesObject], ...] = (Secret, PersistentVolumeClaim, StatefulSet)


@attrs.define(eq=False)
class Operator:
    """Reconciles Databases while this process leads."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        """Fill the caches, and work whenever this process leads."""
        for kind in (Database, ConfigMap, *OWNED):
            self.factory.informer(kind)  # its cache is filled before this process leads
        async with trio.open_nursery() as nursery:
            await nursery.start(self.factory.run)
            await run_as_leader(self.client, self.lead, name=NAME, namespace="default", again_after_loss=True)

    async def lead(self, _leadership: Leadership) -> None:
        """Work until the leadership is lost."""
        await self.controller().run()

    def controller(self) -> Controller:
        """Return a controller that watches everything that the operator writes."""
        controller = Controller(NAME, self.reconcile, workers=2, reconcile_deadline=60)
        controller.watch(self.factory.informer(Database), predicates=[generation_changed])
        controller.watch(self.factory.informer(ConfigMap), enqueue=request_for_target)
        for kind in OWNED:
            controller.owns(self.factory, kind, owner=Database)
        return controller

    async def reconcile(self, request: Request) -> None:
        """Bring a database up, or take it down."""
        database = await self.read(request)
        if database is None:
            return
        if database.metadata.deletion_timestamp is not None:
            await self.take_down(database)
        else:
            await self.bring_up(await ensure_finalizer(self.client, database, FINALIZER))

    async def read(self, request: Request) -> Database | None:
        """Return the current state: an older one could delete volumes, or announce a deleted database."""
        return await self.client.api(Database).get_or_none(request)

    async def bring_up(self, database: Database) -> None:
        """Create what is missing, delete what is no longer needed, and report."""
        await self.client.api(ConfigMap).apply(target_of(database), field_manager=NAME, force=True)
        await self.ensure_credentials(database)
        database = await self.ensure_volumes(database)
        members = await self.apply_members(database)
        lost = await self.delete_surplus_volumes(database)
        observed = members.status.observed_generation == members.metadata.generation
        await self.report(database, (members.status.ready_replicas or 0) if observed else 0, lost)

    async def ensure_credentials(self, database: Database) -> None:
        """Create the password once."""
        wanted = credentials_of(database)
        if self.factory.informer(Secret).lister.get(wanted) is None:
            await self.create(database, wanted)

    async def ensure_volumes(self, database: Database) -> Database:
        """Create the volumes of new members, and then record their number."""
        for number in range(database.status.volumes, database.spec.members):
            await self.create(database, volume_of(database, number))
        return await self.save(database, database.status.evolve(volumes=database.spec.members))

    async def create(self, database: Database, wanted: KubernetesObject) -> None:
        """Create an object, unless the database already has it."""
        try:
            await self.client.api(type(wanted)).create(set_controller_reference(wanted, database))
        except AlreadyExistsError:
            found = await self.client.api(type(wanted)).get(wanted)
            if not is_controlled_by(found, database) or found.metadata.deletion_timestamp is not None:
                raise  # it belongs to a deleted database of this name, and goes soon

    async def apply_members(self, database: Database) -> StatefulSet:
        """Create or change the StatefulSet."""
        return await apply_owned(self.client, members_of(database), owner=database, field_manager=NAME)

    async def delete_surplus_volumes(self, database: Database) -> list[str]:
        """Delete the volumes of removed members, and return the names of the lost volumes."""
        claims = self.client.api(PersistentVolumeClaim, namespace=database.namespace)
        found: Mapping[str, PersistentVolumeClaim] = {
            claim.name: claim
            for claim in await claims.list(label_selector={LABEL: database.name})
            if is_controlled_by(claim, database)
        }
        kept = {volume_of(database, number).name for number in range(database.spec.members)}
        for name in sorted(found.keys() - kept):
            with suppress(NotFoundError):
                await claims.delete(name, uid=found[name].uid)
        return sorted(kept - found.keys())

    async def report(self, database: Database, ready: int, lost: list[str]) -> None:
        """Write the status."""
        is_ready = not lost and ready == database.spec.members
        conditions = set_condition(
            database.status.conditions,
            type="Ready",
            status=is_ready,
            reason="VolumeLost" if lost else "Available" if is_ready else "Progressing",
            message=", ".join(lost) or f"{ready} of {database.spec.members} members are ready",
            observed_generation=database.metadata.generation,
        )
        await self.save(database, database.status.evolve(ready=ready, conditions=conditions))

    async def save(self, database: Database, status: DatabaseStatus) -> Database:
        """Write the status, unless another program has changed the database since it was read."""
        return await self.client.api(Database).update_status(
            database, database.evolve(status=status), optimistic_lock=True
        )

    async def take_down(self, database: Database) -> None:
        """Let the monitoring forget the database.  The garbage collector deletes the other objects."""
        with suppress(NotFoundError):
            await self.client.api(ConfigMap).delete(target_of(database))
        await drop_finalizer(self.client, database, FINALIZER)


async def operator(client: Client) -> None:
    """Run the operator without mistakes."""
    await Operator(client, SharedInformerFactory(client)).run()


class Databases:
    """Users create, change and delete databases, another program approves them, and somebody deletes what is owned."""

    kinds = (Database,)

    def start(self, world: World) -> None:
        """Create the namespace of the monitoring."""
        world.create(Namespace(metadata=ObjectMeta(name=MONITORING)))

    @step
    def create(self, world: World, name: str = drawn("users", "orders"), members: int = drawn(1, 3)) -> None:
        """Create a database."""
        metadata = ObjectMeta(name=name, namespace="default")
        world.create(Database(metadata=metadata, spec=DatabaseSpec(members=members)))

    @step
    def scale(self, world: World, name: str = drawn("users", "orders"), members: int = drawn(0, 3)) -> None:
        """Change the number of members."""
        world.patch(Database, name, {"spec": {"members": members}})

    @step
    def judge(self, world: World, name: str = drawn("users", "orders"), approved: bool = drawn(True, False)) -> None:
        """Write the condition of the other program."""
        conditions = set_condition(
            world.get(Database, name).status.conditions, type="Approved", status=approved, reason="Judged"
        )
        world.patch(Database, name, {"status": {"conditions": [to_dict(each) for each in conditions]}})

    @step
    def delete(self, world: World, name: str = drawn("users", "orders")) -> None:
        """Delete a database."""
        world.delete(Database, name)

    @step
    def forget(self, world: World, name: str = drawn("users", "orders")) -> None:
        """Delete the ConfigMap of the monitoring."""
        world.delete(ConfigMap, f"default-{name}", namespace=MONITORING)
