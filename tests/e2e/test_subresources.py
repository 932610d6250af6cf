"""Subresources, bindings and patches, on a real API server and on the embedded one: both respond alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest
import trio

from tests.e2e.workloads import deployment, make_namespace
from trioformer import open_client
from trioformer.client import Client, retry_on_conflict
from trioformer.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnsupportedMediaTypeError,
)
from trioformer.models import ObjectMeta, ResourceInfo, from_dict, unstructured_kind
from trioformer.models.apps_v1 import Deployment, DeploymentStatus
from trioformer.models.authentication_v1 import TokenRequest, TokenRequestSpec
from trioformer.models.autoscaling_v1 import Scale
from trioformer.models.coordination_v1 import Lease, LeaseSpec
from trioformer.models.core_v1 import Binding, ObjectReference, Pod, ServiceAccount
from trioformer.models.policy_v1 import Eviction
from trioformer.testing import APIServer, ControlPlane

Connected = Callable[[], AbstractAsyncContextManager[Client]]
WIDGET = {
    "group": "example.com",
    "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
    "versions": [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
            },
        }
    ],
}


@pytest.fixture(params=["embedded", "kube-apiserver"])
def connected(request: pytest.FixtureRequest) -> Connected:
    @asynccontextmanager
    async def embedded() -> AsyncIterator[Client]:
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client:
                yield client
            nursery.cancel_scope.cancel()

    if request.param == "embedded":
        return embedded
    control_plane: ControlPlane = request.getfixturevalue("control_plane")
    return lambda: open_client(kubeconfig=control_plane.kubeconfig)


async def make_pod(client: Client, namespace: str) -> None:
    accounts = client.api(ServiceAccount, namespace)
    with suppress(AlreadyExistsError):
        await accounts.create(ServiceAccount(metadata=ObjectMeta(name="default")))
    spec = {"containers": [{"name": "main", "image": "nginx:1"}]}
    await client.api(Pod, namespace).create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": spec}))


async def test_every_type_of_patch_of_a_scale_returns_the_scale(connected: Connected) -> None:
    async with connected() as client:
        api = client.api(Deployment, await make_namespace(client, "scale"))
        await api.create(deployment("web", replicas=2))
        scale = await api.get("web", subresource="scale")
        assert (type(scale), scale.spec.replicas) == (Scale, 2)
        assert (await api.patch("web", {"spec": {"replicas": 3}}, subresource="scale")).spec.replicas == 3
        strategic = await api.patch("web", {"spec": {"replicas": 0}}, patch_type="strategic", subresource="scale")
        assert strategic.spec.replicas == 0
        operations = [{"op": "add", "path": "/spec/replicas", "value": 5}]
        assert (await api.patch("web", operations, patch_type="json", subresource="scale")).spec.replicas == 5
        assert (await api.get("web")).spec.replicas == 5
        stale = {"metadata": {"resourceVersion": scale.metadata.resource_version}, "spec": {"replicas": 1}}
        with pytest.raises(ConflictError):
            await api.patch("web", stale, subresource="scale")
        with pytest.raises(InvalidError):
            await api.patch("web", {"spec": {"replicas": -1}}, subresource="scale")
        with pytest.raises(NotFoundError):
            await api.patch("other", {"spec": {"replicas": 1}}, subresource="scale")


async def test_the_scale_of_a_custom_kind(connected: Connected) -> None:
    async with connected() as client:
        namespace = await make_namespace(client, "scale")
        definitions = client.api(
            unstructured_kind(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                plural="customresourcedefinitions",
                namespaced=False,
            )
        )
        await definitions.create(definitions.kind.of({"metadata": {"name": "widgets.example.com"}, "spec": WIDGET}))
        info = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
        widget = unstructured_kind(info)
        widgets = client.api(widget, namespace)
        with trio.fail_after(30):
            while True:  # a new kind is served a moment later
                try:
                    await widgets.create(widget.of({"metadata": {"name": "w"}, "spec": {"replicas": 1}}))
                    break
                except NotFoundError:
                    await trio.sleep(0.2)
        assert (await widgets.patch("w", {"spec": {"replicas": 4}}, subresource="scale")).spec.replicas == 4
        with pytest.raises(UnsupportedMediaTypeError):
            await widgets.patch("w", {"spec": {"replicas": 5}}, patch_type="strategic", subresource="scale")
        await definitions.delete("widgets.example.com")


@pytest.mark.parametrize("through", ["bindings", "subresource"])
async def test_a_pod_is_bound_once_and_evicted_once(connected: Connected, through: str) -> None:
    async with connected() as client:
        namespace = await make_namespace(client, "bind")
        await make_pod(client, namespace)
        pods = client.api(Pod, namespace)
        binding = Binding(metadata=ObjectMeta(name="web-0"), target=ObjectReference(kind="Node", name="node-9"))

        async def bind() -> Any:
            if through == "bindings":
                return await client.api(Binding, namespace).create(binding)
            return await pods.create_subresource("web-0", "binding", binding)

        assert await bind() == binding
        assert (await pods.get("web-0")).spec.node_name == "node-9"
        with pytest.raises(ConflictError, match="already assigned to node"):
            await bind()
        with pytest.raises(BadRequestError):
            await pods.create_subresource("web-0", "eviction", Eviction(metadata=ObjectMeta(name="another")))
        await pods.create_subresource("web-0", "eviction", Eviction())
        with pytest.raises(NotFoundError):
            await pods.create_subresource("web-1", "eviction", Eviction())


async def test_a_token_is_granted(control_plane: ControlPlane) -> None:
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        accounts = client.api(ServiceAccount, await make_namespace(client, "token"))
        await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
        request = TokenRequest(spec=TokenRequestSpec(audiences=("test",)))
        granted = await accounts.create_subresource("robot", "token", request)
        assert granted.status.token.count(".") == 2
        assert granted.spec.audiences == ("test",)


async def test_a_name_that_is_taken_is_tried_once_and_years_have_four_digits(connected: Connected) -> None:
    async with connected() as client:
        leases = client.api(Lease, await make_namespace(client, "lease"))
        long_ago = datetime(987, 6, 5, 4, 3, 2, 123_456, tzinfo=UTC)
        lease = Lease(metadata=ObjectMeta(name="old"), spec=LeaseSpec(renew_time=long_ago))
        assert (await leases.create(lease)).spec.renew_time == long_ago
        calls = 0

        async def create() -> Lease:
            nonlocal calls
            calls += 1
            return await leases.create(lease)

        with pytest.raises(AlreadyExistsError):
            await retry_on_conflict(create)
        assert calls == 1


async def test_a_cleared_field_of_a_status_needs_none_or_replace_status(connected: Connected) -> None:
    async with connected() as client:
        api = client.api(Deployment, await make_namespace(client, "status"))
        await api.create(deployment("web", replicas=1))
        await api.patch("web", {"status": {"replicas": 1, "unavailableReplicas": 1}}, subresource="status")
        with pytest.raises(TypeError, match=r"call replace_status\(\)"):
            await api.patch("web", {"status": DeploymentStatus(replicas=1)}, subresource="status")
        patched = await api.patch("web", {"status": {"unavailableReplicas": None}}, subresource="status")
        assert not patched.status.unavailable_replicas
        assert patched.status.replicas == 1
