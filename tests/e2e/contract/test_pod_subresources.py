"""The subresources of pods, on an embedded and on a real server."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from trioformer.client import Client
from trioformer.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    InvalidError,
    MethodNotAllowedError,
    NotFoundError,
    TooManyRequestsError,
)
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.core_v1 import Binding, ObjectReference, Pod, ServiceAccount
from trioformer.models.policy_v1 import Eviction, PodDisruptionBudget


async def make_pod(client: Client, namespace: str, name: str = "web-0", **container: Any) -> Pod:
    accounts = client.api(ServiceAccount, namespace)
    with suppress(AlreadyExistsError):
        await accounts.create(ServiceAccount(metadata=ObjectMeta(name="default")))
    spec = {"containers": [{"name": "main", "image": "nginx:1", **container}]}
    metadata = {"name": name, "labels": {"app": "web"}}
    return await client.api(Pod, namespace).create(from_dict(Pod, {"metadata": metadata, "spec": spec}))


# --- binding ---


async def test_a_pod_is_bound_once(server_client: Client, namespace: str) -> None:
    pods = server_client.api(Pod, namespace)
    pod = await make_pod(server_client, namespace)
    binding = Binding(target=ObjectReference(kind="Node", name="node-9"))
    await pods.create_subresource(pod, "binding", binding, dry_run=True)
    assert not (await pods.get(pod)).spec.node_name
    await pods.create_subresource(pod, "binding", binding)
    assert (await pods.get(pod)).spec.node_name == "node-9"
    with pytest.raises(ConflictError, match="already assigned to node"):
        await pods.create_subresource(pod, "binding", binding)
    other = await make_pod(server_client, namespace, "web-1")
    await server_client.api(Binding, namespace).create(
        Binding(metadata=ObjectMeta(name=other.name), target=binding.target)
    )
    assert (await pods.get(other)).spec.node_name == "node-9"


# --- eviction ---


async def test_a_pod_without_budget_is_evicted(server_client: Client, namespace: str) -> None:
    pods = server_client.api(Pod, namespace)
    pod = await make_pod(server_client, namespace)
    await pods.evict(pod, dry_run=True)
    with pytest.raises(ConflictError):
        await pods.evict("web-0", uid="another")
    await pods.evict(pod, uid=pod.uid, grace_period_seconds=0)
    with pytest.raises(NotFoundError):
        await pods.evict(pod)
    with pytest.raises(BadRequestError, match="name in URL does not match"):
        await pods.create_subresource("web-0", "eviction", Eviction(metadata=ObjectMeta(name="web-1")))


async def test_a_disruption_budget_is_asked_before_an_eviction(server_client: Client, namespace: str) -> None:
    pods, budgets = server_client.api(Pod, namespace), server_client.api(PodDisruptionBudget, namespace)
    for name in ("web-0", "web-1"):
        await make_pod(server_client, namespace, name)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await pods.patch(name, {"status": ready}, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made = await budgets.create(from_dict(PodDisruptionBudget, {"metadata": {"name": "b"}, "spec": spec}))
    status = {"observedGeneration": made.metadata.generation, "currentHealthy": 2, "desiredHealthy": 1}
    status |= {"expectedPods": 2, "disruptionsAllowed": 1}
    await budgets.patch("b", {"status": status}, subresource="status")
    await pods.evict("web-0", dry_run=True)
    await pods.evict("web-0")
    left = (await budgets.get("b")).status
    assert (left.disruptions_allowed, list(left.disrupted_pods)) == (0, ["web-0"])
    with pytest.raises(TooManyRequestsError, match="Cannot evict pod as it would violate") as raised:
        await pods.evict("web-1")
    (why,) = raised.value.details.causes
    assert why.message == "The disruption budget b does not allow evicting pods currently"
    await budgets.patch("b", {"status": {"desiredHealthy": 2}}, subresource="status")
    with pytest.raises(TooManyRequestsError) as raised:
        await pods.evict("web-1")
    (why,) = raised.value.details.causes
    assert why.message == "The disruption budget b needs 2 healthy pods and has 2 currently"


async def test_a_pod_that_is_not_ready_is_evicted_while_its_budget_is_healthy(
    server_client: Client, namespace: str
) -> None:
    pods, budgets = server_client.api(Pod, namespace), server_client.api(PodDisruptionBudget, namespace)
    await make_pod(server_client, namespace)
    await pods.patch("web-0", {"status": {"phase": "Running"}}, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    made = await budgets.create(from_dict(PodDisruptionBudget, {"metadata": {"name": "b"}, "spec": spec}))
    status = {"observedGeneration": made.metadata.generation, "currentHealthy": 0, "desiredHealthy": 1}
    status |= {"expectedPods": 1, "disruptionsAllowed": 0}
    await budgets.patch("b", {"status": status}, subresource="status")
    with pytest.raises(TooManyRequestsError):
        await pods.evict("web-0")
    await budgets.patch("b", {"status": {"currentHealthy": 1}}, subresource="status")
    await pods.evict("web-0")
    assert not (await budgets.get("b")).status.disrupted_pods


# --- ephemeral containers ---


async def test_ephemeral_containers_are_added_and_never_changed(server_client: Client, namespace: str) -> None:
    pods = server_client.api(Pod, namespace)
    await make_pod(server_client, namespace)

    async def add(container: dict[str, Any]) -> Pod:
        patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"ephemeralContainers": [container]}}
        return await pods.patch("web-0", patch, patch_type="strategic", subresource="ephemeralcontainers")

    made = await add({"name": "debug", "image": "busybox:1"})
    (debug,) = made.spec.ephemeral_containers
    assert (debug.name, debug.image, debug.image_pull_policy) == ("debug", "busybox:1", "IfNotPresent")
    assert (made.metadata.labels, made.metadata.generation) == ({"app": "web"}, 2)
    with pytest.raises(InvalidError, match='existing ephemeral containers "debug" may not be changed'):
        await add({"name": "debug", "image": "other"})
    with pytest.raises(InvalidError, match=r"spec.ephemeralContainers\[.\].name: Duplicate value: \"main\""):
        await add({"name": "main", "image": "other"})
    with pytest.raises(InvalidError, match=r"spec.ephemeralContainers\[.\].image: Required value"):
        await add({"name": "second"})
    with pytest.raises(InvalidError, match='existing ephemeral containers "debug" may not be removed'):
        await pods.patch("web-0", {"spec": {"ephemeralContainers": []}}, subresource="ephemeralcontainers")
    assert (await pods.get("web-0", subresource="ephemeralcontainers")).spec.ephemeral_containers == (debug,)
    with pytest.raises(MethodNotAllowedError):
        await pods.create_subresource("web-0", "ephemeralcontainers", made)


async def test_ephemeral_containers_are_replaced_with_the_pod(server_client: Client, namespace: str) -> None:
    pods = server_client.api(Pod, namespace)
    made = await make_pod(server_client, namespace)
    wanted = from_dict(Pod, {**_as_dict(made), "spec": _spec(made) | {"ephemeralContainers": [DEBUG]}})
    replaced = await pods.replace_subresource(made, "ephemeralcontainers", wanted)
    assert [one.name for one in replaced.spec.ephemeral_containers] == ["debug"]
    with pytest.raises(ConflictError):
        await pods.replace_subresource(made, "ephemeralcontainers", wanted)


DEBUG = {"name": "debug", "image": "busybox"}


def _as_dict(pod: Pod) -> dict[str, Any]:
    kept = {"name": pod.name, "namespace": pod.namespace, "resourceVersion": pod.resource_version}
    return {"metadata": kept}


def _spec(pod: Pod) -> dict[str, Any]:
    return {"containers": [{"name": one.name, "image": one.image} for one in pod.spec.containers]}


# --- resize ---


async def test_resize_changes_only_the_resources_of_containers(server_client: Client, namespace: str) -> None:
    pods = server_client.api(Pod, namespace)
    await make_pod(server_client, namespace, resources={"requests": {"cpu": "100m"}})
    container = {"name": "main", "image": "nginx:2", "resources": {"requests": {"cpu": "200m"}}}
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "node-1", "containers": [container]}}
    resized = await pods.patch("web-0", patch, patch_type="strategic", subresource="resize")
    (main,) = resized.spec.containers
    assert (main.image, str(main.resources.requests["cpu"])) == ("nginx:1", "200m")
    assert resized.metadata.labels == {"app": "web"}
    assert not resized.spec.node_name
    assert resized.metadata.generation == 2
    assert (await pods.get("web-0", subresource="resize")).spec.containers == (main,)
