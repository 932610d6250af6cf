"""Objects change hands by selector, and only between a controller and nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio.testing

from tests.support import raw_requests
from trioformer import Client
from trioformer.controller import (
    OwnerGoneError,
    claim_objects,
    controller_of,
    controller_reference,
    is_controlled_by,
)
from trioformer.errors import ConflictError, ForbiddenError, InvalidError, ServerError
from trioformer.models import KubernetesObject, OwnerReference, from_dict, metadata_kind, to_dict, unstructured_kind
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Namespace, Node, Pod
from trioformer.testing import APIServer

LABELS = {"app": "web"}
OTHER: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other-uid", "new": 1}


def create_owner(server: APIServer, name: str = "web", **metadata: object) -> ReplicaSet:
    meta = {"name": name, "namespace": "default", **metadata}
    server.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {}})
    return server.get(ReplicaSet, name)


def create_pod(
    server: APIServer,
    name: str,
    *owners: Mapping[str, Any] | OwnerReference,
    labels: Mapping[str, str] = LABELS,
    **metadata: object,
) -> Pod:
    references = [to_dict(each) if isinstance(each, OwnerReference) else each for each in owners]
    server.create(raw_requests.pod(name) | {"metadata": {"name": name, "labels": labels, **metadata}})
    namespace = str(metadata.get("namespace", "default"))
    return server.patch(Pod, name, {"metadata": {"ownerReferences": references or None}}, namespace=namespace)


def owners_in(server: APIServer, name: str) -> list[str]:
    """The uids of a pod's owners; its controller's with a star."""
    return [each.uid + "*" * bool(each.controller) for each in server.get(Pod, name).metadata.owner_references]


def written(server: APIServer) -> list[str]:
    """What was asked of the server: reads of the owner, and changes."""
    return [f"{each.verb} {each.resource}" for each in server.requests]


async def test_of_all_pods_a_controller_claims_those_that_match_and_nobody_else_controls(
    api_server: APIServer, client: Client
) -> None:
    """client-go: TestClaimPods"""
    owner = create_owner(api_server)
    mine = controller_reference(owner)
    pods = [
        create_pod(api_server, "mine", mine),
        create_pod(api_server, "orphan"),
        create_pod(api_server, "has-an-owner", OTHER),
        create_pod(api_server, "strangers", OTHER | {"controller": True}),
        create_pod(api_server, "other-app", labels={"app": "api"}),
        create_pod(api_server, "relabelled", mine, OTHER, labels={"app": "api"}),
        create_pod(api_server, "going", finalizers=["example.com/wait"]),
        create_pod(api_server, "mine-going", mine, finalizers=["example.com/wait"]),
    ]
    api_server.delete(Pod, "going")
    api_server.delete(Pod, "mine-going")
    pods = [api_server.get(Pod, pod.name) for pod in pods]
    claimed = await claim_objects(client, owner, pods, LABELS)
    assert [pod.name for pod in claimed] == ["mine", "orphan", "has-an-owner", "mine-going"]
    assert all(is_controlled_by(pod, owner) for pod in claimed)
    assert [pod.resource_version for pod in claimed] == [
        api_server.get(Pod, pod.name).resource_version for pod in claimed
    ]
    assert to_dict(claimed[2])["metadata"]["ownerReferences"][0] == OTHER
    uid = owner.uid + "*"
    assert {pod.name: owners_in(api_server, pod.name) for pod in pods} == {
        "mine": [uid],
        "orphan": [uid],
        "has-an-owner": ["other-uid", uid],
        "strangers": ["other-uid*"],
        "other-app": [],
        "relabelled": ["other-uid"],
        "going": [],
        "mine-going": [uid],
    }


async def test_what_is_adopted_refers_to_its_controller_so_that_garbage_collection_waits(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server)
    (pod,) = await claim_objects(client, owner, [create_pod(api_server, "orphan")], "app in (web)")
    assert to_dict(pod)["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


async def test_an_owner_that_was_not_the_controller_becomes_it_and_is_referred_to_once(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server)
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner.uid}
    await claim_objects(client, owner, [create_pod(api_server, "p", reference)], LABELS)
    assert owners_in(api_server, "p") == [owner.uid + "*"]


async def test_nothing_is_asked_of_the_server_when_all_is_in_order(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, "mine", controller_reference(owner)), create_pod(api_server, "x", labels={"a": "b"})]
    with trio.testing.assert_checkpoints():
        claimed = await claim_objects(client, owner, pods, LABELS)
    assert claimed == (pods[0],)
    assert written(api_server) == []


async def test_the_owner_is_read_once_and_only_before_an_adoption(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    relabelled = create_pod(api_server, "relabelled", controller_reference(owner), labels={})
    await claim_objects(client, owner, [relabelled], LABELS)
    assert written(api_server) == ["patch pods"]
    api_server.requests.clear()
    await claim_objects(client, owner, [create_pod(api_server, "a"), create_pod(api_server, "b")], LABELS)
    assert written(api_server) == ["get replicasets", "patch pods", "patch pods"]


async def test_an_owner_that_is_being_deleted_changes_nothing(api_server: APIServer, client: Client) -> None:
    create_owner(api_server, finalizers=["example.com/wait"])
    api_server.delete(ReplicaSet, "web")
    owner = api_server.get(ReplicaSet, "web")
    mine = controller_reference(owner)
    pods = [
        create_pod(api_server, "mine", mine),
        create_pod(api_server, "orphan"),
        create_pod(api_server, "relabelled", mine, labels={}),
    ]
    assert await claim_objects(client, owner, pods, LABELS) == (pods[0],)
    assert written(api_server) == []


async def test_an_owner_that_the_cache_does_not_know_to_be_deleted_adopts_nothing(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server, finalizers=["example.com/wait"])
    api_server.delete(ReplicaSet, "web")
    pods = [create_pod(api_server, "a"), create_pod(api_server, "b")]
    with pytest.raises(OwnerGoneError) as info:
        await claim_objects(client, owner, pods, LABELS)
    assert str(info.value) == "ReplicaSet default/web is being deleted, so it adopts nothing"
    assert written(api_server) == ["get replicasets"]


async def test_an_owner_that_is_gone_or_another_one_now_adopts_nothing(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    orphan = create_pod(api_server, "orphan")
    api_server.delete(owner)
    with pytest.raises(OwnerGoneError, match="default/web is gone, so it adopts nothing"):
        await claim_objects(client, owner, [orphan], LABELS)
    again = create_owner(api_server)
    assert is_controlled_by(create_pod(api_server, "its", controller_reference(again)), again)
    assert not is_controlled_by(api_server.get(Pod, "its"), owner)
    with pytest.raises(OwnerGoneError) as info:
        await claim_objects(client, owner, [orphan], LABELS)
    assert str(info.value) == (
        f"ReplicaSet default/web with uid {owner.uid} is gone, so it adopts nothing; "
        f"the one that is there has uid {again.uid}"
    )
    assert owners_in(api_server, "orphan") == []


async def test_a_pod_that_is_gone_is_left_out_and_its_successor_is_not_touched(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server)
    mine = controller_reference(owner)
    adopted, released = create_pod(api_server, "adopted"), create_pod(api_server, "released", mine, labels={})
    for pod in (adopted, released):
        api_server.delete(pod)
    assert await claim_objects(client, owner, [adopted, released], LABELS) == ()
    for name in ("adopted", "released"):
        create_pod(api_server, name)
    with pytest.raises(ExceptionGroup) as group:
        await claim_objects(client, owner, [adopted, released], LABELS)
    assert [type(error) for error in group.value.exceptions] == [ConflictError, ConflictError]
    assert all("UID in precondition" in str(error) for error in group.value.exceptions)
    assert owners_in(api_server, "adopted") == owners_in(api_server, "released") == []


async def test_a_pod_that_changed_since_it_was_read_is_a_conflict_and_the_others_are_claimed(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, name) for name in "abc"]
    api_server.patch(Pod, "a", {"metadata": {"ownerReferences": [OTHER | {"controller": True}]}})
    with pytest.raises(ConflictError) as info:
        await claim_objects(client, owner, pods, LABELS)
    assert info.value.__notes__ == [f"while {owner!r} claimed {pods[0]!r}"]
    assert owners_in(api_server, "a") == ["other-uid*"]
    assert owners_in(api_server, "b") == owners_in(api_server, "c") == [owner.uid + "*"]
    claimed = await claim_objects(client, owner, api_server.list(Pod), LABELS)
    assert [pod.name for pod in claimed] == ["b", "c"]


async def test_several_refusals_come_together(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, name) for name in "abc"]
    api_server.fail_next(2, verb="patch")
    with pytest.raises(ExceptionGroup, match="could not claim 2 objects") as group:
        await claim_objects(client, owner, pods, LABELS)
    assert all(isinstance(error, ServerError) for error in group.value.exceptions)
    assert owners_in(api_server, "c") == [owner.uid + "*"]


async def test_a_release_that_is_not_valid_has_come_too_late_and_such_an_adoption_is_an_error(
    api_server: APIServer, client: Client
) -> None:
    """A server says 422 to a patch of another object's uid."""
    owner = create_owner(api_server)
    api_server.fail_next(1, verb="patch", status=422)
    released = create_pod(api_server, "released", controller_reference(owner), labels={})
    assert await claim_objects(client, owner, [released], LABELS) == ()
    api_server.fail_next(1, verb="patch", status=422)
    with pytest.raises(InvalidError):
        await claim_objects(client, owner, [create_pod(api_server, "adopted")], LABELS)


async def test_an_owner_whose_read_fails_adopts_nothing_and_still_releases(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server)
    pods = [
        create_pod(api_server, "orphan"),
        create_pod(api_server, "released", controller_reference(owner), labels={}),
    ]
    api_server.fail_next(1, verb="get", resource="replicasets")
    with pytest.raises(ServerError):
        await claim_objects(client, owner, pods, LABELS)
    assert owners_in(api_server, "orphan") == owners_in(api_server, "released") == []


async def test_an_owner_whose_read_is_refused_is_read_once(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, name) for name in "abc"]
    api_server.fail_next(100, verb="get", resource="replicasets", status=403)
    with pytest.raises(ForbiddenError):
        await claim_objects(client, owner, pods, LABELS)
    assert written(api_server) == ["get replicasets"]


async def test_what_was_refused_before_the_owner_turned_out_to_be_gone_is_told(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server)
    released = create_pod(api_server, "released", controller_reference(owner), labels={})
    orphan = create_pod(api_server, "orphan")
    api_server.delete(owner)
    api_server.fail_next(1, verb="patch", resource="pods", status=403)
    with pytest.raises(OwnerGoneError) as info:
        await claim_objects(client, owner, [released, orphan], LABELS)
    (note,) = info.value.__notes__
    assert note.startswith("before that: ")
    assert note.endswith(f"; while {owner!r} claimed {released!r}")


async def test_pods_of_another_namespace_are_not_adopted(api_server: APIServer, client: Client) -> None:
    api_server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    orphan = create_pod(api_server, "orphan", namespace="elsewhere")
    assert await claim_objects(client, create_owner(api_server), [orphan], LABELS) == ()
    # What belongs to no namespace may own anything.
    node = api_server.create(from_dict(Node, {"metadata": {"name": "n"}}))
    (claimed,) = await claim_objects(client, node, [orphan], LABELS)
    assert controller_of(claimed) == controller_reference(node)


async def test_custom_kinds_and_bare_metadata_can_own_and_be_owned(api_server: APIServer, client: Client) -> None:
    api_server.register(raw_requests.WIDGET)
    widget = unstructured_kind(raw_requests.WIDGET)
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": "default", "labels": LABELS}
        api_server.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata})
    create_pod(api_server, "p")
    owner, child = [await client.api(widget, namespace="default").get(name) for name in ("a", "b")]
    meta = await client.api(metadata_kind(Pod), namespace="default").get("p")
    objects: list[KubernetesObject] = [child, meta]
    claimed = await claim_objects(client, owner, objects, LABELS)
    assert [(type(each), is_controlled_by(each, owner)) for each in claimed] == [
        (widget, True),
        (metadata_kind(Pod), True),
    ]
    reference = to_dict(api_server.get(Pod, "p").metadata.owner_references[0])
    assert (reference["apiVersion"], reference["kind"]) == ("example.com/v1", "Widget")


async def test_an_empty_selector_and_an_owner_without_uid_are_refused(api_server: APIServer, client: Client) -> None:
    pod = create_pod(api_server, "p")
    owner = create_owner(api_server)
    selectors: list[str | dict[str, str]] = ["", {}]
    for selector in selectors:
        with pytest.raises(ValueError, match="would adopt everything; name a label"):
            await claim_objects(client, owner, [pod], selector)
    with pytest.raises(ValueError, match="has no uid, so nothing can refer to it"):
        await claim_objects(client, from_dict(Namespace, {"metadata": {"name": "n"}}), [pod], LABELS)
    assert written(api_server) == []
