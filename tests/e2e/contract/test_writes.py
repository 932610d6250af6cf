"""Writes and their options, patches of two states, and extraction, on an embedded and on a real server."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.observed import observe
from trioformer.client import Api, Client
from trioformer.errors import (
    AlreadyExistsError,
    ApplyConflictError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
    StatusError,
)
from trioformer.models import ObjectMeta, Unstructured, extract, from_dict, to_dict
from trioformer.models.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus
from trioformer.models.core_v1 import ConfigMap

PRESERVED = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def config_map(name: str = "a", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    return {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


async def stored(api: Api[ConfigMap], name: str = "a") -> Any:
    return to_dict(await api.get(name)).get("data")


# --- dry run ---


async def test_a_dry_run_of_each_write_stores_nothing(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    made = await api.create(config_map(k="1"), dry_run=True)
    assert made.uid
    assert not await api.exists("a")
    old = await api.create(config_map(k="1"))
    changed = old.evolve(data={"k": "2"})
    assert (await api.replace(changed, dry_run=True)).data == {"k": "2"}
    assert (await api.patch("a", {"data": {"k": "3"}}, dry_run=True)).data == {"k": "3"}
    assert (await api.update(old, changed, dry_run=True)).data == {"k": "2"}
    assert (await api.update_with_retry("a", lambda read: read.evolve(data={"k": "4"}), dry_run=True)).data == {
        "k": "4"
    }
    await api.delete("a", dry_run=True)
    assert (await api.get("a")).resource_version == old.resource_version


async def test_a_dry_run_fails_as_the_write_would(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await api.create(config_map(k="1"))
    with pytest.raises(AlreadyExistsError):
        await api.create(config_map(), dry_run=True)
    with pytest.raises(NotFoundError):
        await api.delete("b", dry_run=True)
    with pytest.raises(ConflictError):
        await api.delete("a", dry_run=True, uid="another")


# --- field validation ---


async def test_strict_validation_refuses_unknown_fields(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    await api.create(from_dict(Deployment, deployment()))
    wrong = from_dict(Deployment, deployment(unknown=1))
    for write in (api.create, api.replace):
        with pytest.raises(BadRequestError, match=r'strict decoding error: unknown field "spec\.unknown"'):
            await write(wrong, field_validation="Strict")
    with pytest.raises(InvalidError, match=r'strict decoding error: unknown field "spec\.unknown"'):
        await api.patch("web", {"spec": {"unknown": 1}}, field_validation="Strict")


async def test_unknown_fields_of_a_built_in_kind_are_never_applied(server_client: Client, namespace: str) -> None:
    with pytest.raises(StatusError, match=r"\.spec\.unknown: field not declared in schema"):
        await server_client.api(Deployment, namespace).apply(deployment(unknown=1), field_manager="me")


# --- managers, apply and extraction ---


def managers(obj: ConfigMap | Deployment) -> list[tuple[str | None, str | None]]:
    return [(entry.manager, entry.operation) for entry in obj.metadata.managed_fields]


async def test_each_write_is_recorded_under_its_manager(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    old = await api.create(config_map(k="1"), field_manager="creator")
    replaced = await api.replace(old.evolve(data={"k": "2"}), field_manager="replacer")
    updated = await api.update(replaced, replaced.evolve(data={"k": "2", "l": "1"}), field_manager="updater")
    assert ("updater", "Update") in managers(updated)
    applied = await api.apply(config_map(m="1"), field_manager="applier")
    assert ("applier", "Apply") in managers(applied)
    assert applied.data == {"k": "2", "l": "1", "m": "1"}


async def test_a_conflict_names_manager_and_field_and_force_takes_it(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await api.create(config_map(a="1"), field_manager="creator")
    with pytest.raises(ApplyConflictError) as caught:
        await api.apply(config_map(a="2"), field_manager="me")
    (conflict,) = caught.value.conflicts
    assert (conflict.manager, conflict.field) == ("creator", ".data.a")
    assert str(caught.value).startswith(f"apply configmaps/a in namespace {namespace}: Apply failed with 1 conflict: ")
    forced = await api.apply(config_map(a="2"), field_manager="me", force=True)
    assert forced.data == {"a": "2"}
    assert extract(forced, field_manager="me").data == {"a": "2"}


async def test_what_was_applied_is_extracted_and_applied_again(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    applied = await api.apply(deployment(replicas=0), field_manager="me")
    await api.patch("web", {"metadata": {"labels": {"other": "1"}}}, field_manager="other")
    mine = extract(await api.get("web"), field_manager="me")
    # only what was applied, without defaults and what others have set
    assert to_dict(mine) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": deployment(replicas=0)["spec"],
    }
    again = await api.apply(mine, field_manager="me")
    assert (again.spec, again.metadata.generation) == (applied.spec, applied.metadata.generation)
    scaled = await api.apply(mine.evolve(spec=mine.spec.evolve(replicas=3)), field_manager="me")
    assert (scaled.spec.replicas, scaled.metadata.labels) == (3, {"other": "1"})


async def test_a_status_is_applied_to_its_subresource(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    await api.apply(deployment(), field_manager="me")
    condition = DeploymentCondition(type="Available", status="True", reason="R", message="m")
    status = Deployment(metadata=ObjectMeta(name="web"), status=DeploymentStatus(conditions=(condition,)))
    applied = await api.apply(status, field_manager="me", subresource="status")
    assert [each.type for each in applied.status.conditions] == ["Available"]
    mine = to_dict(extract(applied, field_manager="me", subresource="status"))
    expected = {"type": "Available", "status": "True", "reason": "R", "message": "m"}
    assert mine["status"] == {"conditions": [expected]}


async def test_an_explicit_empty_map_is_owned(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    applied = await api.apply(ConfigMap(metadata=ObjectMeta(name="a", labels={}), data={}), field_manager="me")
    (entry,) = applied.metadata.managed_fields
    assert entry.fields_v1 == {"f:data": {}, "f:metadata": {"f:labels": {}}}


async def test_an_object_with_a_version_is_applied_only_to_that_version(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    old = await api.apply(config_map(a="1"), field_manager="me")
    await api.patch("a", {"data": {"b": "1"}})
    metadata = ObjectMeta(name="a", resource_version=old.resource_version)
    with pytest.raises(ConflictError) as caught:
        await api.apply(ConfigMap(metadata=metadata, data={"a": "2"}), field_manager="me")
    assert not isinstance(caught.value, ApplyConflictError)


TEXTS = [
    *("\x7f", "\x80\x85\x9f", "a\u2028b\u2029c", "\ufeff", "\ufffe\uffff", "\U0001f600", "\x00\x01\t\n\r\x1b"),
    *(" : # {a} [b] 'c' \"d\" \\ & * ! | > % @ `", "yes", "1e3", "ä" * 70_000),
]


async def test_texts_are_applied_as_they_are(server_client: Client, namespace: str) -> None:
    """The body of an apply is YAML for a server."""
    api = server_client.api(ConfigMap, namespace)
    for text in TEXTS:
        wanted = ConfigMap(metadata=ObjectMeta(name="a", annotations={"text": text}), data={"text": text})
        applied = await api.apply(wanted, field_manager="tester")
        assert (applied.data["text"], applied.metadata.annotations["text"]) == (text, text)


# --- patches of two states ---


async def test_update_removes_what_the_new_state_has_not(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    labelled = config_map(a="1", b="2").evolve(metadata=ObjectMeta(name="a", labels={"x": "1", "y": "2"}))
    old = await api.create(labelled)
    await api.patch("a", {"data": {"other": "3"}})
    new = old.evolve(metadata=old.metadata.evolve(labels={"y": "2"}), data={"b": "3"})
    updated = await api.update(old, new)
    assert (updated.data, updated.metadata.labels) == ({"b": "3", "other": "3"}, {"y": "2"})
    assert await api.update(updated, updated, optimistic_lock=True) is updated
    with pytest.raises(ConflictError):
        await api.update(old, new, optimistic_lock=True)


async def test_update_status_clears_fields(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    made = await api.create(from_dict(Deployment, deployment()))
    conditions = (DeploymentCondition(type="Available", status="True", message="m"),)
    old = await api.update_status(made, made.evolve(status=DeploymentStatus(replicas=1, conditions=conditions)))
    assert (old.status.replicas, old.status.conditions[0].message) == (1, "m")
    new = await api.update_status(old, old.evolve(status=DeploymentStatus(conditions=()), spec=made.spec))
    assert (new.status.replicas, new.status.conditions) == (None, ())
    with pytest.raises(ConflictError):
        await api.update_status(old, old.evolve(status=DeploymentStatus(replicas=2)), optimistic_lock=True)


async def test_update_status_of_a_custom_kind_clears_fields(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client, subresources={"status": {}}) as widget:
        api = server_client.api(widget, namespace)
        made = await api.create(widget.of({"metadata": {"name": "a"}, "spec": {"size": 1}}))
        old = await api.update_status(made, made.merge({"status": {"phase": "x", "list": [1], "part": {"a": 1}}}))
        new = await api.update_status(old, old.merge({"status": {"phase": None, "part": {"a": None, "b": 2}}}))
        assert (new["status"], new["spec"]) == ({"list": (1,), "part": {"b": 2}}, {"size": 1})


async def test_update_status_never_changes_an_object_that_was_created_anew(
    server_client: Client, namespace: str
) -> None:
    api = server_client.api(Deployment, namespace)
    old = await api.create(from_dict(Deployment, deployment()))
    await api.delete("web", propagation_policy="Background")
    new = await api.create(from_dict(Deployment, deployment()))
    with pytest.raises(ConflictError, match=f"the current object has uid {new.uid}"):
        await api.update_status(old, old.evolve(status=DeploymentStatus(replicas=1)))
    assert await api.get("web") == new


async def test_update_status_never_changes_a_custom_object_that_was_created_anew(
    server_client: Client, namespace: str
) -> None:
    async with serve_kind(server_client, subresources={"status": {}}) as widget:
        api = server_client.api(widget, namespace)
        made = widget.of({"metadata": {"name": "a"}, "spec": {"size": 1}})
        old = await api.create(made)
        await api.delete("a")
        new = await api.create(made)
        with pytest.raises(ConflictError, match=f"the current object has uid {new.uid}"):
            await api.update_status(old, old.merge({"status": {"phase": "x"}}))
        assert await api.get("a") == new
        await api.patch("a", {"metadata": {"labels": {"a": "b"}}})
        written = await api.update_status(new, new.merge({"status": {"phase": "y"}}))
        assert (written["status"], written.metadata.labels) == ({"phase": "y"}, {"a": "b"})


async def test_a_uid_in_a_patch_limits_it_unless_it_is_of_the_status_of_a_custom_object(
    server_client: Client, namespace: str
) -> None:
    async with serve_kind(server_client, subresources={"status": {}}) as widget:
        api, deployments = server_client.api(widget, namespace), server_client.api(Deployment, namespace)
        await api.create(widget.of({"metadata": {"name": "a"}, "spec": {"size": 1}}))
        await deployments.create(from_dict(Deployment, deployment()))
        other = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000", "labels": {"a": "b"}}}
        for patch in (
            api.patch("a", other),
            deployments.patch("web", other),
            deployments.patch("web", other, subresource="status"),
        ):
            with pytest.raises(InvalidError, match=r"metadata\.uid: Invalid value: .* field is immutable"):
                await patch
        written = await api.patch("a", {**other, "status": {"phase": "x"}}, subresource="status")
        assert (written["status"], written.metadata.labels) == ({"phase": "x"}, {})


async def test_concurrent_changes_are_all_made(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await api.create(config_map(n="0"))

    def add_one(old: ConfigMap) -> ConfigMap:
        return old.evolve(data={"n": str(int(old.data["n"]) + 1)})

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(lambda: api.update_with_retry("a", add_one, tries=20))
    assert await stored(api) == {"n": "4"}


# --- reads that may find nothing, and writes by the client alone ---


async def test_an_object_that_may_be_missing(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    assert await api.get_or_none("a") is None
    assert not await api.exists("a")
    made = await api.create(config_map(a="1"))
    assert await api.exists(made)
    found = await api.get_or_none("a")
    assert found is not None
    assert found.data == {"a": "1"}
    assert await server_client.api(ConfigMap, f"{namespace}-none").get_or_none("a") is None


async def test_a_client_writes_objects_that_say_their_kind(server_client: Client, namespace: str) -> None:
    made = await server_client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace), data={"a": "1"}))
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
    applied = await server_client.apply({**manifest, "data": {"e": "5"}}, field_manager="me")
    assert isinstance(applied, ConfigMap)
    assert applied.data == {"a": "1", "e": "5"}
    await server_client.delete(applied, uid=made.uid)
    with pytest.raises(NotFoundError):
        await server_client.delete(applied)


# --- the server's words, which this library reads ---


async def test_the_server_names_several_conflicts(server_client: Client, namespace: str) -> None:
    api = server_client.api(Deployment, namespace)
    await api.apply(deployment(replicas=1), field_manager='the "first"')
    await api.patch("web", {"metadata": {"labels": {"l": "1"}}}, field_manager="second")
    manifest = deployment(replicas=2)
    manifest["metadata"]["labels"] = {"l": "2"}
    with pytest.raises(ApplyConflictError) as caught:
        await api.apply(manifest, field_manager="me")
    assert sorted((each.manager, each.field) for each in caught.value.conflicts) == [
        ("second", ".metadata.labels.l"),
        ('the "first"', ".spec.replicas"),
    ]
    assert re.search("Apply failed with 2 conflicts?: ", str(caught.value))


async def test_unstructured_objects_are_applied(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client, PRESERVED) as widget:
        api: Api[Unstructured] = server_client.api(widget, namespace)
        applied = await api.apply(widget.of({"metadata": {"name": "a"}, "spec": {"size": 0}}), field_manager="me")
        assert applied["spec"] == {"size": 0}
        assert to_dict(extract(applied, field_manager="me"))["spec"] == {"size": 0}


async def observed_apply(client: Client, path: str, body: Any, **params: str) -> dict[str, Any]:
    return await observe(client, "PATCH", path, body, content_type="application/apply-patch+yaml", **params)


async def test_an_immutable_config_map_is_not_changed(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await api.create(config_map(k="1").evolve(immutable=True))
    with pytest.raises(InvalidError) as refused:
        await api.patch("a", {"data": {"k": "2"}, "immutable": None})
    assert [one.field for one in refused.value.details.causes] == ["immutable", "data"]
    assert (await api.patch("a", {"metadata": {"labels": {"l": "v"}}})).metadata.labels == {"l": "v"}


async def test_what_is_applied_has_a_name(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/g"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g"}}
    found = await observed_apply(server_client, path, body, fieldManager="m")
    problem = "the name of the object (g based on URL) was undeterminable: name must be provided"
    assert found == {"code": 400, "message": problem}


async def test_a_version_that_is_no_number_is_an_error(server_client: Client, namespace: str) -> None:
    await server_client.api(ConfigMap, namespace).create(config_map(k="1"))
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "abc"}}
    found = await observe(server_client, "PUT", path, body)
    assert found == {"code": 500, "message": 'strconv.ParseUint: parsing "abc": invalid syntax'}


async def test_a_status_is_not_applied_as_null(server_client: Client, namespace: str) -> None:
    number = {"type": "object", "properties": {"n": {"type": "number"}}}
    schema = {"type": "object", "properties": {"spec": number, "status": number}}
    async with serve_kind(server_client, schema, subresources={"status": {}}) as kind:
        info = kind.__resource__
        path = f"/apis/{info.api_version}/namespaces/{namespace}/{info.plural}/w"
        body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": "w"}}
        made = await server_client.api(kind, namespace).create(kind.of({**body, "spec": {"n": 1}}))
        one = path + "/status"
        assert (await observed_apply(server_client, one, {**body, "status": {"n": 1}}, fieldManager="m"))["code"] == 200
        found = await observed_apply(server_client, one, {**body, "status": None}, fieldManager="m")
        assert found["code"] == 422
        assert "must be of type object" in found["causes"][0]
        # Equal numbers are no other state.
        content = b'{"apiVersion":"%s","kind":"%s","metadata":{"name":"w"},"spec":{"n":1.0}}' % (
            info.api_version.encode(),
            info.kind.encode(),
        )
        assert (await observed_apply(server_client, path, content, fieldManager="m"))["code"] == 200
        assert (await server_client.api(kind, namespace).get("w")).metadata.generation == made.metadata.generation
