"""What a field manager has applied is extracted from ``managedFields``."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.errors import DecodeError
from trioformer.models import encode, extract, from_dict, to_dict, unstructured_kind
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Pod, Secret, Service

Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)


def entry(manager: str, fields: Any, operation: str = "Apply", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def config_map(*entries: dict[str, Any], **data: str) -> ConfigMap:
    metadata = {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "7", "managedFields": list(entries)}
    metadata["labels"] = {"mine": "1", "other": "2"}
    return from_dict(ConfigMap, {"metadata": metadata, "data": data})


def extracted(obj: Any, manager: str = "me", subresource: str | None = None) -> dict[str, Any]:
    found = to_dict(extract(obj, field_manager=manager, subresource=subresource))
    assert (found.pop("apiVersion"), found.pop("kind")) == (obj.api_version, obj.kind)
    return found


NAMES = {"name": "a", "namespace": "default"}


def test_only_what_the_manager_has_applied_is_extracted() -> None:
    mine = entry("me", {"f:metadata": {"f:labels": {"f:mine": {}}}, "f:data": {"f:x": {}}})
    other = entry("other", {"f:metadata": {"f:labels": {"f:other": {}}}, "f:data": {".": {}, "f:y": {}}}, "Update")
    obj = config_map(mine, other, x="1", y="2")
    assert extracted(obj) == {"metadata": {**NAMES, "labels": {"mine": "1"}}, "data": {"x": "1"}}
    result = extract(obj, field_manager="me")
    assert (type(result), result.data, result.metadata.labels) == (ConfigMap, {"x": "1"}, {"mine": "1"})
    assert (result.resource_version, result.uid, result.metadata.managed_fields) == ("", "", ())


@pytest.mark.parametrize(
    "other",
    [
        entry("other", {"f:data": {"f:x": {}}}),
        entry("me", {"f:data": {"f:x": {}}}, "Update"),
        entry("me", {"f:data": {"f:x": {}}}, subresource="status"),
    ],
)
def test_what_somebody_else_or_another_operation_has_set_is_not(other: dict[str, Any]) -> None:
    assert extracted(config_map(other, x="1")) == {"metadata": NAMES}


def test_list_items_come_with_their_keys_and_in_the_order_of_the_object() -> None:
    fields = {
        "f:spec": {
            "f:containers": {
                'k:{"name":"side"}': {".": {}, "f:image": {}},
                'k:{"name":"main"}': {"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {"f:hostPort": {}}}},
            }
        }
    }
    containers = [
        {"name": "main", "image": "m", "ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 8, "name": "w"}]},
        {"name": "extra", "image": "e"},
        {"name": "side", "image": "s", "tty": True},
    ]
    metadata = {**NAMES, "managedFields": [entry("me", fields)]}
    pod = from_dict(Pod, {"metadata": metadata, "spec": {"containers": containers, "nodeName": "n"}})
    ports = [{"containerPort": 80, "protocol": "TCP", "hostPort": 8}]
    assert extracted(pod)["spec"] == {
        "containers": [{"name": "main", "ports": ports}, {"name": "side", "image": "s"}],
    }


def test_the_item_with_all_keys_is_preferred_to_one_with_a_default() -> None:
    fields = {"f:spec": {"f:ports": {'k:{"port":53,"protocol":"UDP"}': {"f:name": {}}}}}
    ports = [{"port": 53, "name": "tcp"}, {"port": 53, "protocol": "UDP", "name": "udp"}]
    metadata = {**NAMES, "managedFields": [entry("me", fields)]}
    found = extracted(from_dict(Service, {"metadata": metadata, "spec": {"ports": ports}}))
    assert found["spec"] == {"ports": [{"port": 53, "protocol": "UDP", "name": "udp"}]}
    only = from_dict(Service, {"metadata": metadata, "spec": {"ports": ports[:1]}})
    assert extracted(only)["spec"] == {"ports": [{"port": 53, "name": "tcp"}]}


def test_sets_indexes_and_whole_values_are_extracted() -> None:
    fields = {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"mine"': {}}},
        "f:spec": {"f:atomic": {}, "f:gone": {}, "f:by": {"i:1": {}, "i:9": {}}, "f:scalar": {"f:below": {}}},
    }
    metadata = {**NAMES, "finalizers": ["other", "mine"], "managedFields": [entry("me", fields)]}
    spec = {"atomic": {"a": [1, {"b": None}]}, "by": [1, 2], "scalar": 3, "else": 4}
    found = extracted(Widget.of({"metadata": metadata, "spec": spec}))
    assert found["metadata"]["finalizers"] == ["mine"]
    assert found["spec"] == {"atomic": {"a": [1, {"b": None}]}, "by": [2], "scalar": 3}


def test_an_empty_map_that_was_applied_is_extracted_without_what_others_put_into_it() -> None:
    mine = entry("me", {"f:data": {}, "f:metadata": {"f:labels": {}}})
    other = entry("other", {"f:data": {"f:x": {}}})
    found = extracted(config_map(mine, other, x="1"))
    assert found["data"] == {}
    # nobody owns a label, so this is a value that is owned as a whole
    assert found["metadata"]["labels"] == {"mine": "1", "other": "2"}


def test_an_extracted_object_is_encoded_as_it_was_extracted_and_can_be_changed() -> None:
    mine = entry("me", {"f:spec": {"f:replicas": {}, "f:minReadySeconds": {}}})
    metadata = {**NAMES, "managedFields": [mine]}
    obj = from_dict(Deployment, {"metadata": metadata, "spec": {"replicas": 0, "minReadySeconds": 4, "paused": True}})
    found = extract(obj, field_manager="me")
    changed = found.evolve(spec=found.spec.evolve(min_ready_seconds=None))
    assert to_dict(changed)["spec"] == {"replicas": 0}
    assert b"paused" not in encode(found)


def test_an_object_without_managed_fields_is_an_error_not_an_empty_result() -> None:
    with pytest.raises(ValueError, match=r"has no managedFields, .*; read the object without drop_managed_fields$"):
        extract(config_map(x="1"), field_manager="me")


@pytest.mark.parametrize("fields", ["x", [1]])
def test_fields_that_are_no_tree_are_a_decode_error(fields: Any) -> None:
    with pytest.raises(DecodeError, match=r"^managedFields of default/a: the fieldsV1 of 'me' is not an object$"):
        extract(config_map(entry("me", fields), x="1"), field_manager="me")


@pytest.mark.parametrize("step", ["k:", "k:[]", "k:{}", "v:{", "i:x", "i:-1", "?"])
def test_a_step_that_no_server_writes_names_nothing(step: str) -> None:
    metadata = {**NAMES, "managedFields": [entry("me", {"f:spec": {"f:list": {step: {}}, step: {}}})]}
    found = extracted(Widget.of({"metadata": metadata, "spec": {"list": [{"a": 1}, 2]}}))
    assert found["spec"] == {"list": []}


def test_applied_string_data_of_a_secret_cannot_be_extracted() -> None:
    metadata = {**NAMES, "managedFields": [entry("me", {"f:stringData": {"f:a": {}}})]}
    secret = from_dict(Secret, {"metadata": metadata, "data": {"a": "Yg=="}})
    with pytest.raises(ValueError, match=r"^'me' has applied stringData of <Secret default/a.*; apply data instead"):
        extract(secret, field_manager="me")
    assert extracted(secret, "other") == {"metadata": NAMES}
