"""Simulations for ``--embedded``. Each acts as a part of a cluster, or as its users.

``connect(arguments, simulate_…)`` starts a simulation.  Simulations change objects
with the direct API of the embedded server, which is synchronous.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import trio

from trioformer import NotFoundError
from trioformer.leaderelection import LeaderElectionOptions, Leadership, run_as_leader
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.apps_v1 import Deployment, ReplicaSet, StatefulSet
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod
from trioformer.testing import APIServer
from trioformer.watchtools import deleted, has_condition, resuming_watch, wait_for

T = TypeVar("T", bound=KubernetesObject)
Started = trio.TaskStatus[None]
IGNORED: Started = trio.TASK_STATUS_IGNORED
WEBSITES = "websites.example.com"


def pod(
    name: str, *, phase: str = "Running", owner: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Return a pod in the namespace ``default``."""
    containers = [{"name": "app", "image": "app:1"}]
    metadata = {
        "name": name,
        "namespace": "default",
        "ownerReferences": [owner] if owner else [],
    }
    status = {"phase": phase}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
        "status": status,
    }


def deployment(name: str, image: str, *, replicas: object = 2) -> dict[str, Any]:
    """Return a Deployment in the namespace ``default``."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": image}]},
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": spec,
    }


async def act_on(
    server: APIServer,
    kind: type[T],
    action: Callable[[T], Awaitable[None]],
    task_status: Started,
) -> None:
    """Call ``action`` with every state of the objects of a kind."""
    async with server.open_client() as client:
        listing = await client.api(kind).list()
        async with resuming_watch(
            client.api(kind), resource_version=listing.resource_version
        ) as events:
            task_status.started()
            for obj in listing:
                await action(obj)
            async for event in events:
                if event.type != "DELETED":
                    await action(event.object)


async def simulate_kubelet(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Make each new pod ready after half a second."""

    async def run(made: Pod) -> None:
        if made.status.phase != "Running":
            await trio.sleep(0.5)
            status = {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            with suppress(NotFoundError):  # it was deleted in the meantime
                server.patch(
                    Pod, made.name, {"status": status}, namespace=str(made.namespace)
                )

    await act_on(server, Pod, run, task_status)


async def simulate_deployments(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Make all pods of a Deployment available, half a second after each change of its
    spec.
    """

    async def roll_out(changed: Deployment) -> None:
        generation, replicas = changed.metadata.generation, changed.spec.replicas
        if changed.status.observed_generation != generation:
            await trio.sleep(0.5)
            counts = dict.fromkeys(
                ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
                replicas,
            )
            with suppress(NotFoundError):
                status = {**counts, "observedGeneration": generation}
                server.patch(
                    Deployment,
                    changed.name,
                    {"status": status},
                    namespace=str(changed.namespace),
                )

    await act_on(server, Deployment, roll_out, task_status)


async def simulate_failures(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Let pods fail and recover, one after the other."""
    for number in range(3):
        server.create(pod(f"web-{number}", phase="Running" if number else "Failed"))
    task_status.started()
    for step in itertools.count():
        await trio.sleep(1)
        server.patch(Pod, f"web-{(step + 1) % 3}", {"status": {"phase": "Failed"}})
        await trio.sleep(1)
        server.patch(Pod, f"web-{step % 3}", {"status": {"phase": "Running"}})


async def simulate_restarts(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Let the container of a pod restart every second."""
    server.create(pod("unlucky"))
    task_status.started()
    for count in itertools.count():
        status = {
            "name": "app",
            "restartCount": count,
            "ready": True,
            "image": "app:1",
            "imageID": "",
        }
        server.patch(Pod, "unlucky", {"status": {"containerStatuses": [status]}})
        await trio.sleep(1)


async def simulate_updates(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Change the images of Deployments. One Deployment has invalid containers, and
    another later gets invalid replicas.
    """
    for name in ("web", "api", "worker"):
        server.create(
            deployment(name, f"{name}:1", replicas="three" if name == "worker" else 2)
        )
    task_status.started()
    for step in itertools.count(2):
        await trio.sleep(1)
        containers = (
            "none" if step % 5 == 0 else [{"name": "app", "image": f"web:{step}"}]
        )
        server.patch(
            Deployment,
            "web",
            {"spec": {"template": {"spec": {"containers": containers}}}},
        )


async def simulate_replica_set(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Create, run and delete the pods of a ReplicaSet."""
    made = server.create({**deployment("web", "web:1"), "kind": "ReplicaSet"})
    uid = server.get(ReplicaSet, "web").uid
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": uid,
        "controller": True,
    }
    assert made
    task_status.started()
    for number in itertools.count():
        server.create(pod(f"web-{number}", phase="Pending", owner=owner))
        await trio.sleep(0.5)
        server.patch(Pod, f"web-{number}", {"status": {"phase": "Running"}})
        await trio.sleep(1)
        if number % 4 == 3:  # keep only the last four
            for gone in range(number - 3, number + 1):
                server.delete(Pod, f"web-{gone}")


async def simulate_forbidden_secrets(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Create some pods, in a cluster in which reading Secrets is forbidden."""
    server.fail_next(1_000, resource="secrets", status=403)
    for number in range(3):
        server.create(pod(f"web-{number}"))
    task_status.started()


async def simulate_teams(server: APIServer, *, task_status: Started = IGNORED) -> None:
    """Create namespaces with a ConfigMap, and change one of them now and then."""
    names = [
        "billing",
        "search",
        "checkout",
        "shop",
        "mail",
        "login",
        "images",
        "stock",
    ]
    for name in names:
        server.create(Namespace(metadata=ObjectMeta(name=name)))
        server.create(ConfigMap(metadata=ObjectMeta(name="web", namespace=name)))
    task_status.started()
    for number, name in enumerate(itertools.cycle(names)):
        await trio.sleep(3)
        server.patch(ConfigMap, "web", {"data": {f"key-{number}": "x"}}, namespace=name)


async def simulate_rival(server: APIServer, *, task_status: Started = IGNORED) -> None:
    """Hold the lease ``example`` for three seconds, before another candidate can
    acquire it.
    """

    async def lead(_: Leadership) -> None:
        task_status.started()
        await trio.sleep(3)

    options = LeaderElectionOptions(
        lease_duration=15, renew_deadline=10, retry_period=2
    )
    async with server.open_client() as client:
        await run_as_leader(
            client,
            lead,
            name="example",
            namespace="default",
            identity="rival",
            options=options,
        )


async def simulate_database(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Restart the container of a StatefulSet's pod, replace the pod, and act as the
    controller of the Deployment ``web``.
    """
    database = server.create(StatefulSet(metadata=ObjectMeta(name="db")))
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "db",
        "uid": database.uid,
        "controller": True,
    }
    server.create(deployment("web", "web:1"))
    while True:
        server.create(pod("db-0", owner=owner))
        task_status.started()
        task_status = IGNORED
        for restarts in range(3):
            server.patch(
                Pod,
                "db-0",
                {"status": {"containerStatuses": [{"restartCount": restarts}]}},
            )
            await trio.sleep(0.5)
            generation = server.get(Deployment, "web").metadata.generation
            server.patch(
                Deployment, "web", {"status": {"observedGeneration": generation}}
            )
        server.delete(Pod, "db-0")


async def simulate_website_user(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Create, change and delete a Website in a loop, after an operator has installed
    the kind.
    """
    async with server.open_client() as client:
        task_status.started()
        definitions = client.api(CustomResourceDefinition)
        await wait_for(
            definitions, WEBSITES, has_condition("Established"), missing_ok=True
        )
        websites = client.api(
            await client.discover("example.com/v1", "Website"), namespace="default"
        )
        while True:
            spec = {"page": "Hello", "replicas": 3}
            metadata = {"name": "hello", "namespace": "default"}
            server.create(
                {
                    "apiVersion": "example.com/v1",
                    "kind": "Website",
                    "metadata": metadata,
                    "spec": spec,
                }
            )
            await trio.sleep(1)
            server.patch(
                WEBSITES, "hello", {"spec": {"page": "Hello, world", "replicas": 1}}
            )
            await trio.sleep(1)
            server.delete(WEBSITES, "hello")
            await wait_for(websites, "hello", deleted())
            await trio.sleep(1)


async def simulate_websites(
    server: APIServer, *, task_status: Started = IGNORED
) -> None:
    """Act as a user of Websites and as the controller of Deployments, and print the
    conditions of the Websites.
    """
    async with server.open_client() as client, trio.open_nursery() as nursery:
        await nursery.start(simulate_deployments, server)
        nursery.start_soon(simulate_website_user, server)
        task_status.started()
        definitions = client.api(CustomResourceDefinition)
        await wait_for(
            definitions, WEBSITES, has_condition("Established"), missing_ok=True
        )
        websites = client.api(await client.discover("example.com/v1", "Website"))
        shown: dict[str, str] = {}
        async with websites.watch() as events:
            async for event in events:
                conditions = event.object.get("status", {}).get("conditions", [])
                state = (
                    "deleted"
                    if event.type == "DELETED"
                    else "; ".join(each["message"] for each in conditions)
                )
                if state and state != shown.get(event.object.name):
                    print(f"Website {event.object.name}: {state}")
                shown[event.object.name] = state
