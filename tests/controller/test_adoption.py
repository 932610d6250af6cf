"""claim_objects(): objects are adopted and released by selector; objects of other controllers do not change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import trio.testing

from tests.support import raw_requests
from tests.support.scripted_http import InMemory, response
from trioformer import Client, ObjectMeta, open_client
from trioformer.controller import (
    OwnerGoneError,
    claim_objects,
    controller_of,
    controller_reference,
    is_controlled_by,
)
from trioformer.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, ServerError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, OwnerReference, from_dict, metadata_kind, to_dict, unstructured_kind
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Namespace, Node, Pod
from trioformer.testing import APIServer

CONFIG = ClusterConfig(server="http://server.invalid", source="test")
LABELS = {"app": "web"}
OTHER: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other-uid"}


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
    """Return the uids of a pod's owners; that of its controller has a star."""
    return [each.uid + "*" * bool(each.controller) for each in server.get(Pod, name).metadata.owner_references]


def requests_to(server: APIServer) -> list[str]:
    """Return the requests that the server received."""
    return [f"{each.verb} {each.resource}" for each in server.requests]


async def test_matching_pods_that_no_other_owner_controls_are_claimed(api_server: APIServer, client: Client) -> None:
    """client-go: TestClaimPods"""
    owner = create_owner(api_server)
    mine = controller_reference(owner)
    pods = [
        create_pod(api_server, "mine", mine),
        create_pod(api_server, "orphan"),
        create_pod(api_server, "has-an-owner", OTHER),
        create_pod(api_server, "of-another-owner", OTHER | {"controller": True}),
        create_pod(api_server, "other-app", labels={"app": "api"}),
        create_pod(api_server, "relabelled", mine, OTHER, labels={"app": "api"}),
        create_pod(api_server, "deleting", finalizers=["example.com/wait"]),
        create_pod(api_server, "mine-deleting", mine, finalizers=["example.com/wait"]),
    ]
    api_server.delete(Pod, "deleting")
    api_server.delete(Pod, "mine-deleting")
    pods = [api_server.get(Pod, pod.name) for pod in pods]
    claimed = await claim_objects(client, owner, pods, LABELS)
    assert [pod.name for pod in claimed] == ["mine", "orphan", "has-an-owner", "mine-deleting"]
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
        "of-another-owner": ["other-uid*"],
        "other-app": [],
        "relabelled": ["other-uid"],
        "deleting": [],
        "mine-deleting": [uid],
    }


async def test_members_of_other_references_that_no_class_knows_are_sent_back() -> None:
    """Of a newer server; the embedded one removes them, as kube-apiserver does with what it does not know."""
    newer = OTHER | {"new": 1}
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    owner = from_dict(ReplicaSet, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata})
    pod = {**metadata, "name": "a", "uid": "p", "labels": LABELS, "ownerReferences": [newer]}
    stored = {"apiVersion": "v1", "kind": "Pod", "metadata": pod}
    http = InMemory([response(200, json.dumps(to_dict(owner))), response(200, json.dumps(stored))])
    async with open_client(CONFIG, http_transport=http) as client:
        await claim_objects(client, owner, [from_dict(Pod, stored)], LABELS)
    sent = json.loads(http.requests[-1].content)["metadata"]["ownerReferences"]
    assert [each["name"] for each in sent] == ["other", "web"]
    assert sent[0] == newer


async def test_no_request_is_sent_when_no_object_has_to_change(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, "mine", controller_reference(owner)), create_pod(api_server, "x", labels={"a": "b"})]
    with trio.testing.assert_checkpoints():
        claimed = await claim_objects(client, owner, pods, LABELS)
    assert claimed == (pods[0],)
    assert requests_to(api_server) == []


async def test_the_owner_is_read_once_and_only_before_an_adoption(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    relabelled = create_pod(api_server, "relabelled", controller_reference(owner), labels={})
    await claim_objects(client, owner, [relabelled], LABELS)
    assert requests_to(api_server) == ["patch pods"]
    api_server.requests.clear()
    await claim_objects(client, owner, [create_pod(api_server, "a"), create_pod(api_server, "b")], LABELS)
    assert requests_to(api_server) == ["get replicasets", "patch pods", "patch pods"]


async def test_no_object_changes_for_an_owner_that_is_being_deleted(api_server: APIServer, client: Client) -> None:
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
    assert requests_to(api_server) == []


async def test_an_owner_that_is_being_deleted_on_the_server_adopts_no_objects(
    api_server: APIServer, client: Client
) -> None:
    owner = create_owner(api_server, finalizers=["example.com/wait"])
    api_server.delete(ReplicaSet, "web")
    pods = [create_pod(api_server, "a"), create_pod(api_server, "b")]
    with pytest.raises(OwnerGoneError) as info:
        await claim_objects(client, owner, pods, LABELS)
    assert "is being deleted" in str(info.value)
    assert requests_to(api_server) == ["get replicasets"]


async def test_an_owner_that_was_deleted_or_replaced_adopts_no_objects(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    orphan = create_pod(api_server, "orphan")
    api_server.delete(owner)
    with pytest.raises(OwnerGoneError, match="no longer exists"):
        await claim_objects(client, owner, [orphan], LABELS)
    again = create_owner(api_server)
    assert is_controlled_by(create_pod(api_server, "its", controller_reference(again)), again)
    assert not is_controlled_by(api_server.get(Pod, "its"), owner)
    with pytest.raises(OwnerGoneError, match=again.uid):
        await claim_objects(client, owner, [orphan], LABELS)
    assert owners_in(api_server, "orphan") == []


async def test_a_deleted_pod_is_left_out_and_a_new_one_of_its_name_not_changed(
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
    assert owners_in(api_server, "adopted") == owners_in(api_server, "released") == []


async def test_after_a_conflict_the_other_pods_are_claimed(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, name) for name in "abc"]
    api_server.patch(Pod, "a", {"metadata": {"ownerReferences": [OTHER | {"controller": True}]}})
    with pytest.raises(ConflictError) as info:
        await claim_objects(client, owner, pods, LABELS)
    assert info.value.__notes__[1:] == [f"while {owner!r} claimed {pods[0]!r}"]
    assert owners_in(api_server, "a") == ["other-uid*"]
    assert owners_in(api_server, "b") == owners_in(api_server, "c") == [owner.uid + "*"]
    claimed = await claim_objects(client, owner, api_server.list(Pod), LABELS)
    assert [pod.name for pod in claimed] == ["b", "c"]


async def test_several_rejected_changes_are_raised_in_a_group(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, name) for name in "abc"]
    api_server.fail_next(2, verb="patch")
    with pytest.raises(ExceptionGroup, match="could not claim 2 objects") as group:
        await claim_objects(client, owner, pods, LABELS)
    assert all(isinstance(error, ServerError) for error in group.value.exceptions)
    assert owners_in(api_server, "c") == [owner.uid + "*"]


async def test_status_422_is_ignored_for_a_release_and_raised_for_an_adoption(
    api_server: APIServer, client: Client
) -> None:
    """A server responds with 422 to a patch that changes a uid."""
    owner = create_owner(api_server)
    api_server.fail_next(1, verb="patch", status=422)
    released = create_pod(api_server, "released", controller_reference(owner), labels={})
    assert await claim_objects(client, owner, [released], LABELS) == ()
    api_server.fail_next(1, verb="patch", status=422)
    with pytest.raises(InvalidError):
        await claim_objects(client, owner, [create_pod(api_server, "adopted")], LABELS)


async def test_an_owner_whose_read_fails_adopts_no_objects_and_still_releases(
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


async def test_an_owner_whose_read_is_rejected_is_read_once(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    pods = [create_pod(api_server, name) for name in "abc"]
    api_server.fail_next(100, verb="get", resource="replicasets", status=403)
    with pytest.raises(ForbiddenError):
        await claim_objects(client, owner, pods, LABELS)
    assert requests_to(api_server) == ["get replicasets"]


@pytest.mark.parametrize(
    ("verb", "resource", "references"), [("get", "replicasets", 0), ("patch", "pods", 0), ("patch", "pods", 1)]
)
async def test_a_404_that_is_not_a_status_does_not_mean_that_an_object_is_gone(
    verb: str, resource: str, references: int
) -> None:
    """A proxy without a server behind it responds with such a page."""
    owner = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default", uid="u"))
    metadata = ObjectMeta(
        name="a",
        namespace="default",
        labels={} if references else LABELS,
        owner_references=[controller_reference(owner)] * references,
    )
    found = response(200, '{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"web","uid":"u"}}')
    page = response(404, "<html><title>404 Not Found</title></html>")
    replies = [page] if verb == "get" or references else [found, page]
    async with open_client(CONFIG, http_transport=InMemory(replies)) as client:
        with pytest.raises(NotFoundError, match=f"^{verb} {resource}.*the body is HTML"):
            await claim_objects(client, owner, [Pod(metadata=metadata)], LABELS)


async def test_earlier_errors_are_notes_of_an_owner_gone_error(api_server: APIServer, client: Client) -> None:
    owner = create_owner(api_server)
    released = create_pod(api_server, "released", controller_reference(owner), labels={})
    orphan = create_pod(api_server, "orphan")
    api_server.delete(owner)
    api_server.fail_next(1, verb="patch", resource="pods", status=403)
    with pytest.raises(OwnerGoneError) as info:
        await claim_objects(client, owner, [released, orphan], LABELS)
    (note,) = info.value.__notes__
    assert note.startswith("earlier error: ")
    assert note.endswith(f"; while {owner!r} claimed {released!r}")


async def test_pods_of_another_namespace_are_not_adopted(api_server: APIServer, client: Client) -> None:
    api_server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    orphan = create_pod(api_server, "orphan", namespace="elsewhere")
    assert await claim_objects(client, create_owner(api_server), [orphan], LABELS) == ()
    # A cluster-scoped object may own objects of any namespace.
    node = api_server.create(from_dict(Node, {"metadata": {"name": "n"}}))
    (claimed,) = await claim_objects(client, node, [orphan], LABELS)
    assert controller_of(claimed) == controller_reference(node)


async def test_custom_kinds_and_metadata_kinds_can_own_and_be_owned(api_server: APIServer, client: Client) -> None:
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


async def test_an_empty_selector_and_an_owner_without_uid_are_rejected(api_server: APIServer, client: Client) -> None:
    pod = create_pod(api_server, "p")
    owner = create_owner(api_server)
    selectors: list[str | dict[str, str]] = ["", {}]
    for selector in selectors:
        with pytest.raises(ValueError, match="empty"):
            await claim_objects(client, owner, [pod], selector)
    with pytest.raises(ValueError, match="no uid"):
        await claim_objects(client, from_dict(Namespace, {"metadata": {"name": "n"}}), [pod], LABELS)
    assert requests_to(api_server) == []
