"""Objects from JSON and from protobuf: equal ones are equal in every use."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
import yaml

from trioformer.manifests import dump_manifests
from trioformer.models import KubernetesObject, encode, extract, from_dict, from_json, merge_patch, to_dict
from trioformer.models._internal import Message, make_object, object_of, open_envelope, scan_message, tagged
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Pod, Secret

MANAGED = {
    "manager": "me",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2026-01-12T08:15:42Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:data": {"f:x": {}}},
}
METADATA = {
    "name": "a",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 3,
    "creationTimestamp": "2026-01-12T08:15:42Z",
    "labels": {"app": "web", "tier": "front"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": True}],
    "managedFields": [MANAGED],
}
CONTAINER = {
    "name": "web",
    "image": "nginx",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "securityContext": {"runAsNonRoot": False},
}
POD_SPEC = {"containers": [CONTAINER], "terminationGracePeriodSeconds": 0, "hostAliases": [{"ip": "1.1.1.1"}]}
SCHEMA = {
    "type": "object",
    "maximum": 1.5,
    "default": {"a": [1, None]},
    "enum": [1, "x"],
    "properties": {"a": {"additionalProperties": False}, "b": {"items": {"not": {"type": "string"}}}},
}
OBJECTS: list[tuple[type[KubernetesObject], dict[str, Any]]] = [
    (Pod, {"spec": POD_SPEC, "status": {"phase": "Running", "startTime": "2026-01-12T08:15:42Z"}}),
    (ConfigMap, {"data": {"x": "1", "y": ""}, "binaryData": {"b": "AP8="}, "immutable": False}),
    (Secret, {"data": {"password": "AP8="}, "type": "Opaque"}),
    (
        Deployment,
        {
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC},
                "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            }
        },
    ),
    (
        CustomResourceDefinition,
        {"spec": {"group": "x.io", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": SCHEMA}}]}},
    ),
]


def both(kind: type[KubernetesObject], members: dict[str, Any]) -> tuple[Any, Any]:
    """Return an object as JSON and as protobuf have it."""
    info = kind.__resource__
    plain = {"metadata": METADATA, **members}  # as an item of a list, without its kind
    found = object_of({"kind": info.kind, "apiVersion": info.api_version, **plain})
    assert found is not None
    message = Message(open_envelope(found)[2])
    return from_json(kind, json.dumps(plain).encode()), make_object(kind, message)


@pytest.fixture(params=OBJECTS, ids=lambda given: given[0].__name__)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return both(*request.param)


@pytest.mark.parametrize(("kind", "members"), OBJECTS[:3], ids=lambda given: getattr(given, "__name__", ""))
def test_a_message_has_the_members_of_its_json(kind: type[KubernetesObject], members: dict[str, Any]) -> None:
    found = to_dict(both(kind, members)[1])
    assert found["metadata"] == METADATA
    for name, value in members.items():
        assert merge_patch({"a": value}, {"a": found[name]}) == {}


def test_equal_objects_of_two_encodings_are_equal_in_sets(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert type(other._origin) is Message
    assert type(one._origin) is not Message
    assert one == other
    assert other == one
    assert hash(one) == hash(other)
    assert {one, other} == {one} == {other}
    assert {one: 1}[other] == 1


def test_equal_parts_of_two_encodings_are_equal_in_sets(pair: tuple[Any, Any]) -> None:
    for read in (lambda obj: obj.metadata, lambda obj: getattr(obj, "spec", obj.metadata)):
        one, other = map(read, pair)
        assert one == other
        assert hash(one) == hash(other)
        assert {one} == {other}


def test_other_values_are_not_equal_in_two_encodings(pair: tuple[Any, Any]) -> None:
    one, other = pair
    changed = other.evolve(metadata=other.metadata.evolve(labels={"app": "other"}))
    for first, second in ((one, changed), (other, changed)):
        assert first != second
        assert second != first


def test_both_encodings_have_one_dict_and_one_yaml(pair: tuple[Any, Any]) -> None:
    one, other = pair  # without kind and apiVersion, which JSON has only in watches
    assert to_dict(one) == to_dict(other) == to_dict(from_dict(type(one), to_dict(one)))
    assert (to_dict(one)["kind"], to_dict(one)["apiVersion"]) == (one.kind, one.api_version)
    assert yaml.safe_load(dump_manifests([one])) == yaml.safe_load(dump_manifests([other]))


def test_copies_and_pickles_of_a_message_are_equal_to_it(pair: tuple[Any, Any]) -> None:
    one, other = pair
    for made in (copy.copy(other), copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
        assert made == other == one
        assert hash(made) == hash(one)
        assert type(made._origin) is Message
        assert not (made._origin != other._origin)  # noqa: SIM202  # a struct has a method of its own
        assert made.metadata == one.metadata
    part = pickle.loads(pickle.dumps(other.metadata))
    assert part == one.metadata


def test_the_same_change_of_both_encodings_is_equal(pair: tuple[Any, Any]) -> None:
    changed = [
        obj.evolve(metadata=obj.metadata.evolve(labels={**obj.metadata.labels, "new": "1"}, finalizers=("x/y",)))
        for obj in pair
    ]
    one, other = changed
    assert one == other
    assert hash(one) == hash(other)
    assert to_dict(one) == to_dict(other)
    assert to_dict(pickle.loads(pickle.dumps(other))) == to_dict(one)
    assert merge_patch(one, other) == merge_patch(other, one) == {}


def test_a_merge_patch_between_encodings_has_no_other_changes(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert merge_patch(one, other) == merge_patch(other, one) == {}
    for old, new in ((one, other), (other, one), (other, other)):
        changed = new.evolve(metadata=new.metadata.evolve(labels={"app": "new"}))
        assert merge_patch(old, changed) == {"metadata": {"labels": {"app": "new", "tier": None}}}


def test_what_a_manager_applied_is_extracted_from_a_message() -> None:
    one, other = both(ConfigMap, {"data": {"x": "1", "y": "2"}})
    found = extract(other, field_manager="me")
    assert to_dict(found) == to_dict(extract(one, field_manager="me"))
    assert (found.data, found.metadata.labels) == ({"x": "1"}, {"app": "web"})


def test_managed_fields_can_be_dropped_from_a_message(pair: tuple[Any, Any]) -> None:
    one, other = pair
    data = other._origin.data
    kept, head = scan_message(data, 0, len(data), drops_managed_fields=True)
    without = make_object(type(other), kept, head)
    assert without.metadata.managed_fields == ()
    assert without == one.evolve(metadata=one.metadata.evolve(managed_fields=()))
    assert (without.key, without.uid, without.resource_version) == (one.key, "u", "7")
    assert scan_message(kept.data, 0, len(kept.data), drops_managed_fields=True)[0] == kept
    assert scan_message(data, 0, len(data), drops_managed_fields=False)[0].data is data


def test_managed_fields_before_another_field_can_be_dropped() -> None:
    managed = tagged(17, tagged(1, b"me"))
    begin = tagged(1, b"a") + tagged(3, b"shop")
    for metadata in (
        begin + managed + managed + tagged(15, b"o"),
        begin + managed + tagged(15, b"o") + managed,
        managed + begin + tagged(15, b"o"),
        begin + tagged(15, b"o") + managed,
    ):
        data = tagged(1, metadata) + tagged(2, tagged(10, b"node-1"))
        kept, head = scan_message(data, 0, len(data), drops_managed_fields=True)
        assert kept.data == tagged(1, begin + tagged(15, b"o")) + tagged(2, tagged(10, b"node-1"))
        assert (head.metadata.name, head.metadata.namespace) == ("a", "shop")
    for last in (tagged(99, b"later"), b"\x90\x01\x05", b"\x38\x05", begin):
        data = tagged(1, tagged(2, b"") + managed + last)
        kept = scan_message(data, 0, len(data), drops_managed_fields=True)[0]
        assert kept.data == tagged(1, tagged(2, b"") + last)


def test_json_of_an_unchanged_message_is_that_of_its_dict(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert from_dict(type(one), to_dict(other)) == one
    assert encode(other).startswith(b"{")


def test_the_last_value_of_a_repeated_name_counts_in_every_layout() -> None:
    usual = b"".join([tagged(number, value) for number, value in enumerate((b"a", b"", b"shop", b"", b"u", b"7"), 1)])
    for metadata in (usual + tagged(1, b"b"), usual + tagged(15, b"o") + tagged(1, b"b"), tagged(1, b"c") + usual):
        data = tagged(1, metadata)
        message, head = scan_message(data, 0, len(data), drops_managed_fields=False)
        read = make_object(Pod, message, head)
        assert (read.name, read.uid) == (read.metadata.name, read.metadata.uid)


def test_a_name_of_any_length_and_any_bytes_is_read_in_the_usual_layout() -> None:
    for name in (b"", b"a", b"x" * 127, b"x" * 128, b"x" * 300, b"\x12\x00\x1a\x00", "ü".encode(), b"\xff"):
        values = (name, b"gen-", name, b"", b"u" * len(name), b"7")
        data = tagged(1, b"".join([tagged(number, value) for number, value in enumerate(values, 1)]) + b"\x38\x90\x01")
        head = scan_message(data, 0, len(data), drops_managed_fields=False)[1].metadata
        text = name.decode("utf-8", "replace")
        assert (head.name, head.namespace, head.uid, head.resourceVersion) == (text, text, "u" * len(name), "7")
