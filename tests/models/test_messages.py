"""Models from Kubernetes' protobuf: what absent means, and writes that lose no field that the table does not know."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs
import pytest

from tests.support.messages import differences, field_differences, model_of
from trioformer.errors import DecodeError
from trioformer.models import KubernetesObject, ObjectMeta, ResourceInfo, from_dict, from_json, to_dict
from trioformer.models._internal import (
    Message,
    builtin_resources,
    detached,
    dumps,
    encode_request,
    open_envelope,
    tagged,
    type_of_class,
)
from trioformer.models._kinds import builtin_kind
from trioformer.models._lazy import Model, plan_of
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._heads import spans
from trioformer.models._protobuf._plain import to_plain
from trioformer.models._protobuf._tables import WireType, find_type
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import (
    ConfigMapVolumeSource,
    Container,
    EnvVar,
    HTTPGetAction,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Probe,
    Toleration,
    Volume,
)
from trioformer.models.policy_v1 import PodDisruptionBudget


@attrs.frozen(kw_only=True)
class Pizza(KubernetesObject):
    """A custom kind with a part of a built-in one."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Pizza", plural="pizzas", namespaced=True
    )

    template: PodTemplateSpec


def wire_type(module: str, name: str) -> WireType:
    found = find_type(module, name)
    assert found is not None
    return found


def all_models() -> Iterator[type[Model]]:
    """Return every class of models that the table has."""
    seen: set[type[Model]] = set()
    pending: list[type[Model]] = [builtin_kind(info.api_version, info.kind) for info in builtin_resources(beta=True)]
    while pending:
        cls = pending.pop()
        if cls in seen:
            continue
        seen.add(cls)
        pending += [field.model for field in plan_of(cls).fields.values() if field.model is not None]
        yield cls


def names_in_json(type_: WireType) -> Iterator[str]:
    for number, field in type_.fields.items():
        if field.is_inline:
            yield from names_in_json(type_.inlined(number))
        else:
            yield field.json


def test_the_table_has_the_fields_of_every_model() -> None:
    classes = list(all_models())
    assert len(classes) > 500
    for cls in classes:
        type_ = type_of_class(cls)
        assert type_ is not None, cls
        names = {field.json for field in plan_of(cls).fields.values()}
        assert names - {"apiVersion", "kind"} == set(names_in_json(type_)) - {"apiVersion", "kind"}, cls


# ------------------------------------------------------------------------------------------- what absent means


def plain_of(module: str, name: str, message: bytes) -> dict[str, Any]:
    return to_plain(message, wire_type(module, name))


def test_lists_and_pointers_that_go_does_not_omit_are_null() -> None:
    assert plain_of("rbac_v1", "PolicyRule", b"") == {"verbs": None}
    assert plain_of("core_v1", "GRPCAction", b"\x08\x05") == {"port": 5, "service": None}
    assert plain_of("core_v1", "PodSpec", b"") == {"containers": None}
    pod = model_of(Pod, tagged(1, tagged(1, b"a")) + tagged(2, b""))
    assert pod.spec.containers == ()
    assert pod == from_json(Pod, '{"metadata": {"name": "a"}, "spec": {"containers": null}}')


def test_a_zero_time_is_null_although_its_tag_says_omitempty() -> None:
    # omitempty has no effect on a struct in Go; creationTimestamp alone has omitzero.
    for message in (tagged(1, b""), b""):
        assert plain_of("core_v1", "ContainerStateRunning", message) == {"startedAt": None}
    assert plain_of("meta_v1", "ObjectMeta", tagged(8, b"")) == {}


def test_the_claims_of_a_stateful_set_have_the_kind_that_a_server_sets() -> None:
    claim = tagged(1, tagged(1, b"c"))
    plain = plain_of("apps_v1", "StatefulSetSpec", tagged(4, claim))
    assert plain["volumeClaimTemplates"] == [
        {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "c"}}
    ]


def test_empty_bytes_that_go_omits_read_as_absent() -> None:
    webhook = tagged(1, b"w") + tagged(2, tagged(2, b""))
    config = model_of(ValidatingWebhookConfiguration, tagged(1, b"") + tagged(2, webhook))
    assert config.webhooks[0].client_config.ca_bundle is None
    assert config == from_dict(ValidatingWebhookConfiguration, to_dict(config))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-3.0, "-3"),
        (0.1, "0.1"),
        (2.0**53, "9007199254740992"),
        (2.0**63, "9223372036854776000"),  # the digits of the shortest form, and zeros
        (1e20, "100000000000000000000"),
        (1e21, "1e21"),
        (1e-7, "1e-7"),
    ],
)
def test_a_float_is_written_as_go_writes_it(number: float, text: str) -> None:
    type_ = wire_type("apiextensions_v1", "JSONSchemaProps")
    assert dumps(to_plain(to_message({"maximum": number}, type_), type_)) == b'{"maximum":' + text.encode() + b"}"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0s"),
        ("62m3.5s", "1h2m3.5s"),
        ("-1.5µs", "-1.5µs"),
        ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
        ("-2562047h47m16.854775808s", "-2562047h47m16.854775808s"),
    ],
)
def test_a_duration_keeps_its_nanoseconds(text: str, written: str) -> None:
    type_ = WireType("meta_v1", "Wait", "1wait D")
    assert to_plain(to_message({"wait": text}, type_), type_) == {"wait": written}


@pytest.mark.parametrize("text", ["", "s", "1", "1 s", "1d", "1h-2m"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="has a value of the wrong type"):
        to_message({"wait": text}, WireType("meta_v1", "Wait", "1wait D"), [])


def test_null_items_are_written_as_zero_values() -> None:
    budget = wire_type("policy_v1", "PodDisruptionBudgetStatus")
    message = to_message({"disruptedPods": {"a": None}}, budget, [])
    assert to_plain(message, budget)["disruptedPods"] == {"a": None}
    container = wire_type("core_v1", "Container")
    assert to_plain(to_message({"args": ["a", None]}, container, []), container)["args"] == ["a", ""]
    context = wire_type("core_v1", "PodSecurityContext")
    written = to_message({"supplementalGroups": [None, 5]}, context, [])
    assert to_plain(written, context)["supplementalGroups"] == [0, 5]


def test_a_null_time_in_a_map_raises_in_both_encodings() -> None:
    data = {"metadata": {"name": "a"}, "status": {"disruptedPods": {"p": None}}}
    budget = model_of(PodDisruptionBudget, to_message(data, wire_type("policy_v1", "PodDisruptionBudget")))
    for each in (budget, from_dict(PodDisruptionBudget, data)):
        with pytest.raises(DecodeError, match=r"disrupted_?[pP]ods"):
            _ = each.status.disrupted_pods
    assert budget == from_dict(PodDisruptionBudget, to_dict(budget))


# ------------------------------------------------------------------------------------------- unknown fields

POD = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "labels": {"app": "web", "tier": "a"},
        "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
    },
    "spec": {
        "nodeName": "worker-1",
        "hostNetwork": True,
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "A", "value": "1"}],
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
            },
            {"name": "d", "image": "j"},
        ],
        "volumes": [{"name": "v", "configMap": {"name": "settings", "defaultMode": 420}}],
    },
    "status": {"phase": "Running"},
}
PATHS: dict[str, tuple[tuple[int, int], ...]] = {
    "object": (),
    "metadata": ((1, 0),),
    "spec": ((2, 0),),
    "status": ((3, 0),),
    "first container": ((2, 0), (2, 0)),
    "second container": ((2, 0), (2, 1)),
    "env": ((2, 0), (2, 0), (7, 0)),
    "probe": ((2, 0), (2, 0), (10, 0)),
    "handler of the probe": ((2, 0), (2, 0), (10, 0), (1, 0)),
    "volume": ((2, 0), (1, 0)),
    "source of the volume": ((2, 0), (1, 0), (2, 0)),
    "config map of the volume": ((2, 0), (1, 0), (2, 0), (19, 0)),
}
"""The places of unknown fields: for each message around them its number, and its index in a list."""


def unknown_of(place: str) -> bytes:
    """Return unknown fields of all wire types; that of bytes holds the place."""
    text = place.encode()
    return b"\xc0\x3e\x85\x01" + tagged(1001, text) + tagged(1001, b"2") + b"\xd1\x3e12345678" + b"\xdd\x3e1234"


def with_unknown(data: bytes, path: tuple[tuple[int, int], ...], unknown: bytes) -> bytes:
    """Return a message with more fields at the end of one that is inside of it."""
    if not path:
        return data + unknown
    (number, index), *rest = path
    _, tag, begin, end = [span for span in spans(data, 0, len(data)) if span[0] == number][index]
    return data[:tag] + tagged(number, with_unknown(data[begin:end], tuple(rest), unknown)) + data[end:]


def unknown_in(data: bytes, type_: WireType) -> list[bytes]:
    """Return the unknown fields of each message that has some, in the order of the numbers around them."""
    own = b"".join(data[tag:end] for number, tag, _, end in spans(data, 0, len(data)) if number not in type_.fields)
    found = [own] if own else []
    for number, _, begin, end in sorted(spans(data, 0, len(data))):
        field = type_.fields.get(number)
        kind = field.kind.lstrip("*[") if field is not None else ""
        if (kind and kind[0].isupper() and len(kind) > 1) or "." in kind:
            found += unknown_in(data[begin:end], type_.type_of(kind))
    return found


def newer_pod(*places: str) -> bytes:
    """Return the message of a pod that has unknown fields at some places; without one at all of them."""
    data = to_message(POD, wire_type("core_v1", "Pod"))
    for place in sorted(places or PATHS, key=lambda place: -len(PATHS[place])):
        data = with_unknown(data, PATHS[place], unknown_of(place))
    return data


def written(pod: Pod) -> bytes:
    """Return the message that a request has, and check that it is one."""
    data = encode_request(pod)
    assert data.startswith(b"k8s\0")
    api_version, kind, message = open_envelope(data)
    assert (api_version, kind) == ("v1", "Pod")
    return message


def first(pod: Pod, **changes: Any) -> Pod:
    """Change the first container."""
    containers = pod.spec.containers
    return pod.evolve(spec=pod.spec.evolve(containers=(containers[0].evolve(**changes), *containers[1:])))


def change_probe(pod: Pod) -> Pod:
    probe = pod.spec.containers[0].liveness_probe
    assert probe is not None
    assert probe.http_get is not None
    return first(pod, liveness_probe=probe.evolve(http_get=probe.http_get.evolve(path="/healthz")))


def change_volume(pod: Pod) -> Pod:
    volume = pod.spec.volumes[0]
    assert volume.config_map is not None
    changed = volume.evolve(config_map=volume.config_map.evolve(name="others"))
    return pod.evolve(spec=pod.spec.evolve(volumes=(changed,)))


def change_much(pod: Pod) -> Pod:
    changed = change_volume(change_probe(pod))
    spec = changed.spec.evolve(node_name=None, tolerations=(Toleration(key="a"),), host_network=False)
    return changed.evolve(spec=spec, metadata=changed.metadata.evolve(labels={"app": "db"}, managed_fields=()))


CHANGES: dict[str, Callable[[Pod], Pod]] = {
    "nothing": lambda pod: pod.evolve(),
    "a scalar": lambda pod: pod.evolve(spec=pod.spec.evolve(node_name="worker-2")),
    "an equal scalar": lambda pod: pod.evolve(spec=pod.spec.evolve(node_name="worker-1")),
    "a removed scalar": lambda pod: pod.evolve(spec=pod.spec.evolve(node_name=None)),
    "a false": lambda pod: pod.evolve(spec=pod.spec.evolve(host_network=False)),
    "a map": lambda pod: pod.evolve(metadata=pod.metadata.evolve(labels={"app": "web", "new": ""})),
    "an emptied map": lambda pod: pod.evolve(metadata=pod.metadata.evolve(labels={})),
    "managed fields": lambda pod: pod.evolve(metadata=pod.metadata.evolve(managed_fields=())),
    "one container": lambda pod: first(pod, image="i:2"),
    "the kind": lambda pod: pod.evolve(api_version="v1", kind="Pod"),
    "another container": lambda pod: pod.evolve(
        spec=pod.spec.evolve(containers=(*pod.spec.containers, Container(name="e", env=(EnvVar(name="B", value=""),))))
    ),
    "a field of an inlined struct": change_probe,
    "a new field of an inlined struct": lambda pod: first(
        pod, readiness_probe=Probe(http_get=HTTPGetAction(path="/", port=80), period_seconds=1)
    ),
    "a field of a struct that is inlined twice": change_volume,
    "more of a list": lambda pod: pod.evolve(
        spec=pod.spec.evolve(
            volumes=(*pod.spec.volumes, Volume(name="w", config_map=ConfigMapVolumeSource(name="o", default_mode=1)))
        )
    ),
    "the status": lambda pod: pod.evolve(status=pod.status.evolve(phase="Failed", message="ü")),
    "twice": lambda pod: change_probe(first(pod, image="i:2")).evolve(kind="Pod"),
    "much": change_much,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_written_and_every_unknown_field_is_kept(change: Callable[[Pod], Pod]) -> None:
    message, type_ = newer_pod(), wire_type("core_v1", "Pod")
    assert len(unknown_in(message, type_)) == len(PATHS)
    pod = change(model_of(Pod, message))
    data = written(pod)
    assert unknown_in(data, type_) == unknown_in(message, type_)
    wanted = to_message(to_dict(change(from_dict(Pod, POD))), type_)
    assert list(differences(to_plain(data, type_), to_plain(wanted, type_))) == []
    assert list(field_differences(model_of(Pod, data), model_of(Pod, wanted))) == []


@pytest.mark.parametrize("place", PATHS)
def test_one_unknown_field_at_any_place_makes_the_request_a_message(place: str) -> None:
    pod = model_of(Pod, newer_pod(place))
    assert written(pod) == newer_pod(place)
    changed = pod.evolve(metadata=pod.metadata.evolve(finalizers=("a",)))
    assert unknown_in(written(changed), wire_type("core_v1", "Pod")) == [unknown_of(place)]


def test_an_object_without_unknown_fields_is_written_as_json() -> None:
    pod = model_of(Pod, to_message(POD, wire_type("core_v1", "Pod")))
    assert encode_request(change_much(pod)).startswith(b"{")


def test_unknown_fields_stay_when_managed_fields_are_dropped_on_arrival() -> None:
    type_ = wire_type("core_v1", "Pod")
    pod = model_of(Pod, newer_pod(), drops_managed_fields=True)
    assert pod.metadata.managed_fields == ()
    assert unknown_in(written(pod.evolve(kind="Pod")), type_) == unknown_in(newer_pod(), type_)


def test_what_is_removed_or_replaced_takes_its_unknown_fields_along() -> None:
    pod, type_ = model_of(Pod, newer_pod()), wire_type("core_v1", "Pod")
    rest = pod.spec.containers[1:]
    changed = pod.evolve(spec=pod.spec.evolve(containers=rest, volumes=(Volume(name="n"),)))
    kept = {unknown_of(place) for place in ("object", "metadata", "spec", "status", "second container")}
    assert set(unknown_in(written(changed), type_)) == kept


def test_a_new_object_keeps_the_unknown_fields_of_its_parts() -> None:
    pod, type_ = model_of(Pod, newer_pod()), wire_type("core_v1", "Pod")
    copy = Pod(metadata=ObjectMeta(name="copy"), spec=pod.spec)
    others = [unknown_of(place) for place in ("object", "metadata", "status")]
    in_spec = [found for found in unknown_in(newer_pod(), type_) if found not in others]
    assert unknown_in(written(copy), type_) == in_spec
    built = Pod(metadata=ObjectMeta(name="copy"), spec=PodSpec(containers=(*pod.spec.containers, Container(name="e"))))
    assert unknown_of("second container") in unknown_in(written(built), type_)
    assert [each.name for each in model_of(Pod, written(built)).spec.containers] == ["c", "d", "e"]


def test_an_object_from_json_keeps_the_unknown_fields_of_a_new_part() -> None:
    pod, type_ = model_of(Pod, newer_pod()), wire_type("core_v1", "Pod")
    other = from_dict(Pod, {"metadata": {"name": "other"}, "spec": {"containers": []}, "status": {"phase": "Pending"}})
    changed = other.evolve(spec=pod.spec.evolve(node_name=None))
    data = written(changed)
    assert unknown_of("spec") in unknown_in(data, type_)
    read = model_of(Pod, data)
    assert (read.name, read.spec.node_name, read.status.phase) == ("other", None, "Pending")


def test_a_part_from_json_with_a_member_that_messages_lack_is_refused() -> None:
    pod = model_of(Pod, newer_pod())
    container = from_json(Container, '{"name": "x", "newer": 1}')
    for changed in (
        pod.evolve(spec=pod.spec.evolve(containers=(container,))),
        pod.evolve(spec=pod.spec.evolve(containers=(container.evolve(image="j"),))),
    ):
        with pytest.raises(ValueError, match=r"Container\.newer"):
            encode_request(changed)
    with pytest.raises(ValueError, match=r"Pod\.\d+|PodSpec\.\d+|ObjectMeta\.\d+"):
        encode_request(pod, is_applied=True)


def test_a_custom_kind_with_a_part_that_has_unknown_fields_is_refused() -> None:
    pod = model_of(Pod, newer_pod())
    pizza = Pizza(metadata=ObjectMeta(name="p"), template=PodTemplateSpec(spec=pod.spec))
    with pytest.raises(ValueError, match="newer than"):
        encode_request(pizza)
    plain = Pizza(metadata=ObjectMeta(name="p"), template=PodTemplateSpec(spec=PodSpec(node_name="n")))
    assert encode_request(plain).startswith(b"{")


def test_a_pickle_keeps_the_unknown_fields() -> None:
    pod, type_ = model_of(Pod, newer_pod()), wire_type("core_v1", "Pod")
    assert written(pickle.loads(pickle.dumps(pod))) == newer_pod()
    for changed in (change_much(pod), Pod(metadata=ObjectMeta(name="copy"), spec=pod.spec)):
        copy = pickle.loads(pickle.dumps(changed))
        assert unknown_in(written(copy), type_) == unknown_in(written(changed), type_) != []
        assert (copy, copy.key, hash(copy)) == (changed, changed.key, hash(changed))
    pizza = Pizza(metadata=ObjectMeta(name="p"), template=PodTemplateSpec(spec=pod.spec))
    copy = pickle.loads(pickle.dumps(pizza))
    assert type(copy.template.spec._origin) is Message
    assert copy == pizza


def test_a_transformed_object_keeps_the_unknown_fields_of_its_parts() -> None:
    pod, type_ = model_of(Pod, newer_pod()), wire_type("core_v1", "Pod")
    copy = detached(Pod(metadata=pod.metadata, spec=pod.spec.evolve(node_name="n")))
    assert (copy.key, copy.spec.node_name) == (pod.key, "n")
    assert {unknown_of("metadata"), unknown_of("spec")} < set(unknown_in(written(copy), type_))
    pizza = detached(Pizza(metadata=ObjectMeta(name="p"), template=PodTemplateSpec(spec=pod.spec)))
    assert (pizza.key, pizza.template.spec) == ("p", pod.spec)


def test_a_deployment_keeps_what_its_template_has() -> None:
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": POD["spec"]}}
    type_ = wire_type("apps_v1", "Deployment")
    message = to_message({"metadata": {"name": "d"}, "spec": spec}, type_)
    message = with_unknown(message, ((2, 0), (3, 0), (2, 0), (2, 1)), unknown_of("container"))
    deployment = model_of(Deployment, message)
    changed = deployment.evolve(spec=deployment.spec.evolve(replicas=3, paused=None))
    _, _, data = open_envelope(encode_request(changed))
    assert unknown_in(data, type_) == [unknown_of("container")]
    assert model_of(Deployment, data).spec.replicas == 3
