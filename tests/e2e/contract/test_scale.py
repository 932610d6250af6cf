"""The scale of workloads and of custom kinds, on an embedded and on a real server."""

from __future__ import annotations

import pytest

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.observed import observe
from tests.e2e.workloads import deployment
from trioformer.client import Client
from trioformer.errors import ConflictError, InternalServerError, InvalidError, NotFoundError, StatusError
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.autoscaling_v1 import Scale, ScaleSpec
from trioformer.models.core_v1 import ConfigMap

PATHS = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.size.count",
        "statusReplicasPath": ".status.running",
        "labelSelectorPath": ".status.selector",
    },
}


async def test_a_deployment_is_scaled_and_its_scale_replaced(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    made = await api.create(deployment("web", replicas=2))
    scale = await api.scale("web", 3)
    assert (type(scale), scale.spec.replicas, scale.metadata.name) == (Scale, 3, "web")
    assert (await api.scale(made, 0)).spec.replicas == 0
    with pytest.raises(ConflictError):
        await api.scale("web", 1, resource_version=made.resource_version)
    with pytest.raises(InvalidError, match=r"Scale\.autoscaling \"web\" is invalid: spec\.replicas"):
        await api.scale("web", -1)
    replaced = await api.replace_subresource("web", "scale", Scale(spec=ScaleSpec(replicas=4)))
    assert (replaced.spec.replicas, replaced.status.replicas) == (4, 0)
    with pytest.raises(ConflictError):
        await api.replace_subresource("web", "scale", scale)
    assert (await api.get("web")).spec.replicas == 4
    with pytest.raises(NotFoundError):
        await api.scale("other", 1)
    with pytest.raises(NotFoundError):
        await server_client.api(ConfigMap, namespace).scale("web", 1)


async def test_every_type_of_patch_of_a_scale_returns_the_scale(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    await api.create(deployment("web", replicas=2))
    scale = await api.patch("web", {"spec": {"replicas": 3}}, subresource="scale")
    assert (type(scale), scale.spec.replicas) == (Scale, 3)
    strategic = await api.patch("web", {"spec": {"replicas": 0}}, patch_type="strategic", subresource="scale")
    assert strategic.spec.replicas == 0
    operations = [{"op": "add", "path": "/spec/replicas", "value": 5}]
    assert (await api.patch("web", operations, patch_type="json", subresource="scale")).spec.replicas == 5
    assert (await api.get("web")).spec.replicas == 5
    stale = {"metadata": {"resourceVersion": scale.metadata.resource_version}, "spec": {"replicas": 1}}
    with pytest.raises(ConflictError):
        await api.patch("web", stale, subresource="scale")


async def test_a_dry_run_scales_nothing(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    await api.create(deployment("web", replicas=2))
    assert (await api.scale("web", 5, dry_run=True)).spec.replicas == 5
    assert (await api.get("web")).spec.replicas == 2


async def test_the_selector_of_a_scale_has_labels_and_expressions(server_client: Client, namespace: str) -> None:
    expression = {"key": "tier", "operator": "In", "values": ["z", "y"]}
    labels = {"app": "web", "tier": "z"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [expression]}
    api = server_client.api(Deployment, namespace)
    spec = {"replicas": 1, "selector": selector, "template": template}
    await api.create(from_dict(Deployment, {"metadata": {"name": "web"}, "spec": spec}))
    assert (await api.get("web", subresource="scale")).status.selector == "app=web,tier in (y,z)"


async def test_a_custom_kind_is_scaled_by_the_paths_of_its_definition(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client, subresources=PATHS) as widget:
        api = server_client.api(widget, namespace)
        await api.create(widget.of({"metadata": {"name": "w"}, "spec": {"size": {"count": 2}}}))
        status = {"status": {"running": 1, "selector": "app=web"}}
        await api.patch("w", status, subresource="status")
        scale = await api.get("w", subresource="scale")
        assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 1, "app=web")
        assert (await api.scale("w", 7)).spec.replicas == 7
        assert (await api.get("w"))["spec"] == {"size": {"count": 7}}
        with pytest.raises(InvalidError, match=r"\.spec\.size\.count: Invalid value: -1: should be a non-negative"):
            await api.scale("w", -1)
        for count, problem in ((-1, "non-negative"), (2**31, "less than or equal to 2147483647")):
            with pytest.raises(
                InvalidError, match=rf"\.spec\.size\.count: Invalid value: {count}: should be .*{problem}"
            ):
                await api.patch("w", {"spec": {"size": {"count": count}}})
        with pytest.raises(InvalidError, match=r"\.status\.running: Invalid value: -1: should be a non-negative"):
            await api.patch("w", {"status": {"running": -1}}, subresource="status")
        with pytest.raises(StatusError) as refused:
            await api.patch("w", {"spec": {"replicas": 5}}, patch_type="strategic", subresource="scale")
        assert refused.value.code == 415
        wanted = Scale(metadata=ObjectMeta(name="w"), spec=ScaleSpec(replicas=0))
        assert (await api.replace_subresource("w", "scale", wanted)).spec.replicas == 0
        assert (await api.get("w"))["spec"] == {"size": {"count": 0}}


async def test_a_custom_object_without_replicas_has_no_scale_until_it_is_scaled(
    server_client: Client, namespace: str
) -> None:
    async with serve_kind(server_client, subresources=PATHS) as widget:
        api = server_client.api(widget, namespace)
        await api.create(widget.of({"metadata": {"name": "w"}, "spec": {}}))
        with pytest.raises(InternalServerError, match=r'the spec replicas field "\.spec\.size\.count" does not exist'):
            await api.get("w", subresource="scale")
        assert (await api.scale("w", 3)).spec.replicas == 3


async def test_a_scale_is_applied_and_its_replicas_are_owned(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    made = await api.create(deployment("web", replicas=2))
    wanted = Scale(spec=ScaleSpec(replicas=4))
    with pytest.raises(ConflictError, match=r"\.spec\.replicas"):
        await api.apply_subresource("web", "scale", wanted, field_manager="scaler")
    applied = await api.apply_subresource("web", "scale", wanted, field_manager="scaler", force=True)
    assert (applied.spec.replicas, applied.metadata.uid) == (4, made.uid)
    found = await api.get("web")
    assert found.spec.replicas == 4
    owners = [(one.manager, one.operation, one.subresource) for one in found.metadata.managed_fields]
    assert ("scaler", "Apply", "scale") in owners
    assert (await api.apply_subresource("web", "scale", wanted, field_manager="scaler")).spec.replicas == 4
    with pytest.raises(NotFoundError):
        await api.apply_subresource("other", "scale", wanted, field_manager="scaler")
    with pytest.raises(ValueError, match="requires a field manager"):
        await api.apply_subresource("web", "scale", wanted)


async def test_who_scales_is_a_manager_of_the_replicas(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    await api.create(deployment("web", replicas=2))
    await api.scale("web", 3, field_manager="scaler")
    entries = (await api.get("web")).metadata.managed_fields
    assert [(one.operation, one.subresource) for one in entries if one.manager == "scaler"] == [("Update", "scale")]


async def test_replicas_that_nobody_owns_get_no_owner_by_scaling(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    applied = to_dict(deployment("web", replicas=2))
    del applied["spec"]["replicas"]
    await api.apply(from_dict(Deployment, applied), field_manager="applier")
    await api.scale("web", 3, field_manager="scaler")
    found = await api.get("web")
    assert (found.spec.replicas, [one.manager for one in found.metadata.managed_fields]) == (3, ["applier"])
    await api.apply_subresource("web", "scale", Scale(spec=ScaleSpec(replicas=3)), field_manager="hpa")
    managers = {(one.manager, one.subresource or "") for one in (await api.get("web")).metadata.managed_fields}
    assert managers == {("applier", ""), ("before-first-apply", "scale"), ("hpa", "scale")}


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"spec": {"replicas": "x"}}, "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas"),
        ({"spec": 3}, "json: cannot unmarshal number into Go struct field Scale.spec of type v1.ScaleSpec"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, 'Deployment in version "v1" cannot be handled as a Scale'),
        ({"kind": "Deployment"}, 'no kind "Deployment" is registered for version "autoscaling/v1"'),
    ],
    ids=str,
)
async def test_an_object_that_is_not_a_scale_is_refused(
    server_client: Client, namespace: str, wrong: dict[str, object], problem: str
) -> None:
    await server_client.api(Deployment, namespace).create(deployment("web", replicas=2))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web/scale"
    found = await observe(server_client, "PUT", path, scale | wrong)
    assert found["code"] == 400
    assert problem in found["message"]
    patched = await observe(server_client, "PATCH", path, {"spec": True}, content_type="application/merge-patch+json")
    assert patched["code"] == 422
    assert (await server_client.api(Deployment, namespace).get("web")).spec.replicas == 2


COUNTED = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
        "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
}
SCALED = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}


async def test_the_scale_of_a_custom_kind_cannot_be_applied(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client, COUNTED, subresources=SCALED) as widget:
        api = server_client.api(widget, namespace)
        await api.create(widget.of({"metadata": {"name": "w"}, "spec": {"n": 2}}))
        wanted = Scale(spec=ScaleSpec(replicas=4))
        with pytest.raises(ConflictError, match=r": \.spec\.replicas"):
            await api.apply_subresource("w", "scale", wanted, field_manager="scaler")
        with pytest.raises(InternalServerError, match="request to convert CR to an invalid group/version"):
            await api.apply_subresource("w", "scale", wanted, field_manager="scaler", force=True)
        assert (await api.get("w"))["spec"] == {"n": 2}


async def test_a_scale_below_0_breaks_the_rules_of_both_kinds(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client, COUNTED, subresources=SCALED) as widget:
        api = server_client.api(widget, namespace)
        await api.create(widget.of({"metadata": {"name": "w"}, "spec": {"n": 2}}))
        with pytest.raises(InvalidError) as refused:
            await api.scale("w", -4)
    assert [cause.field for cause in refused.value.details.causes] == ["spec.n", ".spec.n"]
