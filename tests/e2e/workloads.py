"""Deployments and StatefulSets for a cluster with nodes, and a handler that remembers its notifications."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import attrs
import trio

from trioformer.cache import ResourceEventHandler, SharedInformer
from trioformer.client import Api, Client
from trioformer.models import KubernetesObject, ObjectMeta, from_dict, key_of
from trioformer.models.apps_v1 import Deployment, StatefulSet
from trioformer.models.core_v1 import Binding, Namespace, ObjectReference, Pod
from trioformer.watchtools import resuming_watch

T = TypeVar("T", bound=KubernetesObject)
Workload = TypeVar("Workload", Deployment, StatefulSet)
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
numbers = itertools.count()


async def make_namespace(client: Client, name: str) -> str:
    """Create a namespace of a new name that begins so."""
    made = Namespace(metadata=ObjectMeta(name=f"{name}-{os.getpid()}-{next(numbers)}"))
    return (await client.api(Namespace).create(made)).name


def deployment(name: str, *, replicas: int) -> Deployment:
    return from_dict(Deployment, {"metadata": {"name": name}, "spec": _spec(name, replicas)})


def stateful_set(name: str, *, replicas: int) -> StatefulSet:
    # Without grace the API server alone removes a pod.  kwok does it by the name, which the next pod has too.
    spec = _spec(name, replicas, terminationGracePeriodSeconds=0) | {"serviceName": name}
    return from_dict(StatefulSet, {"metadata": {"name": name}, "spec": spec})


def _spec(name: str, replicas: int, **more: object) -> dict[str, object]:
    # No scheduler runs: the template names the node.
    pod = {"nodeName": "node-1", "containers": [{"name": "main", "image": "busybox"}], **more}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}


async def schedule(client: Client, namespace: str) -> None:
    """Be the scheduler of a namespace, which the cluster does not have."""
    pods = client.api(Pod, namespace=namespace)

    async def bind(pod: Pod) -> None:
        if not pod.spec.node_name:
            node = ObjectReference(kind="Node", name="node-1")
            await pods.create_subresource(pod.name, "binding", Binding(metadata=ObjectMeta(name=pod.name), target=node))

    listing = await pods.list()
    for pod in listing:
        await bind(pod)
    async with resuming_watch(pods, resource_version=listing.resource_version) as events:
        async for event in events:
            if event.type == "ADDED":
                await bind(event.object)


def is_rolled_out(workload: Deployment | StatefulSet) -> bool:
    """Whether all pods are up and of the newest template (``kubectl rollout status``)."""
    status = workload.status
    counts = {status.replicas, status.updated_replicas, status.available_replicas}
    return status.observed_generation == workload.metadata.generation and counts == {workload.spec.replicas}


async def restart(workloads: Api[Workload], name: str) -> Workload:
    """Have all pods replaced (``kubectl rollout restart``)."""
    template = {"metadata": {"annotations": {RESTARTED_AT: f"restart {next(numbers)}"}}}
    return await workloads.patch(name, {"spec": {"template": template}})


async def restart_container(pods: Api[Pod], name: str) -> Pod:
    """Be the kubelet of a pod whose container has been started once more."""
    (container,) = (await pods.get(name)).status.container_statuses
    status = {"name": container.name, "restartCount": container.restart_count + 1}
    patch = {"status": {"containerStatuses": [status]}}
    return await pods.patch(name, patch, patch_type="strategic", subresource="status", field_manager="kubelet")


async def fail(pods: Api[Pod], name: str) -> None:
    """Have kwok say that a pod's container has failed, within two seconds."""
    label = {"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}
    await pods.patch(name, {"metadata": {"labels": label}})


def versions(objects: Iterable[KubernetesObject]) -> dict[str, str]:
    return {key_of(each): each.resource_version for each in objects}


@attrs.define(eq=False)
class Reader(ResourceEventHandler[T], Generic[T]):
    """The objects as one handler knows them, and every state that it received."""

    objects: dict[str, T] = attrs.field(factory=dict)
    """By name."""
    states: list[T] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def on_add(self, obj: T, *, is_initial: bool) -> None:
        assert obj.name not in self.objects
        self._notify(obj)

    async def on_update(self, old: T, new: T) -> None:
        assert self.objects[new.name] is old
        self._notify(new)

    async def on_delete(self, obj: T, *, is_stale: bool) -> None:
        del self.objects[obj.name]
        self._news.set()

    def _notify(self, obj: T) -> None:
        self.objects[obj.name] = obj
        self.states.append(obj)
        self._news.set()

    async def wait_until(self, condition: Callable[[dict[str, T]], bool]) -> None:
        """Wait until what there is meets a condition."""
        while not condition(self.objects):
            self._news = trio.Event()
            await self._news.wait()


async def assert_up_to_date(informer: SharedInformer[T], api: Api[T], name: str) -> None:
    """Make sure that the cache is what a fresh list is, one more write to the named object included."""
    written = await api.patch(name, {"metadata": {"labels": {"last-write": str(next(numbers))}}})
    with trio.fail_after(30):
        await informer.wait_until_at_least(written)
    assert versions(informer.lister) == versions(await api.list())
