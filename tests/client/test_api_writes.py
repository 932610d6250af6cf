"""What writes send: apply, dry run, field validation, field managers, and all that a program has given."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeAlias
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest

from tests.client.test_api import CONFIG, POD
from tests.support.scripted_http import InMemory, response
from trioformer.client import Api, open_client
from trioformer.errors import ApplyConflictError, ConflictError
from trioformer.errors._status import FieldConflict
from trioformer.models import (
    KubernetesObject,
    Model,
    ObjectMeta,
    ResourceInfo,
    extract,
    from_dict,
    metadata_kind,
    to_dict,
)
from trioformer.models.apps_v1 import Deployment, DeploymentSpec
from trioformer.models.core_v1 import Container, Node, Pod, PodSpec, PodTemplateSpec

Call: TypeAlias = Callable[[Api[Pod]], Awaitable[object]]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SiteSpec(Model):
    """A part of a custom kind."""

    replicas: int = 1
    hosts: tuple[str, ...] = ("example.com",)
    template: PodTemplateSpec | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Site(KubernetesObject):
    """A custom kind; each object has a spec of its own."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Site", plural="sites", namespaced=True
    )

    spec: SiteSpec = attrs.field(factory=lambda: SiteSpec(replicas=2))


def pod(**metadata: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name="web-0", **metadata))


async def requested(call: Call, *, reply: str = POD, **options: Any) -> tuple[str, dict[str, list[str]], Any]:
    """Return method and path, the query and the body of the one request that a call sends."""
    transport = InMemory([response(200, reply)])
    async with open_client(CONFIG, http_transport=transport, **options) as client:
        await call(client.api(Pod, "shop"))
    (request,), (target,) = transport.requests, transport.targets
    url = urlsplit(target)
    return url.path, parse_qs(url.query), json.loads(request.content) if request.content else None


async def body_of(obj: KubernetesObject, write: str, **options: Any) -> Any:
    reply = {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": {"name": obj.name, "namespace": "shop"}}
    transport = InMemory([response(200, json.dumps(reply))])
    async with open_client(CONFIG, http_transport=transport) as client:
        await getattr(client.api(type(obj), "shop"), write)(obj, **options)
    return json.loads(transport.requests[0].content)


WRITES: dict[str, Callable[..., Call]] = {
    "create": lambda **given: lambda api: api.create(pod(), **given),
    "replace": lambda **given: lambda api: api.replace(pod(), **given),
    "replace_status": lambda **given: lambda api: api.replace_status(pod(), **given),
    "patch": lambda **given: lambda api: api.patch("web-0", {}, **given),
    "apply": lambda obj=None, **given: lambda api: api.apply(pod() if obj is None else obj, **given),
}


async def test_every_write_has_dry_run_validation_and_manager_as_parameters() -> None:
    for write in WRITES:
        _, query, _ = await requested(WRITES[write](dry_run=True, field_validation="Strict", field_manager="me"))
        assert query == {"dryRun": ["All"], "fieldValidation": ["Strict"], "fieldManager": ["me"]}


async def test_the_manager_of_the_client_is_that_of_every_write() -> None:
    for write in WRITES:
        _, query, _ = await requested(WRITES[write](), field_manager="deployer")
        assert query == {"fieldManager": ["deployer"]}
        _, query, _ = await requested(WRITES[write](field_manager="other"), field_manager="deployer")
        assert query == {"fieldManager": ["other"]}


async def test_a_field_manager_that_no_server_accepts_is_a_value_error() -> None:
    for manager in [
        "",
        "x" * 129,
        "a\nb",
    ]:
        with pytest.raises(ValueError, match="a field manager must"):
            await requested(WRITES["create"](field_manager=manager))


async def test_the_manager_of_a_client_is_checked_when_it_is_opened() -> None:
    with pytest.raises(ValueError, match=r"^a field manager must be 1 to 128 printable characters"):
        async with open_client(CONFIG, field_manager=""):
            pytest.fail("the client is open")


# --- apply ---


async def test_apply_sends_what_was_given_to_the_object() -> None:
    transport = InMemory([response(201, POD), response(200, POD)])
    async with open_client(CONFIG, http_transport=transport) as client:
        api = client.api(Pod, "shop")
        assert (await api.apply(pod(labels={"a": "b"}), field_manager="me")).resource_version == "7"
        await api.apply(pod(), field_manager="me", force=True, subresource="status")
    first, second = transport.requests
    assert transport.targets == [
        "PATCH /api/v1/namespaces/shop/pods/web-0?fieldManager=me",
        "PATCH /api/v1/namespaces/shop/pods/web-0/status?fieldManager=me&force=true",
    ]
    assert first.headers["content-type"] == "application/apply-patch+yaml"
    metadata = {"name": "web-0", "labels": {"a": "b"}}
    assert json.loads(first.content) == {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    assert json.loads(second.content) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}}


async def test_apply_without_any_manager_says_where_to_name_one() -> None:
    with pytest.raises(ValueError, match="requires a field manager"):
        await requested(WRITES["apply"]())


async def test_a_read_object_without_managed_fields_is_not_applied() -> None:
    stored = {"name": "web-0", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    cached = from_dict(Pod, {"metadata": stored})
    with pytest.raises(ValueError, match=r"^<Pod web-0 at 7> was read from a server"):
        await requested(lambda api: api.apply(cached, field_manager="me"))
    with pytest.raises(ValueError, match="was read from a server"):
        await requested(lambda api: api.apply(to_dict(cached), field_manager="me"))


async def test_what_is_extracted_is_applied_also_with_preconditions() -> None:
    entry = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}
    stored = {"name": "web-0", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    read = from_dict(Pod, {"metadata": {**stored, "labels": {"a": "b"}, "managedFields": [entry]}})
    mine = extract(read, field_manager="me")
    guarded = mine.evolve(metadata=mine.metadata.evolve(uid=read.uid, resource_version="7"))
    _, _, body = await requested(lambda api: api.apply(guarded, field_manager="me"))
    metadata = {"name": "web-0", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    assert body == {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


async def test_only_metadata_is_patched_and_not_applied() -> None:
    transport = InMemory([])
    async with open_client(CONFIG, http_transport=transport) as client:
        kind = metadata_kind(Pod)
        with pytest.raises(
            TypeError, match="contains only metadata, so it cannot be created, replaced or applied; patch it"
        ):
            await client.api(kind, "shop").apply(kind(metadata=ObjectMeta(name="a")), field_manager="me")


async def test_a_mapping_is_applied_as_it_is() -> None:
    spec = {"containers": [], "nodeSelector": {}, "unknown": None, "priority": 0}
    manifest = {"metadata": {"name": "web-0"}, "spec": spec}
    _, _, body = await requested(lambda api: api.apply(manifest, field_manager="me"))
    assert body == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}, "spec": spec}


async def test_a_mapping_of_another_kind_is_not_applied() -> None:
    for given in ({"apiVersion": "v2"}, {"kind": "Node"}):
        with pytest.raises(TypeError, match=r"^the (apiVersion|kind) of the mapping must be (v1|Pod)"):
            await requested(WRITES["apply"](given, field_manager="me"))


# --- what the program has given, and what it has not ---


async def test_explicit_empties_and_zeros_reach_the_server() -> None:
    for write in ["create", "replace", "apply"]:
        template = PodTemplateSpec(
            spec=PodSpec(containers=(Container(name="a", args=(), tty=False),), node_selector={})
        )
        spec = DeploymentSpec(replicas=0, template=template)
        obj = Deployment(metadata=ObjectMeta(name="web", labels={}, finalizers=()), spec=spec)
        sent = await body_of(obj, write, field_manager="me")
        assert sent["metadata"] == {"name": "web", "labels": {}, "finalizers": []}
        containers = [{"name": "a", "args": [], "tty": False}]
        assert sent["spec"] == {"replicas": 0, "template": {"spec": {"containers": containers, "nodeSelector": {}}}}


async def test_a_default_that_a_factory_makes_is_created_but_not_applied() -> None:
    site = Site(metadata=ObjectMeta(name="a"))
    assert (await body_of(site, "create"))["spec"] == {"replicas": 2}
    assert "spec" not in await body_of(site, "apply", field_manager="me")


async def test_a_field_that_was_emptied_in_an_object_that_was_read_is_sent_empty() -> None:
    read = from_dict(Node, {"metadata": {"name": "a", "labels": {"x": "y"}, "uid": "u"}, "spec": {"taints": [{}]}})
    emptied = read.metadata.evolve(labels={}, annotations={})
    obj = read.evolve(metadata=emptied, spec=read.spec.evolve(taints=()))
    transport = InMemory([response(200, json.dumps({"kind": "Node", "metadata": {"name": "a"}}))])
    async with open_client(CONFIG, http_transport=transport) as client:
        await client.api(Node).replace(obj)
    sent = json.loads(transport.requests[0].content)
    assert sent["metadata"] == {"name": "a", "labels": {}, "annotations": {}, "uid": "u"}
    assert sent["spec"] == {"taints": []}


# --- conflicts ---


CAUSES = [
    ('conflict with "kubectl" using apps/v1', ".spec.replicas"),
    ('conflict with "h\\"p\\\\a" with subresource "scale" using v1 at 2026-01-02T03:04:05Z', ".spec.replicas"),
    ("conflict in a text of the future", ".spec.x"),
]


async def test_a_conflict_names_each_manager_and_field() -> None:
    causes = [{"reason": "FieldManagerConflict", "message": message, "field": field} for message, field in CAUSES]
    details = {"causes": [*causes, {"reason": "Other", "message": "m"}]}
    status = {
        "kind": "Status",
        "status": "Failure",
        "code": 409,
        "reason": "Conflict",
        "message": "Apply failed",
    }
    transport = InMemory([response(409, json.dumps({**status, "details": details}))])
    async with open_client(CONFIG, http_transport=transport) as client:
        with pytest.raises(ApplyConflictError) as caught:
            await client.api(Pod, "shop").apply(pod(), field_manager="me")
    first, second, third = caught.value.conflicts
    assert first == FieldConflict("kubectl", ".spec.replicas", "", CAUSES[0][0])
    assert (second.manager, second.subresource) == ('h"p\\a', "scale")
    assert third == FieldConflict("", ".spec.x", "", CAUSES[2][0])
    assert str(caught.value) == (
        "apply pods/web-0 in namespace shop: Apply failed (HTTP 409, Conflict); "
        "leave the fields out, apply their values, or take them with force=True"
    )


async def test_a_conflict_of_versions_is_no_conflict_of_managers() -> None:
    status = {"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": "modified"}
    transport = InMemory([response(409, json.dumps(status))])
    async with open_client(CONFIG, http_transport=transport) as client:
        with pytest.raises(ConflictError) as caught:
            await client.api(Pod, "shop").apply(pod(resource_version="1"), field_manager="me")
    assert type(caught.value) is ConflictError
