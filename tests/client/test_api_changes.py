"""Patches of two states, and changes that are repeated after a conflict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.client.test_api import CONFIG
from tests.support.scripted_http import InMemory, response
from trioformer.client import Client, open_client
from trioformer.errors import ConflictError, NotFoundError
from trioformer.models import ObjectMeta, ResourceInfo, from_dict, to_dict
from trioformer.models.apps_v1 import Deployment, DeploymentStatus
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "labels": {"a": "1", "b": "2"}},
    "spec": {"replicas": 2, "paused": True},
    "status": {"replicas": 2, "conditions": [{"type": "Available", "status": "True"}], "unknown": 1},
}


def deployment() -> Deployment:
    return from_dict(Deployment, DEPLOYMENT)


def changed() -> Deployment:
    old = deployment()
    return old.evolve(
        metadata=old.metadata.evolve(labels={"a": "1"}),
        spec=old.spec.evolve(replicas=3, paused=None),
        status=DeploymentStatus(replicas=3),
    )


async def sent_by(write: Callable[..., Any], **options: Any) -> tuple[str, Any]:
    transport = InMemory([response(200, json.dumps(DEPLOYMENT))])
    async with open_client(CONFIG, http_transport=transport) as client:
        await write(client.api(Deployment, "shop"), **options)
    (request,), (target,) = transport.requests, transport.targets
    assert request.headers["content-type"] == "application/merge-patch+json"
    return target, json.loads(request.content)


async def test_update_sends_what_differs_and_nulls_for_what_is_gone() -> None:
    target, body = await sent_by(lambda api: api.update(deployment(), changed(), field_manager="me", dry_run=True))
    assert target == "PATCH /apis/apps/v1/namespaces/shop/deployments/web?fieldManager=me&dryRun=All"
    assert body == {"metadata": {"labels": {"b": None}}, "spec": {"replicas": 3, "paused": None}}


async def test_update_status_sends_only_the_status() -> None:
    target, body = await sent_by(lambda api: api.update_status(deployment(), changed()))
    assert target == "PATCH /apis/apps/v1/namespaces/shop/deployments/web/status"
    assert body == {"status": {"replicas": 3, "conditions": None, "unknown": None}}


async def test_an_optimistic_lock_sends_the_version_of_the_old_state() -> None:
    new = changed().evolve(metadata=ObjectMeta(name="web", namespace="shop", resource_version="99"))
    _, body = await sent_by(lambda api: api.update(deployment(), new, optimistic_lock=True))
    assert body["metadata"] == {"labels": None, "resourceVersion": "7"}
    _, body = await sent_by(lambda api: api.update_status(deployment(), changed(), optimistic_lock=True))
    assert body["metadata"] == {"resourceVersion": "7"}


async def test_update_status_sends_the_identity_of_the_old_state() -> None:
    old = deployment()
    old = old.evolve(metadata=old.metadata.evolve(uid="u"))
    _, body = await sent_by(lambda api: api.update_status(old, old.evolve(status=DeploymentStatus(replicas=3))))
    assert body["metadata"] == {"uid": "u", "resourceVersion": "7"}


async def test_nothing_is_sent_if_nothing_differs() -> None:
    for write in ["update", "update_status"]:
        transport = InMemory([])
        async with open_client(CONFIG, http_transport=transport) as client:
            old = deployment()
            same = old.evolve(metadata=old.metadata.evolve(finalizers=()))
            assert await getattr(client.api(Deployment, "shop"), write)(old, same, optimistic_lock=True) is old


# --- on a server ---


def counter(value: int) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="counter", namespace="default"), data={"n": str(value), "x": "y"})


def add_one(old: ConfigMap) -> ConfigMap:
    return old.evolve(data={**old.data, "n": str(int(old.data["n"]) + 1)})


async def test_update_leaves_alone_what_others_have_changed(api_server: APIServer, client: Client) -> None:
    old = api_server.create(counter(1))
    api_server.patch(ConfigMap, "counter", {"data": {"other": "1"}, "metadata": {"labels": {"l": "1"}}})
    api = client.api(ConfigMap, "default")
    updated = await api.update(old, old.evolve(data={"n": "2"}))
    assert (updated.data, updated.metadata.labels) == ({"n": "2", "other": "1"}, {"l": "1"})
    with pytest.raises(ConflictError):
        await api.update(old, old.evolve(data={"n": "3"}), optimistic_lock=True)


# --- update_status() with a state that is not the current one ---

DEFAULTED = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
SPEC = {"selector": {"matchLabels": {"a": "b"}}, "template": DEFAULTED, "replicas": 1}


def web(server: APIServer) -> Deployment:
    return server.create(from_dict(Deployment, {"metadata": {"name": "web", "namespace": "default"}, "spec": SPEC}))


def verbs(server: APIServer) -> list[str]:
    return [each.verb for each in server.requests]


async def test_update_status_never_changes_an_object_that_was_created_anew(
    api_server: APIServer, client: Client
) -> None:
    old = web(api_server)
    api_server.delete(Deployment, "web")
    new = web(api_server)
    api_server.requests.clear()
    with pytest.raises(ConflictError, match=f"uid {old.uid} no longer exists; the current object has uid {new.uid}"):
        await client.api(Deployment).update_status(old, old.evolve(status=DeploymentStatus(replicas=1)))
    assert api_server.get(Deployment, "web") == new
    assert verbs(api_server) == ["patch", "get"]


async def test_update_status_keeps_what_others_have_written_to_the_status(
    api_server: APIServer, client: Client
) -> None:
    old = web(api_server)
    api_server.patch(Deployment, "web", {"status": {"readyReplicas": 1}}, subresource="status")
    api_server.requests.clear()
    api = client.api(Deployment)
    stored = await api.update_status(old, old.evolve(status=DeploymentStatus(replicas=2)))
    assert (stored.status.replicas, stored.status.ready_replicas) == (2, 1)
    assert verbs(api_server) == ["patch", "get", "patch"]
    api_server.requests.clear()
    with pytest.raises(ConflictError):
        await api.update_status(old, old.evolve(status=DeploymentStatus(replicas=3)), optimistic_lock=True)
    assert verbs(api_server) == ["patch"]


async def test_update_status_does_not_undo_what_others_have_written_to_the_same_field(
    api_server: APIServer, client: Client
) -> None:
    old = web(api_server)
    seen = {"type": "Seen", "status": "True"}
    api_server.patch(Deployment, "web", {"status": {"conditions": [seen], "replicas": 2}}, subresource="status")
    mine = from_dict(DeploymentStatus, {"conditions": [{**seen, "type": "Mine"}]})
    with pytest.raises(ConflictError, match="conditions"):
        await client.api(Deployment).update_status(old, old.evolve(status=mine))
    assert [one.type for one in api_server.get(Deployment, "web").status.conditions or ()] == ["Seen"]
    same = DeploymentStatus(replicas=2)
    assert (await client.api(Deployment).update_status(old, old.evolve(status=same))).status.replicas == 2


async def test_ten_conflicts_of_update_status_are_an_error(api_server: APIServer, client: Client) -> None:
    old = web(api_server)
    api_server.requests.clear()
    api_server.fail_next(10, verb="patch", resource="deployments", status=409)
    with pytest.raises(ConflictError):
        await client.api(Deployment).update_status(old, old.evolve(status=DeploymentStatus(replicas=2)))
    assert verbs(api_server).count("patch") == 10


async def test_several_writers_of_one_status_lose_nothing(api_server: APIServer, client: Client) -> None:
    old = web(api_server)
    api = client.api(Deployment)
    statuses = [
        DeploymentStatus(replicas=1),
        DeploymentStatus(ready_replicas=2),
        DeploymentStatus(updated_replicas=3),
        DeploymentStatus(available_replicas=4),
        DeploymentStatus(observed_generation=5),
    ]
    async with trio.open_nursery() as nursery:
        for status in statuses:
            nursery.start_soon(api.update_status, old, old.evolve(status=status))
    found = api_server.get(Deployment, "web").status
    assert (found.replicas, found.ready_replicas, found.updated_replicas) == (1, 2, 3)
    assert (found.available_replicas, found.observed_generation) == (4, 5)


# --- update_with_retry() ---


async def test_concurrent_updates_with_retry_lose_nothing(
    api_server: APIServer, client: Client, autojump_clock: MockClock
) -> None:
    api_server.create(counter(0))
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(client.api(ConfigMap, "default").update_with_retry, "counter", add_one)
    assert api_server.get(ConfigMap, "counter").data == {"n": "4", "x": "y"}


async def test_an_unchanged_object_is_not_written(api_server: APIServer, client: Client) -> None:
    old = api_server.create(counter(0))
    found = await client.api(ConfigMap, "default").update_with_retry(old, lambda read: read.evolve(data=old.data))
    assert found.resource_version == old.resource_version
    assert api_server.get(ConfigMap, "counter").resource_version == old.resource_version


async def test_an_object_that_is_made_anew_replaces_only_what_was_read(
    api_server: APIServer, client: Client, autojump_clock: MockClock
) -> None:
    api_server.create(counter(0))
    tries: list[int] = []

    def change(old: ConfigMap) -> ConfigMap:
        tries.append(1)
        if len(tries) == 1:
            api_server.patch(ConfigMap, "counter", {"data": {"n": "5"}})
        return counter(int(old.data["n"]) + 1)

    stored = await client.api(ConfigMap, "default").update_with_retry("counter", change)
    assert (len(tries), stored.data["n"]) == (2, "6")


async def test_the_status_alone_can_be_updated_with_retry(api_server: APIServer, client: Client) -> None:
    metadata = ObjectMeta(name="web", namespace="default")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 1}
    made = from_dict(Deployment, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    assert made.metadata.name == metadata.name
    api_server.create(made)

    def change(old: Deployment) -> Deployment:
        return old.evolve(spec=old.spec.evolve(replicas=9), status=old.status.evolve(replicas=1))

    stored = await client.api(Deployment, "default").update_with_retry("web", change, subresource="status")
    assert (stored.spec.replicas, stored.status.replicas) == (1, 1)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            lambda old: None,
            TypeError,
            r"^change must return the changed ConfigMap, not None; def change\(obj\): ",
        ),
        (
            lambda old: old.evolve(metadata=ObjectMeta(name="other")),
            ValueError,
            r"^change must return the object it was called with, default/counter, not other$",
        ),
    ],
)
async def test_a_change_that_returns_no_changed_object_is_refused(
    api_server: APIServer, client: Client, change: Any, error: type[Exception], text: str
) -> None:
    api_server.create(counter(0))
    with pytest.raises(error, match=text):
        await client.api(ConfigMap, "default").update_with_retry("counter", change)


# --- reading what may be missing ---


async def test_an_object_that_may_be_missing_is_read_without_an_error(api_server: APIServer, client: Client) -> None:
    made = api_server.create(counter(0))
    api = client.api(ConfigMap, "default")
    found = await api.get_or_none("counter")
    assert found is not None
    assert found.data == {"n": "0", "x": "y"}
    assert await api.get_or_none("other") is None
    assert [await api.exists(name) for name in ("counter", "other", made)] == [True, False, True]
    assert await client.api(ConfigMap).exists("counter", namespace="default")


async def test_exists_requests_only_the_metadata() -> None:
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    transport = InMemory([response(200, json.dumps(partial))])
    async with open_client(CONFIG, http_transport=transport) as client:
        assert await client.api(ConfigMap, "shop").exists("a")
    assert "as=PartialObjectMetadata" in transport.requests[0].headers["accept"]


async def test_a_404_that_is_not_of_the_object_does_not_mean_that_it_is_gone() -> None:
    for read in ["exists", "get_or_none"]:
        transport = InMemory([response(404, "<html>no such page</html>")])
        async with open_client(CONFIG, http_transport=transport) as client:
            with pytest.raises(NotFoundError):
                await getattr(client.api(ConfigMap, "shop"), read)("a")


# --- by the client alone ---


async def test_a_client_writes_an_object_that_says_its_kind_and_namespace(
    api_server: APIServer, client: Client
) -> None:
    made = await client.create(counter(0), dry_run=False)
    assert (await client.api(ConfigMap, "default").get("counter")).data == made.data
    await client.delete(made, uid=made.uid)
    assert not await client.api(ConfigMap, "default").exists(made)


async def test_a_client_applies_objects_and_mappings_of_built_in_kinds() -> None:
    for is_mapping in [False, True]:
        reply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter", "namespace": "default"}}
        transport = InMemory([response(200, json.dumps(reply))])
        async with open_client(CONFIG, http_transport=transport, field_manager="me") as client:
            applied = await client.apply(
                {**reply, "data": {"n": "0", "x": "y"}} if is_mapping else counter(0), force=True
            )
        assert isinstance(applied, ConfigMap)
        target = "/api/v1/namespaces/default/configmaps/counter?fieldManager=me&force=true"
        assert transport.targets == [f"PATCH {target}"]
        assert json.loads(transport.requests[0].content)["data"] == {"n": "0", "x": "y"}


async def test_a_mapping_without_a_kind_is_not_applied(client: Client) -> None:
    with pytest.raises(ValueError, match="must contain apiVersion and kind"):
        await client.apply({"metadata": {"name": "a"}}, field_manager="me")


async def test_a_mapping_of_a_custom_kind_is_applied_and_looked_up_once(api_server: APIServer, client: Client) -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
    with pytest.raises(NotFoundError):
        await client.apply(widget, field_manager="me")
    api_server.register(
        ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
    )
    for size in (1, 2):
        applied = await client.apply({**widget, "spec": {"size": size}}, field_manager="me")
        assert to_dict(applied)["spec"] == {"size": size}
    assert [record.verb for record in api_server.requests][1:] == ["get", "patch", "patch"]
