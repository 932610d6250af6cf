"""What the type checkers see of the models; run by mypy and pyright, never imported."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, assert_type

import attrs

from trioformer.client import Api, Client
from trioformer.client._api_resources import ApiResources
from trioformer.models import (
    JSON,
    FrozenMap,
    KubernetesObject,
    ObjectMeta,
    OwnerReference,
    PartialObjectMetadata,
    Quantity,
    ResourceInfo,
    Unstructured,
    encode,
    evolve,
    from_dict,
    from_json,
    json_equal,
    key_of,
    metadata_kind,
    resource_of,
    unstructured_kind,
)
from trioformer.models._internal import encode_for_server, make_object
from trioformer.models._kinds import builtin_kind, builtin_resources
from trioformer.models.apiextensions_v1 import JSONSchemaProps
from trioformer.models.apps_v1 import Deployment
from trioformer.models.conditions import (
    Condition,
    find_condition,
    is_condition_true,
    remove_condition,
    set_condition,
)
from trioformer.models.core_v1 import (
    ConfigMap,
    Container,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Secret,
    ServicePort,
)
from trioformer.models.meta_v1 import LabelSelector
from trioformer.models.policy_v1 import PodDisruptionBudget
from trioformer.models.resource_v1 import DeviceAttribute

pod = from_json(Pod, b"{}")
assert_type(pod, Pod)
assert_type(from_dict(Pod, {"metadata": {"name": "a"}}), Pod)
assert_type(make_object(Pod, b"{}"), Pod)

# Fields that are Go values are never None, pointers may be, absent lists and maps are empty.
assert_type(pod.metadata, ObjectMeta)
assert_type(pod.spec, PodSpec)
assert_type(pod.status, PodStatus)
assert_type(pod.spec.node_name, str | None)
assert_type(pod.spec.containers, tuple[Container, ...])
assert_type(pod.spec.containers[0].name, str)
assert_type(pod.spec.overhead, Mapping[str, Quantity])
assert_type(Quantity("1Gi") + Quantity("1Mi"), Quantity)
assert_type(Quantity("1Gi") * 2, Quantity)
assert_type(Quantity("1Gi").canonical, Quantity)
assert_type(pod.spec.host_network, bool | None)
assert_type(pod.status.start_time, datetime | None)
assert_type(pod.metadata.labels, Mapping[str, str])
assert_type(pod.metadata.name, str)
assert_type(pod.metadata.creation_timestamp, datetime | None)
assert_type(pod.metadata.owner_references, tuple[OwnerReference, ...])
assert_type(pod.name, str)
assert_type(pod.namespace, str | None)
assert_type(pod.kind, str)
assert_type(from_json(Deployment, "{}").spec.selector, LabelSelector)
assert_type(from_json(PodDisruptionBudget, "{}").spec.selector, LabelSelector | None)
assert_type(from_json(ServicePort, "{}").target_port, int | str | None)
assert_type(from_json(Secret, "{}").data, Mapping[str, bytes])
assert_type(from_json(DeviceAttribute, "{}").bool_, bool | None)
assert_type(from_json(DeviceAttribute, "{}").int_, int | None)
assert_type(from_json(JSONSchemaProps, "{}").not_, JSONSchemaProps | None)
assert_type(from_json(JSONSchemaProps, "{}").properties, Mapping[str, JSONSchemaProps])

schema = from_json(JSONSchemaProps, "{}")
default: JSON = schema.default
given: JSONSchemaProps = JSONSchemaProps(default={"a": (1, None, {"b": True})}, items="anything")

# Changing
assert_type(pod.evolve(spec=pod.spec.evolve(node_name="n")), Pod)
assert_type(evolve(pod, spec=pod.spec.evolve(node_name="n")), Pod)
pod.evolve(nodes=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
pod.spec.evolve(node_name=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
evolve(pod, nodes=1)  # type: ignore[call-arg]  # pyright does not check this function
pod.spec = PodSpec()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
pod.metadata.labels["a"] = "b"  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
_ = pod.nodes  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
assert_type(encode(pod), bytes)
assert_type(encode_for_server(pod), bytes)
assert_type(key_of(pod), str)
assert_type(json_equal(schema.default, {"a": [1]}), bool)

# Constructors
Pod(metadata=ObjectMeta(name="a", labels={"b": "c"}), spec=PodSpec(containers=(Container(name="c", args=("-v",)),)))
ConfigMap(data=FrozenMap(a="b"), immutable=True)
Pod(ObjectMeta())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Pod(metadata=PodSpec())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
PodSpec(hostname=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Kinds
assert_type(resource_of(Pod), ResourceInfo)
assert_type(Pod.__resource__, ResourceInfo)
assert_type(builtin_kind("v1", "Pod"), type[KubernetesObject])
assert_type(builtin_resources(), tuple[ResourceInfo, ...])

# Unstructured kinds and metadata kinds
Gadget = unstructured_kind("example.com/v1", "Gadget", plural="gadgets", namespaced=True)
assert_type(Gadget, type[Unstructured])
assert_type(unstructured_kind(resource_of(Pod)), type[Unstructured])
unstructured_kind("v1", "Pod")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
gadget = Gadget.of({"metadata": {"name": "g"}, "spec": {"size": 1}})
assert_type(gadget, Unstructured)
assert_type(gadget.metadata, ObjectMeta)
assert_type(gadget.merge({"spec": {"size": 2}}), Unstructured)
assert_type(gadget.keys(), tuple[str, ...])
size: int = gadget["spec"]["size"]
phase: str = gadget.get("status", {}).get("phase", "")
gadget["spec"] = {}  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
_ = gadget.spec  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
assert_type(metadata_kind(Pod), type[PartialObjectMetadata])
assert_type(from_json(metadata_kind(Pod), "{}").metadata.name, str)


async def through_a_client(client: Client) -> None:
    """Unstructured kinds and metadata kinds with a client."""
    assert_type(await client.discover("apps/v1", "Deployment"), type[Unstructured])
    assert_type(await client.discover("deploy"), type[KubernetesObject])
    assert_type(await client.discover(Pod), type[Pod])
    assert_type(client.api("deploy"), Api[KubernetesObject])
    assert_type(client.api(Gadget), Api[Unstructured])
    resources = await client.api_resources()
    assert_type(resources, ApiResources)
    assert_type(resources.find("deploy"), ResourceInfo | None)
    assert_type(next(iter(resources)), ResourceInfo)
    assert_type(client.api(metadata_kind(Pod)), Api[PartialObjectMetadata])


@attrs.frozen(kw_only=True)
class WidgetSpec:
    """The spec of a custom resource."""

    size: int = 0


@attrs.frozen(kw_only=True)
class Widget(KubernetesObject):
    """A custom resource."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True
    )

    spec: WidgetSpec = WidgetSpec()


assert_type(from_json(Widget, "{}").spec.size, int)
assert_type(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec(size=3)).metadata.name, str)

conditions = set_condition((), type="Ready", status=True, reason="Complete")
assert_type(conditions, tuple[Condition, ...])
assert_type(set_condition(conditions, type="Ready", status="Unknown", reason="A"), tuple[Condition, ...])
assert_type(
    set_condition(pod.status.conditions, type="Ready", status="False", reason="A", model=PodCondition),
    tuple[PodCondition, ...],
)
assert_type(find_condition(pod.status.conditions, "Ready"), PodCondition | None)
assert_type(find_condition(conditions, "Ready"), Condition | None)
assert_type(remove_condition(pod.status.conditions, "Ready"), tuple[PodCondition, ...])
assert_type(is_condition_true(Deployment().status.conditions, "Available"), bool)
