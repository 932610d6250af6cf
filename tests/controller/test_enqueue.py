"""Requests, enqueue functions, predicates, and results of reconciles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from trioformer import Added, Deleted, Notification, ObjectMeta, SharedInformerFactory, Updated
from trioformer.client import Client, ObjectRef
from trioformer.controller import (
    Request,
    TerminalError,
    annotations_changed,
    generation_changed,
    labels_changed,
    labels_match,
    request_for_owner,
    requests_by_index,
    states_match,
)
from trioformer.controller._results import is_terminal
from trioformer.errors import CacheNotSyncedError, IndexerError, SelectorError
from trioformer.models import OwnerReference
from trioformer.models.apps_v1 import Deployment, ReplicaSet
from trioformer.models.core_v1 import ConfigMap, Node, Pod, Secret
from trioformer.testing import APIServer

# --- requests ---


@pytest.mark.parametrize(
    ("request_", "key"), [(Request("default", "web"), "default/web"), (Request(None, "node-1"), "node-1")]
)
def test_a_request_is_formatted_as_a_key_and_parsed_from_one(request_: Request, key: str) -> None:
    """client-go: TestObjectNames"""
    assert str(request_) == key
    assert Request.parse(key) == request_


def test_a_request_is_a_reference_to_an_object_and_stays_a_request() -> None:
    pod = Pod(metadata=ObjectMeta(name="a", namespace="b"))
    assert isinstance(Request.of(pod), ObjectRef)
    assert isinstance(Request.parse("b/a"), Request)
    assert ObjectRef.of(pod) == ObjectRef("b", "a") != Request("b", "a")
    assert str(ObjectRef.parse("b/a")) == "b/a"
    assert repr(ObjectRef("", "a")) == "<ObjectRef a>"


# --- enqueue ---


def owner(kind: str, name: str, *, api_version: str = "apps/v1", controller: bool | None = None) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid-{name}", controller=controller)


def owned(*owners: OwnerReference, namespace: str | None = "default") -> Pod:
    return Pod(metadata=ObjectMeta(name="pod", namespace=namespace, owner_references=owners))


@pytest.mark.parametrize(
    ("owners", "by_controller", "by_any"),
    [
        ([], [], []),
        ([owner("ReplicaSet", "a", controller=True)], ["a"], ["a"]),
        ([owner("ReplicaSet", "a")], [], ["a"]),
        ([owner("ReplicaSet", "a", controller=False), owner("ReplicaSet", "b", controller=True)], ["b"], ["a", "b"]),
        ([owner("Deployment", "a", controller=True)], [], []),
        ([owner("ReplicaSet", "a", controller=True, api_version="apps/v1beta2")], ["a"], ["a"]),
        ([owner("ReplicaSet", "a", controller=True, api_version="example.com/v1")], [], []),
        ([owner("ReplicaSet", "a", controller=True, api_version="v1")], [], []),
    ],
)
def test_owners_are_found_by_group_and_kind(
    owners: list[OwnerReference], by_controller: list[str], by_any: list[str]
) -> None:
    made = owned(*owners)
    assert list(request_for_owner(ReplicaSet)(made)) == [Request("default", name) for name in by_controller]
    assert list(request_for_owner(ReplicaSet, only_controller=False)(made)) == [
        Request("default", name) for name in by_any
    ]


def test_an_owner_without_namespace_is_enqueued_without_one() -> None:
    made = owned(owner("Node", "node-1", api_version="v1", controller=True))
    assert list(request_for_owner(Node)(made)) == [Request(None, "node-1")]


def test_a_cluster_scoped_object_has_no_namespaced_owner() -> None:
    made = owned(owner("ReplicaSet", "a", controller=True), namespace=None)
    assert list(request_for_owner(ReplicaSet)(made)) == []


def config_maps_of(deployment: Deployment) -> list[str]:
    volumes = deployment.spec.template.spec.volumes
    return [f"{deployment.namespace}/{volume.config_map.name}" for volume in volumes if volume.config_map is not None]


async def test_an_index_finds_what_refers_to_an_object(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for name, used in (("web", "settings"), ("api", "settings"), ("db", "other")):
        volume = {"name": "v", "configMap": {"name": used}}
        api_server.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {"volumes": [volume], "containers": [{"name": "c", "image": "i"}]},
                    },
                },
            }
        )
    factory = SharedInformerFactory(client)
    deployments = factory.informer(Deployment, indexers={"config-maps": config_maps_of})
    by_key = requests_by_index(deployments, "config-maps")
    settings = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"))
    with pytest.raises(CacheNotSyncedError):
        by_key(settings)
    await nursery.start(factory.run)
    assert sorted(map(str, by_key(settings))) == ["default/api", "default/web"]
    assert by_key(ConfigMap(metadata=ObjectMeta(name="settings", namespace="elsewhere"))) == ()
    by_value = requests_by_index(deployments, "config-maps", value=lambda secret: secret.metadata.labels["for"])
    secret = Secret(metadata=ObjectMeta(name="s", labels={"for": "default/other"}))
    assert by_value(secret) == (Request("default", "db"),)
    with pytest.raises(IndexerError):
        requests_by_index(deployments, "nothing")(settings)


# --- predicates ---


def state(version: int = 1, *, generation: int | None = None, **more: dict[str, str]) -> Pod:
    return Pod(metadata=ObjectMeta(name="a", resource_version=str(version), generation=generation, **more))


RESYNCED = state()
PREDICATES = [generation_changed, labels_changed, annotations_changed]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_predicates_of_changes_pass_additions_and_deletions_but_no_resync(
    predicate: Callable[[Notification[Pod]], bool],
) -> None:
    assert predicate(Added(state()))
    assert predicate(Added(state(), is_initial=True))
    assert predicate(Deleted(state()))
    assert not predicate(Updated(RESYNCED, RESYNCED))


@pytest.mark.parametrize(
    ("old", "new", "passing"),
    [
        (state(1, generation=1), state(2, generation=2), {generation_changed}),
        (state(1, generation=1), state(2, generation=1), set()),
        (state(1), state(2), {generation_changed}),
        (state(1), state(2, generation=1), {generation_changed}),
        (state(1, generation=1), state(2, generation=1, labels={"a": "b"}), {labels_changed}),
        (state(1, generation=1, labels={"a": "b"}), state(2, generation=1, labels={"a": "b"}), set()),
        (state(1, generation=1, annotations={"a": "b"}), state(2, generation=1), {annotations_changed}),
    ],
)
def test_an_update_passes_the_predicates_of_what_it_changed(old: Pod, new: Pod, passing: set[object]) -> None:
    event = Updated(old, new)
    assert {predicate for predicate in PREDICATES if predicate(event)} == passing


def test_states_match_passes_an_update_if_either_state_matches() -> None:
    has_label = states_match(lambda pod: "a" in pod.metadata.labels)
    for predicate in (has_label, labels_match("a"), labels_match({"a": "b"})):
        inside, outside = state(1, labels={"a": "b"}), state(2)
        assert predicate(Added(inside))
        assert predicate(Deleted(inside))
        assert predicate(Updated(inside, outside))
        assert predicate(Updated(outside, inside))
        assert not predicate(Updated(outside, outside))
        assert not predicate(Added(outside))
        assert not predicate(Deleted(outside))


def test_labels_match_rejects_an_invalid_selector_immediately() -> None:
    with pytest.raises(SelectorError):
        labels_match("a in (")


# --- results ---


def test_a_group_is_terminal_if_all_its_errors_are() -> None:
    terminal = TerminalError("no")
    assert is_terminal(terminal)
    assert is_terminal(ExceptionGroup("all", [terminal, ExceptionGroup("more", [terminal])]))
    assert not is_terminal(ExceptionGroup("some", [terminal, OSError()]))
    assert not is_terminal(OSError())
