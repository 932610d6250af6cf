"""The hand-written modules of models: lazy decoding, immutability, encoding without loss."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.levels import TOO_MANY_LEVELS
from trioformer.crds import custom_resource
from trioformer.errors import DecodeError
from trioformer.models import (
    EMPTY_MAP,
    JSON,
    FrozenMap,
    KubernetesObject,
    MicroTime,
    Model,
    ObjectMeta,
    OwnerReference,
    Quantity,
    ResourceInfo,
    Time,
    builtin_kind,
    encode,
    from_dict,
    from_json,
    key_of,
    resource_of,
    to_dict,
)
from trioformer.models._internal import (
    Raw,
    decode,
    dumps,
    encode_for_server,
    level_decoder,
    list_items,
    make_object,
    scan_without_managed_fields,
)
from trioformer.models._kinds import builtin_resources
from trioformer.models._meta import scan_head
from trioformer.models._resources import GroupVersionKind
from trioformer.models._serde import loads
from trioformer.models.core_v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from trioformer.models.meta_v1 import LabelSelector

POD = """{
  "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "unknownField": [1],
               "labels": {"app": "web"}, "creationTimestamp": "2024-05-01T10:00:00Z",
               "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}]},
  "spec": {"nodeName": "worker-1", "hostNetwork": true, "unknownField": {"deep": null},
           "containers": [{"name": "c", "image": "i", "unknownField": 1}, {"name": "d", "image": "j"}]},
  "status": {"phase": "Running", "podIP": "10.0.0.1", "hostIPs": [{"ip": "10.1.1.1"}]}
}"""


def pod() -> Pod:
    return from_json(Pod, POD)


def is_decoded(model: Model, field: str) -> bool:
    """Whether a field has been decoded; does not decode it."""
    try:
        object.__getattribute__(model, field)
    except AttributeError:
        return False
    return True


def decoded_fields(model: Model) -> set[str]:
    return {a.name for a in attrs.fields(type(model)) if a.name != "_origin" and is_decoded(model, a.name)}


def json_of(model: Model) -> Any:
    return json.loads(encode(model))


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Limits(Model):
    """The spec of a custom resource, a model."""

    _json_names: ClassVar[Mapping[str, str]] = {"max_cpu": "maxCPU"}

    max_cpu: Quantity | None = None
    replicas: int = 0
    enabled: bool = True
    mode: str = "auto"
    plan: JSON = None
    renewed: MicroTime | None = None
    labels: Mapping[str, str] = EMPTY_MAP
    hosts: tuple[str, ...] = ()
    windows: tuple[Time, ...] = ()
    odd: str | None = attrs.field(default=None, metadata={"json": "very-odd"})


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class Quota(KubernetesObject):
    """A custom resource whose parts are models."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Quota", plural="quotas", namespaced=False
    )

    spec: Limits = Limits()


@attrs.frozen
class Toppings:
    """The spec of a custom resource, an attrs class that is not a model."""

    size: Quantity
    bake_until: Time | None = None
    template: PodTemplateSpec | None = None
    port: int | str = 0
    raw: bytes = b""
    extras: Mapping[str, int] = EMPTY_MAP
    free: JSON = None


@attrs.frozen(kw_only=True)
class Pizza(KubernetesObject):
    """A custom resource whose spec is an attrs class that is not a model."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Pizza", plural="pizzas", namespaced=True
    )

    spec: Toppings


# ------------------------------------------------------------------------------------------------- lazy decoding


def test_an_unread_object_has_no_decoded_field() -> None:
    assert decoded_fields(pod()) == set()
    assert decoded_fields(make_object(Pod, POD.encode())) == set()


def test_names_are_read_without_decoding_the_metadata() -> None:
    obj = pod()
    assert (obj.name, obj.namespace, obj.uid, obj.resource_version) == ("web-0", "shop", "u1", "7")
    assert key_of(obj) == obj.key == "shop/web-0"
    assert decoded_fields(obj) == set()


def test_the_first_read_decodes_one_field_and_the_second_the_level() -> None:
    status = pod().status
    assert status.phase == "Running"
    assert decoded_fields(status) == {"phase"}
    assert status.pod_ip == "10.0.0.1"
    assert decoded_fields(status) == {a.name for a in attrs.fields(PodStatus)} - {"_origin"}


def test_reading_a_level_decodes_no_objects_below_it() -> None:
    spec = pod().spec
    assert spec.node_name == "worker-1"
    assert spec.host_network is True
    assert [decoded_fields(container) for container in spec.containers] == [set(), set()]


@pytest.mark.parametrize(
    "order",
    [
        ("spec", "status", "metadata"),
        ("status", "spec", "metadata"),
        ("metadata", "status", "spec"),
        ("api_version", "spec", "status"),
        ("spec", "api_version", "spec"),
    ],
)
def test_an_attribute_is_the_same_object_at_each_read(order: tuple[str, ...]) -> None:
    for obj in (pod(), make_object(Pod, POD.encode())):
        first_read = {name: getattr(obj, name) for name in order}
        for field in attrs.fields(Pod):
            getattr(obj, field.name)
        assert all(getattr(obj, name) is value for name, value in first_read.items())


def test_managed_fields_are_decoded_only_when_they_are_read() -> None:
    metadata = pod().metadata
    assert metadata.name == "web-0"
    assert metadata.labels == {"app": "web"}
    assert not is_decoded(metadata, "managed_fields")
    assert metadata.managed_fields[0].fields_v1 == {"f:spec": {}}
    assert metadata.managed_fields is metadata.managed_fields


def test_reading_managed_fields_first_decodes_no_other_field() -> None:
    metadata = pod().metadata
    assert metadata.managed_fields[0].manager == "kubectl"
    assert decoded_fields(metadata) == {"managed_fields"}
    assert metadata.name == "web-0"
    assert decoded_fields(metadata) == {"managed_fields", "name"}


def test_absent_and_null_read_as_defaults() -> None:
    for text in ('{"metadata": {}}', '{"metadata": null, "spec": null, "status": {"conditions": null, "phase": null}}'):
        obj = from_json(Pod, text)
        assert obj.spec == PodSpec()
        assert (obj.status.conditions, obj.status.phase) == ((), None)
        assert obj.metadata.labels == {}
        assert (obj.name, obj.namespace, obj.uid, obj.resource_version, key_of(obj)) == ("", None, "", "", "")


@pytest.mark.parametrize(
    "text", ["{}", '{"spec": {"nodeName": "n"}}', '{"metadata": {"name": "a", "namespace": null}}']
)
def test_an_object_may_have_no_metadata(text: str) -> None:
    obj = from_json(Pod, text)
    assert obj.spec.node_name == json.loads(text).get("spec", {}).get("nodeName")
    assert obj.name == json.loads(text).get("metadata", {}).get("name", "")
    assert obj.namespace is None


def test_a_list_item_has_kind_and_api_version() -> None:
    assert (pod().api_version, pod().kind) == ("v1", "Pod")


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    for obj in (pod(), Pod(), pod().spec, ObjectMeta()):
        with pytest.raises(AttributeError, match=r"object has no attribute 'nodename'"):
            obj.nodename  # type: ignore[attr-defined]  # noqa: B018
        assert not hasattr(obj, "spec_")


# ------------------------------------------------------------------------------------------- invalid JSON


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metadata.name", '{"metadata": {"name": 5}}'),
        ("metadata.labels", '{"metadata": {"labels": {"a": 1}}}'),
        ("metadata.labels", '{"metadata": {"labels": []}}'),
        ("metadata.creation_timestamp", '{"metadata": {"creationTimestamp": "yesterday"}}'),
        ("metadata.creation_timestamp", '{"metadata": {"creationTimestamp": 5}}'),
        ("metadata.owner_references", '{"metadata": {"ownerReferences": {}}}'),
        ("spec.node_name", '{"spec": []}'),
        ("spec.overhead", '{"spec": {"overhead": {"cpu": []}}}'),
        ("spec.overhead", '{"spec": {"overhead": {"cpu": true}}}'),
        ("spec.overhead", '{"spec": {"overhead": 5}}'),
        ("spec.host_network", '{"spec": {"hostNetwork": "yes"}}'),
    ],
)
def test_invalid_json_raises_decode_error_when_the_field_is_read(path: str, text: str) -> None:
    parent, name = path.split(".")
    part = getattr(from_json(Pod, text), parent)
    for _ in range(3):  # every read raises
        with pytest.raises(DecodeError, match=rf"^cannot decode \w+\.{name}: [^\n]+$") as caught:
            getattr(part, name)
        assert caught.value.__cause__ is caught.value.__context__ is None  # whose text could quote the value


def test_json_does_not_add_attributes_to_a_kind() -> None:
    assert not hasattr(from_json(ConfigMap, '{"metadata": {}, "spec": {}}'), "spec")


def test_hasattr_does_not_hide_invalid_json() -> None:
    with pytest.raises(DecodeError):
        hasattr(from_json(Pod, '{"spec": {"overhead": 5}}').spec, "overhead")


@pytest.mark.parametrize("read_first", [("phase", "pod_ip"), ("phase",), ()])
def test_an_invalid_field_does_not_affect_the_others(read_first: tuple[str, ...]) -> None:
    text = '{"phase": "Running", "startTime": "?", "podIP": "10.0.0.1", "conditions": []}'
    status = from_json(PodStatus, text)
    for name in read_first:
        getattr(status, name)
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"PodStatus\.start_time"):
            status.start_time  # noqa: B018
    assert (status.phase, status.pod_ip, status.conditions) == ("Running", "10.0.0.1", ())


def test_reading_an_invalid_field_again_keeps_the_other_objects() -> None:
    pod_with_bad_kind = from_json(Pod, '{"kind": 5, "metadata": {}, "spec": {}, "status": {}}')
    parts = (pod_with_bad_kind.spec, pod_with_bad_kind.status, pod_with_bad_kind.metadata)
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"Pod\.kind"):
            pod_with_bad_kind.kind  # noqa: B018
    again = (pod_with_bad_kind.spec, pod_with_bad_kind.status, pod_with_bad_kind.metadata)
    assert [one is other for one, other in zip(parts, again, strict=True)] == [True, True, True]


def test_a_second_read_of_a_level_that_is_not_an_object_raises_too() -> None:
    obj = from_json(Pod, '{"status": []}')
    for name in ("phase", "reason"):
        with pytest.raises(DecodeError, match="PodStatus"):
            getattr(obj.status, name)


def test_invalid_json_raises_at_the_second_read_of_a_level() -> None:
    broken = make_object(Pod, POD.encode(), scan_head(POD.encode()))
    object.__setattr__(broken, "_origin", b'{"spec":')
    object.__setattr__(broken, "_once", "metadata")
    with pytest.raises(DecodeError, match="cannot decode Pod: "):
        broken.status  # noqa: B018


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "{", '{"a": 1}}', b"\xff"])
def test_from_json_raises_for_anything_but_a_json_object(text: str | bytes) -> None:
    with pytest.raises(DecodeError, match=r"^cannot decode Pod: "):
        from_json(Pod, text)


def test_make_object_raises_without_metadata() -> None:
    with pytest.raises(DecodeError, match="an object's metadata"):
        make_object(Pod, b"{}")
    with pytest.raises(DecodeError, match="an object's metadata"):
        scan_head(b'{"metadata": {"name": 5}}')


# ------------------------------------------------------------------------------------------- encoding


def test_an_unchanged_object_encodes_to_its_bytes() -> None:
    raw = POD.encode()
    assert encode(from_json(Pod, raw)) == raw
    read = from_json(Pod, raw)
    assert (read.spec.node_name, read.status.phase, read.metadata.labels["app"]) == ("worker-1", "Running", "web")
    assert encode(read) == raw


def test_a_change_keeps_unknown_fields() -> None:
    before = pod()
    after = before.evolve(spec=before.spec.evolve(node_name="worker-2"))
    wanted = json.loads(POD)
    wanted["spec"]["nodeName"] = "worker-2"
    assert json_of(after) == wanted
    assert before.spec.node_name == "worker-1"


def test_a_change_inside_a_list_keeps_unknown_fields() -> None:
    before = pod()
    first, second = before.spec.containers
    containers = (first.evolve(image="new"), second)
    after = before.evolve(spec=before.spec.evolve(containers=containers))
    wanted = json.loads(POD)
    wanted["spec"]["containers"][0]["image"] = "new"
    assert json_of(after) == wanted


def test_unchanged_values_keep_their_bytes() -> None:
    text = (
        '{"conditions":null,"hostIPs":[],"phase":"Running","reason":null,"startTime":"2024-01-01T00:00:00.000Z",'
        '"extendedResourceClaimStatus":{},"message":"\\u00e9"}'
    )
    status = from_json(PodStatus, text)
    assert encode(status.evolve()) == text.encode()
    changed = encode(status.evolve(phase="Failed"))
    assert changed == text.replace("Running", "Failed").encode()


def test_an_absent_field_is_added_only_with_a_value() -> None:
    status = from_json(PodStatus, '{"phase": "Running"}')
    same = status.evolve(conditions=(), message=None)
    assert json_of(same) == {"phase": "Running"}
    assert json_of(status.evolve(message="")) == {"phase": "Running", "message": ""}


@pytest.mark.parametrize(
    ("text", "changes", "wanted"),
    [
        ('{"phase": "Running"}', {"phase": None}, {}),
        ('{"phase": "Running"}', {"phase": ""}, {"phase": ""}),
        ('{"phase": null}', {"phase": None}, {"phase": None}),
        ('{"phase": null}', {"phase": "x"}, {"phase": "x"}),
        ('{"hostIPs": [{"ip": "1"}]}', {"host_ips": ()}, {}),
        ('{"hostIPs": []}', {"host_ips": ()}, {"hostIPs": []}),
        ('{"resourceClaimStatuses": null}', {"resource_claim_statuses": ()}, {"resourceClaimStatuses": None}),
    ],
)
def test_changed_fields_are_merged_by_rules(text: str, changes: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert json_of(from_json(PodStatus, text).evolve(**changes)) == wanted


@pytest.mark.parametrize(
    ("text", "changes", "wanted"),
    [
        # The server's default for an absent scalar may be another, so a scalar is encoded even if it is the default.
        ('{"replicas": 3}', {"replicas": 0}, {"replicas": 0}),
        ('{"mode": "manual"}', {"mode": "auto"}, {"mode": "auto"}),
        ('{"enabled": false}', {"enabled": True}, {"enabled": True}),
        # An empty list or map that the program gives is one; None removes it.
        ('{"labels": {"a": "b"}}', {"labels": EMPTY_MAP}, {"labels": {}}),
        ('{"labels": {"a": "b"}}', {"labels": {}}, {"labels": {}}),
        ('{"labels": {"a": "b"}}', {"labels": None}, {}),
        ('{"hosts": ["a"]}', {"hosts": ()}, {"hosts": []}),
        ('{"hosts": null}', {"hosts": ()}, {"hosts": []}),
        ('{"hosts": null}', {"hosts": None}, {"hosts": None}),
        ("{}", {"hosts": ()}, {"hosts": []}),
        ("{}", {"replicas": 0, "enabled": True, "mode": "auto"}, {"replicas": 0, "enabled": True, "mode": "auto"}),
        ("{}", {"hosts": None, "mode": None}, {}),
        ('{"replicas": null}', {"replicas": 0}, {"replicas": 0}),
        ('{"labels": {}}', {"labels": {}}, {"labels": {}}),
        # Free-form JSON: an empty value is encoded too.
        ('{"plan": 5}', {"plan": {}}, {"plan": {}}),
        ('{"plan": 5}', {"plan": ()}, {"plan": []}),
        ('{"plan": {"a": [1, {"b": null}]}}', {"plan": None}, {}),
        ('{"maxCPU": "1"}', {"max_cpu": Quantity("1000m")}, {"maxCPU": "1000m"}),
        ('{"maxCPU": 2}', {"max_cpu": Quantity("2")}, {"maxCPU": 2}),
        ('{"maxCPU": 1}', {"max_cpu": Quantity("2")}, {"maxCPU": "2"}),
        ('{"very-odd": "x"}', {"odd": "y"}, {"very-odd": "y"}),
    ],
)
def test_changed_fields_of_custom_resources_are_merged_by_rules(
    text: str, changes: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert json_of(from_json(Limits, text).evolve(**changes)) == wanted


def test_an_emptied_part_keeps_unknown_fields() -> None:
    before = from_json(Service, '{"metadata": {}, "spec": {"type": "NodePort", "new": 1}}')
    after = before.evolve(spec=before.spec.evolve(type=None))
    assert json_of(after)["spec"] == {"new": 1}


def test_a_changed_api_version_is_encoded_although_it_is_the_default() -> None:
    stored = from_json(Pod, '{"apiVersion": "v0", "kind": "Pod", "metadata": {}}')
    assert json_of(stored.evolve(api_version="v1"))["apiVersion"] == "v1"


def test_a_part_of_another_object_keeps_all_fields() -> None:
    new = Pod(metadata=ObjectMeta(name="copy"), spec=pod().spec)
    assert json_of(new)["spec"] == json.loads(POD)["spec"]


def test_a_new_object_omits_its_defaults() -> None:
    new = Pod(metadata=ObjectMeta(name="a"), spec=PodSpec(containers=(Container(name="c"),), host_network=False))
    assert json_of(new) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c"}], "hostNetwork": False},
    }
    assert json_of(Container(name="c", ports=(ContainerPort(host_ip="::1"),)))["ports"] == [{"hostIP": "::1"}]


def test_an_unset_optional_part_is_omitted() -> None:
    assert json_of(Quota(spec=Limits(labels={"a": "b"})))["spec"] == {"labels": {"a": "b"}}
    selecting = from_dict(Pod, {"spec": {}})
    assert json_of(selecting.spec.evolve(affinity=None)) == {}
    assert LabelSelector() == from_json(LabelSelector, "{}")


def test_a_request_body_has_kind_and_api_version() -> None:
    assert json.loads(encode_for_server(pod())) == {"apiVersion": "v1", "kind": "Pod", **json.loads(POD)}
    complete = b'{"kind":"Pod","apiVersion":"v1","metadata":{}}'
    assert encode_for_server(from_json(Pod, complete)) is not None
    assert encode_for_server(from_json(Pod, complete)) == complete
    kind_only = from_json(Pod, '{"kind": "Pod", "metadata": {}}')
    assert list(json.loads(encode_for_server(kind_only))) == ["apiVersion", "kind", "metadata"]


# ------------------------------------------------------------------------------------------- dicts


def test_dicts_go_in_and_come_out() -> None:
    manifest = {"metadata": {"name": "a", "labels": MappingProxyType({"b": "c"})}, "spec": {"nodeName": "n"}}
    obj = from_dict(Pod, manifest)
    assert (obj.name, obj.metadata.labels, obj.spec.node_name) == ("a", {"b": "c"}, "n")
    out = to_dict(obj)
    assert out == {"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"nodeName": "n"}}
    out["metadata"]["labels"]["b"] = "changed"
    assert obj.metadata.labels == {"b": "c"}


def test_a_dict_may_contain_models_and_their_values() -> None:
    spec = from_json(PodSpec, '{"nodeName": "n", "new": 1}')
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    obj = from_dict(Pod, {"metadata": {"creationTimestamp": moment, "labels": FrozenMap(a="b")}, "spec": spec})
    assert obj.metadata.creation_timestamp == moment
    assert to_dict(obj)["spec"] == {"nodeName": "n", "new": 1}
    assert from_dict(Limits, {"maxCPU": Quantity("1")}).max_cpu == Quantity("1")


@pytest.mark.parametrize("value", [object(), {1, object()}, {(): 1}])
def test_a_dict_that_cannot_be_encoded_raises(value: object) -> None:
    with pytest.raises(DecodeError, match=r"^cannot decode Pod: "):
        from_dict(Pod, {"spec": value})


# ------------------------------------------------------------------------------------------- immutability


@pytest.mark.parametrize("obj", [pod(), Pod(), pod().spec, PodSpec(node_name="x")])
def test_no_attribute_can_be_set_or_deleted(obj: Any) -> None:
    for name in ("spec", "node_name", "new"):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(obj, name, None)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            delattr(obj, name)


def test_collections_passed_to_a_constructor_are_frozen() -> None:
    containers, labels = [Container(name="c", args=["-v"])], {"a": "b"}
    spec = PodSpec(containers=containers)  # type: ignore[arg-type]  # a list is accepted at run time
    metadata = ObjectMeta(labels=labels, annotations=MappingProxyType({"c": "d"}))
    containers.clear()
    labels.clear()
    assert spec.containers == (Container(name="c", args=("-v",)),)
    assert spec.containers[0].args == ("-v",)
    assert metadata.labels == {"a": "b"}
    assert (type(metadata.labels), type(metadata.annotations)) == (FrozenMap, FrozenMap)
    plan = Limits(plan={"a": [{"b": [1]}]}).plan
    assert plan == {"a": ({"b": (1,)},)}


def test_collections_passed_to_evolve_are_frozen() -> None:
    data: Any = {"a": ["b"]}
    assert Limits().evolve(plan=data).plan == {"a": ("b",)}


def test_decoded_collections_are_frozen() -> None:
    assert type(pod().metadata.labels) is FrozenMap
    assert type(pod().spec.containers) is tuple
    free = from_json(Limits, '{"plan": {"a": [{"b": []}]}}').plan
    assert free == {"a": ({"b": ()},)}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setitem__("a", 1),
        lambda m: m.__delitem__("a"),
        lambda m: m.clear(),
        lambda m: m.pop("a"),
        lambda m: m.popitem(),
        lambda m: m.setdefault("b", 1),
        lambda m: m.update(b=1),
        lambda m: m.__ior__({"b": 1}),
    ],
)
def test_a_frozen_map_raises_at_every_change(change: Any) -> None:
    frozen = FrozenMap(a=1)
    with pytest.raises(TypeError, match="mapping in a model cannot be changed"):
        change(frozen)
    assert frozen == {"a": 1}


def test_a_frozen_map_hashes_copies_and_pickles() -> None:
    frozen = FrozenMap(a=FrozenMap(b=()))
    assert hash(frozen) == hash(FrozenMap(a=2))
    assert copy.copy(frozen) is frozen
    assert copy.deepcopy(frozen) is frozen
    again = pickle.loads(pickle.dumps(frozen))
    assert (again, type(again), type(again["a"])) == (frozen, FrozenMap, FrozenMap)
    assert frozen | {"c": 1} == {"a": {"b": ()}, "c": 1}
    assert type(frozen.copy()) is dict


# ------------------------------------------------------------------------------------------- eq, hash, repr, pickle


def test_objects_are_equal_when_their_json_is() -> None:
    assert pod() == pod()
    assert pod() == from_json(Pod, json.dumps(json.loads(POD), sort_keys=True))
    assert from_json(PodSpec, "{}") == PodSpec()
    assert from_json(PodSpec, '{"a": 1}') != PodSpec()
    assert pod() != pod().evolve(spec=PodSpec())
    assert PodSpec() != PodStatus()
    assert PodSpec() != "PodSpec"
    same = pod()
    assert same == same  # without a comparison of fields


def test_equal_objects_have_equal_hashes() -> None:
    assert hash(pod()) == hash(from_json(Pod, json.dumps(json.loads(POD))))
    assert {pod(), pod()} == {pod()}
    assert hash(pod().metadata) == hash(pod().metadata)
    assert hash(ObjectMeta(name="a")) != hash(ObjectMeta(name="b"))


def test_the_hash_of_an_object_decodes_no_field() -> None:
    obj = pod()
    hash(obj)
    assert decoded_fields(obj) == set()


def test_a_repr_is_short() -> None:
    assert repr(pod()) == "<Pod shop/web-0 at 7>"
    assert repr(Quota(metadata=ObjectMeta(name="q"))) == "<Quota q>"
    assert repr(PodSpec(node_name="n", host_network=True)) == "PodSpec(host_network=True, node_name='n')"
    metadata = repr(pod().metadata)
    assert "managed_fields" not in metadata
    assert repr(ObjectMeta(name="n" * 100)) == f"ObjectMeta(name='{'n' * 59}…)"


def test_a_copy_of_a_model_is_the_model_and_a_pickle_is_equal() -> None:
    changed = pod().evolve(spec=pod().spec.evolve(node_name="x"))
    for obj in (pod(), Pod(metadata=ObjectMeta(name="a")), changed, pod().spec):
        assert copy.copy(obj) is obj
        assert copy.deepcopy(obj) is obj
        again = pickle.loads(pickle.dumps(obj))
        assert again == obj
        assert json_of(again) == json_of(obj)


# ------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01T10:00:00.25Z", datetime(2024, 5, 1, 10, 0, 0, 250_000, tzinfo=UTC)),
        ("2024-05-01T12:00:00+02:00", datetime(2024, 5, 1, 10, tzinfo=UTC)),
    ],
)
def test_times_are_decoded_in_every_format_of_the_api(text: str, moment: datetime) -> None:
    metadata = from_dict(ObjectMeta, {"creationTimestamp": text})
    assert metadata.creation_timestamp == moment
    assert json_of(metadata.evolve(name="a"))["creationTimestamp"] == text


def test_times_are_encoded_in_utc() -> None:
    there = datetime(2024, 5, 1, 12, 30, 15, 987_654, tzinfo=timezone(timedelta(hours=2)))
    assert json_of(ObjectMeta(deletion_timestamp=there)) == {"deletionTimestamp": "2024-05-01T10:30:15Z"}
    assert json_of(Limits(renewed=there)) == {"renewed": "2024-05-01T10:30:15.987654Z"}
    assert json_of(Limits(renewed=datetime(2024, 1, 1, tzinfo=UTC))) == {"renewed": "2024-01-01T00:00:00.000000Z"}
    assert json_of(Limits(windows=(there,))) == {"windows": ["2024-05-01T10:30:15Z"]}
    ancient = datetime(1, 1, 1, tzinfo=UTC)
    assert json_of(ObjectMeta(deletion_timestamp=ancient)) == {"deletionTimestamp": "0001-01-01T00:00:00Z"}
    assert json_of(Limits(renewed=ancient)) == {"renewed": "0001-01-01T00:00:00.000000Z"}


def test_a_time_without_a_time_zone_cannot_be_encoded() -> None:
    naive = datetime(2024, 1, 1)
    for model in (ObjectMeta(deletion_timestamp=naive), Limits(renewed=naive)):
        with pytest.raises(ValueError, match="a time needs a time zone"):
            encode(model)


@given(st.datetimes(timezones=st.just(UTC)))
@example(datetime(1, 1, 1, tzinfo=UTC))
@example(datetime(999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
def test_micro_times_round_trip_and_times_lose_only_their_fraction(moment: datetime) -> None:
    assert from_json(Limits, encode(Limits(renewed=moment))).renewed == moment
    time = from_json(ObjectMeta, encode(ObjectMeta(deletion_timestamp=moment))).deletion_timestamp
    assert time == moment.replace(microsecond=0)


# ------------------------------------------------------------------------------------------- scalars


@pytest.mark.parametrize("value", [80, "http", 0, ""])
def test_a_port_is_a_number_or_a_name(value: int | str) -> None:
    port = from_dict(ServicePort, {"targetPort": value})
    assert port.target_port == value
    assert type(port.target_port) is type(value)
    assert json_of(ServicePort(target_port=value)) == {"targetPort": value}
    with pytest.raises(DecodeError, match=r"ServicePort\.target_port"):
        from_dict(ServicePort, {"targetPort": 1.5}).target_port  # noqa: B018


def test_bytes_are_encoded_as_base64() -> None:
    secret = from_json(Secret, '{"metadata": {}, "data": {"key": "AP8h", "empty": ""}}')
    assert secret.data == {"key": b"\x00\xff!", "empty": b""}
    changed = secret.evolve(data={**secret.data, "new": b"\xfe"})
    assert json_of(changed)["data"] == {"key": "AP8h", "empty": "", "new": "/g=="}
    with pytest.raises(DecodeError, match=r"Secret\.data"):
        from_json(Secret, '{"data": {"key": "!"}}').data  # noqa: B018


def test_free_form_json_is_decoded_frozen_and_encoded_as_it_was() -> None:
    plan = {"a": [1, 2.5, None, True, {"b": "c"}], "d": {}}
    limits = from_dict(Limits, {"plan": plan})
    assert limits.plan == {"a": (1, 2.5, None, True, {"b": "c"}), "d": {}}
    assert hash(limits) == hash(from_dict(Limits, {"plan": plan}))
    assert json_of(Limits(plan=limits.plan)) == {"plan": plan}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("100m", "0.1"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-1", "-1"),
        ("+1k", "1000"),
        ("1n", "0.000000001"),
        ("2u", "0.000002"),
        ("2M", "2000000"),
        ("2G", "2000000000"),
        ("1T", "1e12"),
        ("1P", "1e15"),
        ("1E", "1e18"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("1Mi", "1048576"),
        ("1Ti", str(2**40)),
        ("1Pi", str(2**50)),
        ("1Ei", str(2**60)),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("12e-1", "1.2"),
    ],
)
def test_quantities_have_exact_values(text: str, value: str) -> None:
    quantity = Quantity(text)
    assert quantity.value == Decimal(value)
    assert str(quantity) == text
    assert repr(quantity) == f"Quantity({text!r})"
    assert from_json(Limits, json.dumps({"maxCPU": text})).max_cpu == quantity


@pytest.mark.parametrize("text", ["", "m", "1 k", "1KI", "1.2.3", "0x1", "1mi", "1e", "--1", "1ee3", "٣"])
def test_an_invalid_quantity_has_no_value(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(text).value  # noqa: B018


def test_quantities_compare_by_value_and_keep_their_text() -> None:
    assert Quantity("1") == Quantity("1000m")
    assert Quantity("1Ki") > Quantity("1k")
    assert sorted([Quantity("1"), Quantity("100m"), Quantity("2")]) == [Quantity("100m"), Quantity("1"), Quantity("2")]
    assert len({Quantity("1"), Quantity("1000m"), Quantity("1.0")}) == 1
    assert Quantity("x") == Quantity("x")
    assert Quantity("1") != "1"
    with pytest.raises(TypeError):
        Quantity("1") < 1  # noqa: B015
    resized = from_json(Limits, '{"maxCPU": 2}')
    assert resized.max_cpu == Quantity("2")
    assert encode(resized) == b'{"maxCPU": 2}'


# ------------------------------------------------------------------------------------------- custom resources


def test_a_custom_resource_of_models_behaves_like_a_built_in_kind() -> None:
    quota = Quota(metadata=ObjectMeta(name="q"), spec=Limits(max_cpu=Quantity("4"), hosts=("a",)))
    assert json_of(quota) == {
        "apiVersion": "example.com/v1",
        "kind": "Quota",
        "metadata": {"name": "q"},
        "spec": {"maxCPU": "4", "hosts": ["a"]},
    }
    assert from_json(Quota, encode(quota)) == quota
    assert key_of(quota) == "q"
    assert resource_of(Quota).path(name="q") == "/apis/example.com/v1/quotas/q"


def test_a_custom_resource_may_have_a_plain_attrs_class_as_its_spec() -> None:
    text = {
        "metadata": {"name": "margherita", "namespace": "kitchen"},
        "spec": {
            "size": "30m",
            "bakeUntil": "2024-01-01T00:00:00Z",
            "template": {"spec": {"nodeName": "oven", "unknownField": 1}},
            "port": "http",
            "raw": "AP8h",
            "extras": {"olives": 3},
            "free": {"a": [1]},
        },
    }
    pizza = from_dict(Pizza, text)
    assert pizza.spec.template is not None
    assert pizza.spec.template.spec.node_name == "oven"
    assert pizza.spec == Toppings(
        size=Quantity("30m"),
        bake_until=datetime(2024, 1, 1, tzinfo=UTC),
        template=from_dict(PodTemplateSpec, {"spec": {"nodeName": "oven", "unknownField": 1}}),
        port="http",
        raw=b"\x00\xff!",
        extras={"olives": 3},
        free={"a": (1,)},
    )
    assert pizza.spec is pizza.spec
    bigger = pizza.evolve(spec=attrs.evolve(pizza.spec, size=Quantity("40m")))
    wanted = copy.deepcopy(text)
    wanted["spec"]["size"] = "40m"
    assert json_of(bigger) == wanted
    # Such a class does not know which of its fields were given, so all but None are encoded.
    assert json_of(Pizza(spec=Toppings(Quantity("1"))))["spec"] == {"size": "1", "port": 0, "raw": "", "extras": {}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "required field missing @ .size"),
        ({"size": []}, "a string or a number @ .size"),
        ({"size": "1", "bakeUntil": 5}, "@ .bake_until"),
        ({"size": "1", "extras": 5}, "@ .extras"),
        ({"size": "1", "port": 1.5}, "@ .port"),
        (5, "expected an object, got int"),
    ],
)
def test_invalid_json_of_an_attrs_class_is_a_decode_error(spec: object, text: str) -> None:
    obj = from_dict(Pizza, {"metadata": {"name": "a"}, "spec": spec})
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"^cannot decode Pizza\.spec: [^\n]+$") as caught:
            obj.spec  # noqa: B018
        assert text in str(caught.value)
    assert obj.metadata.name == "a"


def test_a_class_without_slots_raises() -> None:
    @attrs.frozen(kw_only=True, slots=False)
    class Loose(Model):
        value: int = 0

    with pytest.raises(TypeError, match=r"Loose\.value has no slot; make the class with @attrs.frozen"):
        from_json(Loose, "{}").value  # noqa: B018


def test_a_class_without_a_resource_is_not_a_kind() -> None:
    for cls in (KubernetesObject, PodSpec, int):
        with pytest.raises(TypeError, match="is not a kind: it needs __resource__"):
            resource_of(cls)


# ------------------------------------------------------------------------------------------- heads, kinds, names


def test_a_head_has_namespace_name_uid_and_version() -> None:
    head = pod()._head
    metadata = head.metadata
    assert (metadata.namespace, metadata.name, metadata.uid, metadata.resourceVersion) == ("shop", "web-0", "u1", "7")
    assert head.key == "shop/web-0"
    given_head = scan_head(POD.encode())
    assert make_object(Pod, POD.encode(), given_head)._head is given_head


def test_a_new_object_has_a_head() -> None:
    new = Pod(metadata=ObjectMeta(name="a", namespace="b", uid="c", resource_version="9"))
    assert (new.name, new.namespace, new.uid, new.resource_version, key_of(new)) == ("a", "b", "c", "9", "b/a")
    renamed = pod().evolve(metadata=pod().metadata.evolve(name="z"))
    assert (renamed.name, key_of(renamed)) == ("z", "shop/z")
    cluster_wide = Quota(metadata=ObjectMeta(name="q", namespace=""))
    assert (cluster_wide.namespace, key_of(cluster_wide)) == (None, "q")


def test_a_resource_has_the_paths_of_the_api() -> None:
    pods = resource_of(Pod)
    assert pods.path() == "/api/v1/pods"
    assert pods.path(namespace="a") == "/api/v1/namespaces/a/pods"
    assert pods.path(namespace="a", name="b", subresource="status") == "/api/v1/namespaces/a/pods/b/status"
    leases = resource_of(builtin_kind("coordination.k8s.io/v1", "Lease"))
    assert leases.path(namespace="a") == "/apis/coordination.k8s.io/v1/namespaces/a/leases"
    nodes = resource_of(builtin_kind("v1", "Node"))
    assert nodes.path(namespace="ignored", name="n") == "/api/v1/nodes/n"
    assert (str(pods), str(leases)) == ("pods", "leases.coordination.k8s.io")
    assert leases.gvk == GroupVersionKind("coordination.k8s.io", "v1", "Lease")
    assert (pods.api_version, leases.gvk.api_version) == ("v1", "coordination.k8s.io/v1")
    assert (pods.singular, resource_of(Quota).singular) == ("pod", "quota")
    assert "watch" in resource_of(Quota).verbs


def test_built_in_kinds_are_found_by_name() -> None:
    assert builtin_kind("v1", "Pod") is Pod
    assert builtin_kind("v1", "ConfigMap") is ConfigMap
    assert resource_of(Pod) in builtin_resources()
    with pytest.raises(LookupError, match=r"^v2 Pod is not a built-in kind; write a class for a custom kind$"):
        builtin_kind("v2", "Pod")


def test_beta_versions_of_built_in_kinds_have_classes_of_their_own() -> None:
    stable, beta = (builtin_kind(f"networking.k8s.io/{version}", "ServiceCIDR") for version in ("v1", "v1beta1"))
    assert (stable.__module__, beta.__module__) == (
        "trioformer.models.networking_v1",
        "trioformer.models.networking_v1beta1",
    )
    assert resource_of(beta).path(name="a") == "/apis/networking.k8s.io/v1beta1/servicecidrs/a"
    stable_resources, resources = builtin_resources(), builtin_resources(beta=True)
    assert resources[: len(stable_resources)] == stable_resources
    assert resource_of(beta) not in stable_resources
    assert {info.version for info in resources[len(stable_resources) :]} == {"v1beta1", "v1beta2"}


def test_importing_models_imports_no_generated_class() -> None:
    program = "import re, sys, trioformer.models; print([m for m in sys.modules if re.search(r'models\\..+_v\\d', m)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------- levels


def test_level_decoder_and_list_items_return_raw_values() -> None:
    find = level_decoder(("b", "missing"))
    found, missing = find(b'{"a": 1, "b": {"c": [ ]}}')
    assert bytes(found) == b'{"c": [ ]}'
    assert bytes(missing) == b""
    assert [bytes(item) for item in list_items(b"[1, {}]")] == [b"1", b"{}"]
    assert list_items(b"null") == []
    assert list_items(Raw(b"null")) == []
    for read in (find, list_items):
        with pytest.raises(ValueError, match="Expected `"):
            read(b"5")
        with pytest.raises(ValueError, match="truncated"):
            read(b"")


def test_json_with_too_many_levels_raises() -> None:
    deep = b"[" * TOO_MANY_LEVELS + b"]" * TOO_MANY_LEVELS
    obj = b'{"metadata": {}, "spec": ' + deep + b"}"
    with pytest.raises(DecodeError, match=r"^cannot decode JSON: "):
        decode(deep)
    for read in (scan_head, lambda data: from_json(Pod, data)):
        with pytest.raises(DecodeError):
            read(obj)
    with pytest.raises(RecursionError):
        list_items(deep)


def test_json_is_decoded_to_mutable_or_frozen_values() -> None:
    assert decode(b'{"a": [1]}') == {"a": [1]}
    assert loads(b'{"a": [1, {"b": []}]}') == {"a": (1, {"b": ()})}
    assert dumps({"a": (1, None), "b": b"\x00"}) == b'{"a":[1,null],"b":"AA=="}'
    assert dumps(MappingProxyType({"a": 1})) == b'{"a":1}'
    with pytest.raises(TypeError, match="a object cannot be encoded as JSON"):
        dumps([object()])
    for read in (decode, loads):
        with pytest.raises(DecodeError, match=r"^cannot decode JSON: "):
            read(b"{")


@pytest.mark.parametrize(
    ("model", "raw"),
    [
        (ObjectMeta(owner_references=(OwnerReference(uid="u"),)), b'{"ownerReferences":[{"uid":"u"}]}'),
        (ServiceSpec(cluster_ip="None", cluster_ips=("None",)), b'{"clusterIP":"None","clusterIPs":["None"]}'),
    ],
)
def test_encoded_names_are_those_of_the_api(model: Model, raw: bytes) -> None:
    assert encode(model) == raw
    assert from_json(type(model), raw) == model


MANAGED = '[{"manager":"kubelet","operation":"Update","fieldsV1":{"f:status":{"f:phase":{}}}}]'


@pytest.mark.parametrize(
    "form",
    [
        '{"metadata":{"name":"a","managedFields":%s,"uid":"u"},"spec":{}}',
        '{"metadata":{"managedFields":%s,"name":"a"},"spec":{}}',
        '{"metadata":{"name":"a","managedFields":%s}}',
        '{"metadata":{"managedFields":%s}}',
        '{ "metadata": { "name": "a", "managedFields": %s } }',
        '{"metadata":{"name":"a",\r "managedFields":%s}}',
        '{"metadata":{"managedFields":%s ,"name":"a"}}',
        '{"spec":{"template":{"metadata":{"managedFields":%s}}},"metadata":{"name":"a"}}',
        '{"spec":{"x":{"managedFields":[]}},"metadata":{"name":"a","managedFields":%s}}',
        '{"spec":{"x":{"managedFields":[{"manager":"kubelet"}]}},"metadata":{"name":"a","managedFields":%s}}',
        '{"metadata":{"annotations":{"last":"{\\"managedFields\\":[]}"},"name":"a","managedFields":%s}}',
        '{"metadata":{"name":"a"},"note":%s}',
    ],
)
def test_only_managed_fields_are_removed(form: str) -> None:
    expected = json.loads(form % MANAGED)
    expected["metadata"].pop("managedFields", None)
    kept, head = scan_without_managed_fields((form % MANAGED).encode())
    assert json.loads(kept) == expected
    assert head == scan_head(kept)


def test_equal_managed_fields_of_a_nested_object_are_kept() -> None:
    text = '{"spec":{"x":{"managedFields":%s}},"metadata":{"name":"a","managedFields":%s}}'.replace("%s", MANAGED)
    kept, _ = scan_without_managed_fields(text.encode())
    assert json.loads(kept) == {"spec": {"x": {"managedFields": json.loads(MANAGED)}}, "metadata": {"name": "a"}}


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"metadata":3}', b'{"metadata":{}} x'])
def test_removing_managed_fields_raises_for_anything_but_an_object(data: bytes) -> None:
    with pytest.raises(DecodeError, match="cannot decode an object's metadata"):
        scan_without_managed_fields(data)


@custom_resource("example.com/v1")
class Safe(KubernetesObject):
    """A kind with a field that has the name of a property."""

    key: str = ""


def test_a_kind_with_a_field_called_key_keeps_it() -> None:
    safe = from_json(Safe, '{"metadata":{"name":"a","namespace":"b"},"key":"brass"}')
    assert (safe.key, key_of(safe)) == ("brass", "b/a")
    assert Safe(metadata=ObjectMeta(name="a"), key="iron").key == "iron"
