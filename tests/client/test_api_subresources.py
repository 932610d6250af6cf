"""Subresources by their shorthands, and deleting collections: what is sent, and mistakes."""

from __future__ import annotations

import json

import pytest

from tests.client.test_api import SUCCESS, sent
from tests.client.test_raw import client_of
from tests.support.scripted_http import response
from trioformer.client import Client, open_client
from trioformer.errors import ExpiredError, NotFoundError, UnexpectedResponseError
from trioformer.models import ObjectMeta, PartialObjectMetadata, from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.autoscaling_v1 import Scale, ScaleSpec
from trioformer.models.core_v1 import ConfigMap, Pod, Secret, ServiceAccount
from trioformer.testing import APIServer

SCALE = '{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web"},"spec":{"replicas":2},"status":{}}'
EXPIRED = '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}'


def page(*names: str, token: str = "", version: str = "7") -> str:
    items = [{"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"}} for name in names]
    kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return json.dumps({**kind, "metadata": {"resourceVersion": version, "continue": token}, "items": items})


# --- shorthands ---


async def test_scale_is_a_patch_of_the_scale() -> None:
    async with client_of(SCALE, SCALE) as (client, transport):
        api = client.api(Deployment, "shop")
        scale = await api.scale("web", 2, resource_version="5", dry_run=True, field_manager="me")
        await api.scale("web", 0)
    path = "/apis/apps/v1/namespaces/shop/deployments/web/scale"
    assert sent(transport) == (
        f"PATCH {path}?fieldManager=me&dryRun=All",
        "application/merge-patch+json",
        {"spec": {"replicas": 2}, "metadata": {"resourceVersion": "5"}},
    )
    assert sent(transport, 1)[2] == {"spec": {"replicas": 0}}
    assert scale.spec.replicas == 2


async def test_a_subresource_is_replaced_and_applied_with_all_options() -> None:
    async with client_of(SCALE, SCALE) as (client, transport):
        api = client.api(Deployment, "shop")
        wanted = Scale(spec=ScaleSpec(replicas=0))
        await api.replace_subresource("web", "scale", wanted, field_validation="Strict", field_manager="me")
        await api.apply_subresource("web", "scale", wanted, field_manager="me", force=True, dry_run=True)
    path = "/apis/apps/v1/namespaces/shop/deployments/web/scale"
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 0}}
    assert sent(transport) == (f"PUT {path}?fieldManager=me&fieldValidation=Strict", "application/json", body)
    assert sent(transport, 1) == (
        f"PATCH {path}?fieldManager=me&dryRun=All&force=true",
        "application/apply-patch+yaml",
        body,
    )


async def test_the_manager_of_the_client_writes_subresources(api_server: APIServer) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
    api_server.create(from_dict(Deployment, {"metadata": {"name": "web"}, "spec": spec}))
    config, http = api_server.config, api_server.http_transport()
    async with open_client(config, http_transport=http, field_manager="operator") as client:
        api = client.api(Deployment, "default")
        applied = await api.apply_subresource("web", "scale", Scale(spec=ScaleSpec(replicas=2)))
        assert applied.spec.replicas == 2
        managers = (await api.get("web")).metadata.managed_fields
    assert ("operator", "Apply", "scale") in [(one.manager, one.operation, one.subresource) for one in managers]


async def test_an_eviction_has_its_options() -> None:
    async with client_of(SUCCESS, SUCCESS) as (client, transport):
        pods = client.api(Pod, "shop")
        await pods.evict("web-0", grace_period_seconds=0, uid="u", resource_version="5", dry_run=True)
        await pods.evict(Pod(metadata=ObjectMeta(name="web-1", namespace="shop")))
    target, _, body = sent(transport)
    assert target == "POST /api/v1/namespaces/shop/pods/web-0/eviction?dryRun=All"
    assert (body["kind"], body["metadata"]) == ("Eviction", {"name": "web-0"})
    options = {key: value for key, value in body["deleteOptions"].items() if key not in ("kind", "apiVersion")}
    assert options == {"gracePeriodSeconds": 0, "preconditions": {"uid": "u", "resourceVersion": "5"}}
    assert sent(transport, 1)[0] == "POST /api/v1/namespaces/shop/pods/web-1/eviction"


async def test_a_shorthand_of_another_kind_is_a_mistake(client: Client) -> None:
    with pytest.raises(TypeError, match=r"evict\(\) is for pods"):
        await client.api(ConfigMap, "default").evict("web-0")  # type: ignore[misc]  # the mistake
    with pytest.raises(TypeError, match=r"create_token\(\) is for serviceaccounts"):
        await client.api(Pod, "default").create_token("web-0")  # type: ignore[misc]  # the mistake
    accounts = client.api(ServiceAccount, "default")
    with pytest.raises(TypeError, match=r"write audiences=\['vault'\]"):
        await accounts.create_token("robot", audiences="vault")
    with pytest.raises(NotFoundError, match="scale configmaps/a in namespace default"):
        await client.api(ConfigMap, "default").scale("a", 1)


async def test_the_embedded_server_grants_different_tokens(api_server: APIServer, client: Client) -> None:
    api_server.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    secret = api_server.create(Secret(metadata=ObjectMeta(name="s")))
    accounts = client.api(ServiceAccount, "default")
    first = await accounts.create_token("robot")
    second = await accounts.create_token("robot", bound_to=secret)
    assert first.status.token != second.status.token


# --- collections ---


async def test_a_collection_is_deleted_in_pages_of_metadata() -> None:
    async with client_of(page("a", "b", token="t"), page("c", version="8")) as (client, transport):
        deleted = await client.api(ConfigMap, "shop").delete_collection(
            label_selector={"app": "web"},
            field_selector="metadata.name!=x",
            grace_period_seconds=0,
            propagation_policy="Foreground",
            dry_run=True,
            page_size=2,
        )
    query = "labelSelector=app%3Dweb&fieldSelector=metadata.name%21%3Dx&limit=2"
    target, content_type, body = sent(transport)
    assert target == f"DELETE /api/v1/namespaces/shop/configmaps?{query}"
    assert (content_type, body) == (
        "application/json",
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "dryRun": ["All"],
        },
    )
    assert sent(transport, 1)[0] == f"{target}&continue=t"
    assert "as=PartialObjectMetadataList" in transport.requests[0].headers["accept"]
    assert [one.name for one in deleted] == ["a", "b", "c"]
    assert all(isinstance(one, PartialObjectMetadata) for one in deleted)
    assert (deleted.resource_version, deleted.pages) == ("7", 2)


async def test_a_server_without_metadata_lists_is_understood() -> None:
    items = [{"metadata": {"name": "a", "namespace": "shop", "uid": "u"}, "data": {"k": "v"}}]
    whole = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items}
    async with client_of(json.dumps(whole)) as (client, _):
        (deleted,) = await client.api(ConfigMap, "shop").delete_collection(everything=True)
    assert (deleted.name, deleted.uid) == ("a", "u")


async def test_a_token_that_expires_begins_again_and_lists_each_object_once() -> None:
    expired = response(410, EXPIRED)
    async with client_of(page("a", "b", token="t"), expired, page("b", "c")) as (client, transport):
        deleted = await client.api(ConfigMap, "shop").delete_collection(everything=True, page_size=2)
    assert [one.name for one in deleted] == ["a", "b", "c"]
    assert [target.partition("?")[2] for target in transport.targets] == ["limit=2", "limit=2&continue=t", "limit=2"]
    async with client_of(expired) as (client, _):
        with pytest.raises(ExpiredError):
            await client.api(ConfigMap, "shop").delete_collection(everything=True)


async def test_another_response_than_a_list_is_unexpected() -> None:
    for body in (SUCCESS, "ok", '{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[]}'):
        async with client_of(body) as (client, _):
            with pytest.raises(UnexpectedResponseError, match="delete collection configmaps in namespace shop"):
                await client.api(ConfigMap, "shop").delete_collection(everything=True)


async def test_an_empty_selector_does_not_delete_everything(client: Client) -> None:
    for selector in [{}, {"label_selector": ""}, {"label_selector": {}}, {"field_selector": ""}]:
        with pytest.raises(ValueError, match="everything=True"):
            await client.api(ConfigMap, "default").delete_collection(**selector)


async def test_a_collection_that_is_not_certain_is_not_deleted(client: Client) -> None:
    with pytest.raises(ValueError, match="everything=True"):
        await client.api(ConfigMap, "default").delete_collection(label_selector="a=b", everything=True)
    with pytest.raises(ValueError, match="of one namespace"):
        await client.api(ConfigMap).delete_collection(label_selector="a=b")
