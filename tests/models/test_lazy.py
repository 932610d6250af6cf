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
    JSON,
    FrozenMap,
    KubernetesObject,
    MicroTime,
    Model,
    ObjectMeta,
    Quantity,
    ResourceInfo,
    Time,
    encode,
    from_dict,
    from_json,
    key_of,
    resource_of,
    to_dict,
)
from trioformer.models._internal import dumps, encode_for_server, list_items, make_object, scan_without_managed_fields
from trioformer.models._kinds import builtin_kind, builtin_resources
from trioformer.models._meta import scan_head
from trioformer.models._resources import GroupVersionKind
from trioformer.models.core_v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Secret,
)

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
    labels: Mapping[str, str] = FrozenMap()
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
    extras: Mapping[str, int] = FrozenMap()
    free: JSON = None


@attrs.frozen(kw_only=True)
class Pizza(KubernetesObject):
    """A custom resource whose spec is an attrs class that is not a model."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Pizza", plural="pizzas", namespaced=True
    )

    spec: Toppings


# ------------------------------------------------------------------------------------------------- lazy decoding


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


def test_absent_and_null_read_as_defaults() -> None:
    for text in ('{"metadata": {}}', '{"metadata": null, "spec": null, "status": {"conditions": null, "phase": null}}'):
        obj = from_json(Pod, text)
        assert obj.spec == PodSpec()
        assert (obj.status.conditions, obj.status.phase) == ((), None)
        assert obj.metadata.labels == {}
        assert (obj.name, obj.namespace, obj.uid, obj.resource_version, key_of(obj)) == ("", None, "", "", "")


# ------------------------------------------------------------------------------------------- invalid JSON


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metadata.name", '{"metadata": {"name": 5}}'),
        ("metadata.labels", '{"metadata": {"labels": {"a": 1}}}'),
        ("metadata.creation_timestamp", '{"metadata": {"creationTimestamp": "yesterday"}}'),
        ("spec.node_name", '{"spec": []}'),
        ("spec.overhead", '{"spec": {"overhead": {"cpu": []}}}'),
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


def test_an_object_may_have_no_metadata() -> None:
    obj = from_json(Pod, '{"spec": {"nodeName": "n"}}')
    assert (obj.name, obj.namespace, obj.spec.node_name) == ("", None, "n")
    assert not hasattr(from_json(ConfigMap, '{"metadata": {}, "spec": {}}'), "spec")
    assert obj == obj  # without a comparison of fields


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
    assert scan_head(b'{"metadata": {"name": null, "uid": "u"}}').metadata.name == ""
    with pytest.raises(TypeError, match="cannot be encoded as JSON"):
        dumps([object()])
    for text in (b"5", b"[" * TOO_MANY_LEVELS + b"]" * TOO_MANY_LEVELS):
        with pytest.raises((ValueError, RecursionError)):
            list_items(text)
    with pytest.raises(DecodeError, match="an object's metadata"):
        scan_head(b'{"metadata": {"name": 5}}')


# ------------------------------------------------------------------------------------------- encoding


def test_unchanged_values_keep_their_bytes() -> None:
    text = (
        '{"conditions":null,"hostIPs":[],"phase":"Running","reason":null,"startTime":"2024-01-01T00:00:00.000Z",'
        '"extendedResourceClaimStatus":{},"message":"\\u00e9"}'
    )
    status = from_json(PodStatus, text)
    assert encode(status.evolve()) == text.encode()
    changed = encode(status.evolve(phase="Failed"))
    assert changed == text.replace("Running", "Failed").encode()


@pytest.mark.parametrize(
    ("text", "changes", "wanted"),
    [
        # The server's default for an absent scalar may be another, so a scalar is encoded even if it is the default.
        ('{"replicas": 3}', {"replicas": 0}, {"replicas": 0}),
        # An empty list or map that the program gives is one; None removes it.
        ('{"labels": {"a": "b"}}', {"labels": FrozenMap()}, {"labels": {}}),
        ('{"labels": {"a": "b"}}', {"labels": None}, {}),
        ('{"hosts": ["a"]}', {"hosts": ()}, {"hosts": []}),
        ("{}", {"hosts": ()}, {"hosts": []}),
        ("{}", {"replicas": 0, "enabled": True, "mode": "auto"}, {"replicas": 0, "enabled": True, "mode": "auto"}),
        ("{}", {"hosts": None, "mode": None}, {}),
        ('{"replicas": null}', {"replicas": 0}, {"replicas": 0}),
        # Free-form JSON: an empty value is encoded too.
        ('{"plan": 5}', {"plan": {}}, {"plan": {}}),
        ('{"plan": 5}', {"plan": ()}, {"plan": []}),
        ('{"maxCPU": "1"}', {"max_cpu": Quantity("1000m")}, {"maxCPU": "1000m"}),
        ('{"maxCPU": 2}', {"max_cpu": Quantity("2")}, {"maxCPU": 2}),
        ('{"very-odd": "x"}', {"odd": "y"}, {"very-odd": "y"}),
    ],
)
def test_changed_fields_of_custom_resources_are_merged_by_rules(
    text: str, changes: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert json_of(from_json(Limits, text).evolve(**changes)) == wanted


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
    assert out == {"apiVersion": "v1", "kind": "Pod", **manifest}
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


@pytest.mark.parametrize(
    "change",
    [lambda m: m.__setitem__("a", 1), lambda m: m.__delitem__("a"), lambda m: m.update(b=1), lambda m: m.__ior__({})],
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


def test_bytes_are_encoded_as_base64() -> None:
    secret = from_json(Secret, '{"metadata": {}, "data": {"key": "AP8h", "empty": ""}}')
    assert secret.data == {"key": b"\x00\xff!", "empty": b""}
    changed = secret.evolve(data={**secret.data, "new": b"\xfe"})
    assert json_of(changed)["data"] == {"key": "AP8h", "empty": "", "new": "/g=="}
    with pytest.raises(DecodeError, match=r"Secret\.data"):
        from_json(Secret, '{"data": {"key": "!"}}').data  # noqa: B018


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", "0.1"),
        ("5.", "5"),
        ("1n", "0.000000001"),
        ("1E", "1e18"),
        ("1.5Gi", "1610612736"),
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
        ({"size": "1", "extras": 5}, "@ .extras"),
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

    with pytest.raises(TypeError, match=r"Loose\.value has no slot; define the class with @attrs.frozen"):
        from_json(Loose, "{}").value  # noqa: B018


def test_a_class_without_a_resource_is_not_a_kind() -> None:
    for cls in (KubernetesObject, PodSpec, int):
        with pytest.raises(TypeError, match="is not a kind: it needs __resource__"):
            resource_of(cls)


# ------------------------------------------------------------------------------------------- heads, kinds, names


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


def test_importing_models_imports_no_generated_class() -> None:
    program = "import re, sys, trioformer.models; print([m for m in sys.modules if re.search(r'models\\..+_v\\d', m)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------- levels


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
