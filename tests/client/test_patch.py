"""The three types of patch: requests, their effect on the server, and errors."""

from __future__ import annotations

import json

import pytest

from examples.custom_resource import CronTab
from tests.client.test_api import CONFIG, POD
from tests.support.scripted_http import InMemory, response
from trioformer import Client, open_client
from trioformer.client._patch import patch_content
from trioformer.errors import InvalidError, StatusError
from trioformer.models import ObjectMeta, Quantity, from_dict
from trioformer.models.apps_v1 import Deployment, DeploymentStatus
from trioformer.models.core_v1 import Container, EnvVar, Pod, ResourceRequirements
from trioformer.testing import APIServer


def deployment() -> Deployment:
    containers = [{"name": "main", "image": "nginx:1"}, {"name": "side", "image": "envoy:1"}]
    spec = {"replicas": 2, "template": {"spec": {"containers": containers}}}
    metadata = {"name": "web", "namespace": "default", "labels": {"old": "yes"}}
    return from_dict(Deployment, {"metadata": metadata, "spec": spec})


def images(patched: Deployment) -> dict[str, str | None]:
    return {container.name: container.image for container in patched.spec.template.spec.containers}


# --- requests ---


async def test_each_type_has_its_media_type() -> None:
    for patch_type, patch, media_type in [
        ("merge", {"spec": {"replicas": 3}}, "application/merge-patch+json"),
        ("strategic", {"spec": {"replicas": 3}}, "application/strategic-merge-patch+json"),
        ("json", [{"op": "remove", "path": "/spec"}], "application/json-patch+json"),
        ("json", (), "application/json-patch+json"),
    ]:
        transport = InMemory([response(200, POD)])
        async with open_client(CONFIG, http_transport=transport) as client:
            await client.api(Pod, "shop").patch("web-0", patch, patch_type=patch_type)
        (request,) = transport.requests
        assert transport.targets == ["PATCH /api/v1/namespaces/shop/pods/web-0"]
        assert request.headers["content-type"] == media_type
        assert json.loads(request.content) == (list(patch) if patch_type == "json" else patch)


# --- the effect on the server ---


async def test_a_json_patch_is_applied_completely_or_not_at_all(api_server: APIServer, client: Client) -> None:
    api_server.create(deployment())
    deployments = client.api(Deployment, "default")
    scale = [
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 5},
    ]
    assert (await deployments.patch("web", scale, patch_type="json")).spec.replicas == 5
    wrong = [{"op": "remove", "path": "/metadata/labels/old"}, *scale]
    with pytest.raises(InvalidError, match=r"patch deployments\.apps/web in namespace default: "):
        await deployments.patch("web", wrong, patch_type="json")
    assert api_server.get(Deployment, "web").metadata.labels == {"old": "yes"}


async def test_strategic_merge_of_a_custom_kind_raises_with_the_alternatives(
    api_server: APIServer, client: Client
) -> None:
    api_server.register(CronTab)
    metadata = {"name": "nightly", "namespace": "default"}
    api_server.create({"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": metadata, "spec": {}})
    tabs = client.api(CronTab, "default")
    with pytest.raises(StatusError) as caught:
        await tabs.patch("nightly", {"spec": {"replicas": 2}}, patch_type="strategic")
    assert str(caught.value).startswith(
        "patch crontabs.stable.example.com/nightly in namespace default: "
        "custom kinds do not support strategic merge patches; use patch_type='merge' or 'json': "
    )
    assert caught.value.code == 415
    assert isinstance(caught.value.__cause__, StatusError)
    assert (await tabs.patch("nightly", {"spec": {"replicas": 2}})).spec.replicas == 2
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    assert (await tabs.patch("nightly", operations, patch_type="json")).spec.replicas == 3


async def test_an_unsupported_merge_patch_raises_the_servers_message(api_server: APIServer, client: Client) -> None:
    api_server.create(deployment())
    api_server.fail_next(verb="patch", status=415)
    with pytest.raises(StatusError) as caught:
        await client.api(Deployment, "default").patch("web", {})
    assert "custom kinds" not in str(caught.value)


# --- errors before a request is sent ---


async def test_a_patch_that_is_not_of_its_type_is_not_sent(api_server: APIServer, client: Client) -> None:
    for patch, patch_type, message in [
        ({"spec": {}}, "json", "a JSON patch must be a sequence of operations, not a dict"),
        (["remove"], "json", "an operation of a JSON patch must be a mapping, not a str"),
        ([{"op": "remove", "path": "/spec"}], "merge", "a merge patch must be a mapping, not a list; .*'json'"),
        (None, "merge", "a merge patch must be a mapping, not None"),
    ]:
        with pytest.raises(TypeError, match=message):
            await client.api(Deployment, "default").patch("web", patch, patch_type=patch_type)
        assert not api_server.requests


STATUS = DeploymentStatus(replicas=1)


async def test_a_typed_object_that_would_be_merged_is_refused_with_the_call_that_clears(
    api_server: APIServer, client: Client
) -> None:
    for patch, what, call in [
        ({"metadata": ObjectMeta()}, "'metadata' of a {} patch must be a mapping, not an ObjectMeta", "replace"),
        ({"status": STATUS}, "'status' of a {} patch must be a mapping, not a DeploymentStatus", "replace_status"),
        ({"status": {"x": {"y": STATUS}}}, "'status.x.y' of a {} patch must be", "replace_status"),
        (Deployment(status=STATUS), "a {} patch must be a mapping, not a Deployment", "replace"),
    ]:
        for patch_type in ["merge", "strategic"]:
            with pytest.raises(TypeError) as caught:
                await client.api(Deployment, "default").patch("web", patch, patch_type=patch_type, subresource="status")
            text = str(caught.value)
            assert text.startswith(what.format(patch_type))
            assert f"; call {call}() with the object, or pass a mapping with None" in text
            assert not api_server.requests


async def test_a_typed_item_of_a_strategic_patch_is_refused(api_server: APIServer, client: Client) -> None:
    for items, where in [
        ([{"name": "main"}, Container(name="side")], "[1]"),
        ([{"name": "main", "env": [EnvVar(name="A")]}], "[0].env[0]"),
    ]:
        patch = {"spec": {"template": {"spec": {"containers": items}}}}
        with pytest.raises(TypeError) as caught:
            await client.api(Deployment, "default").patch("web", patch, patch_type="strategic")
        text = str(caught.value)
        assert text.startswith(f"'spec.template.spec.containers{where}' of a strategic patch must be a mapping, not a")
        assert not api_server.requests


async def test_what_replaces_a_whole_value_may_be_typed(api_server: APIServer, client: Client) -> None:
    api_server.create(deployment())
    deployments = client.api(Deployment, "default")
    resources = ResourceRequirements(limits={"cpu": Quantity("1")})
    containers = [
        Container(name="main", image="nginx:3", resources=resources),
        {"name": "b", "image": "b:1", "resources": resources},
    ]
    patched = await deployments.patch("web", {"spec": {"template": {"spec": {"containers": containers}}}})
    assert images(patched) == {"main": "nginx:3", "b": "b:1"}
    value = [{"op": "add", "path": "/status", "value": STATUS}]
    assert (await deployments.patch("web", value, patch_type="json", subresource="status")).status == STATUS
    limits = {"cpu": Quantity("2")}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "resources": {"limits": limits}}]}}}}
    patched = await deployments.patch("web", patch, patch_type="strategic")
    assert patched.spec.template.spec.containers[1].resources.limits == limits


def test_a_patch_that_contains_itself_is_a_value_error() -> None:
    for patch_type in ["merge", "strategic"]:
        patch: dict[str, object] = {}
        patch["again"] = patch
        with pytest.raises(ValueError, match="too many levels"):
            patch_content(patch, patch_type)
