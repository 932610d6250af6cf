"""resource/v1beta2.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject, ObjectMeta
from ._quantity import Quantity
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, JSON, Time
from .core_v1 import NodeSelector
from .meta_v1 import Condition

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CELDeviceSelector",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceCounterConsumption",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSelector",
    "DeviceSubRequest",
    "DeviceTaint",
    "DeviceTaintRule",
    "DeviceTaintRuleSpec",
    "DeviceTaintRuleStatus",
    "DeviceTaintSelector",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "NodeAllocatableResourceMapping",
    "OpaqueDeviceConfiguration",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


@frozen_model(kw_only=True)
class NetworkDeviceData(Model):
    """resource/v1beta2 NetworkDeviceData."""

    hardware_address: str | None = None
    interface_name: str | None = None
    ips: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class AllocatedDeviceStatus(Model):
    """resource/v1beta2 AllocatedDeviceStatus."""

    _json_names: ClassVar[Mapping[str, str]] = {"share_id": "shareID"}

    conditions: tuple[Condition, ...] = ()
    data: JSON = None
    device: str = ""
    driver: str = ""
    network_data: NetworkDeviceData | None = None
    pool: str = ""
    share_id: str | None = None


@frozen_model(kw_only=True)
class OpaqueDeviceConfiguration(Model):
    """resource/v1beta2 OpaqueDeviceConfiguration."""

    driver: str = ""
    parameters: JSON = None


@frozen_model(kw_only=True)
class DeviceAllocationConfiguration(Model):
    """resource/v1beta2 DeviceAllocationConfiguration."""

    opaque: OpaqueDeviceConfiguration | None = None
    requests: tuple[str, ...] = ()
    source: str = ""


@frozen_model(kw_only=True)
class DeviceToleration(Model):
    """resource/v1beta2 DeviceToleration."""

    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: int | None = None
    value: str | None = None


@frozen_model(kw_only=True)
class DeviceRequestAllocationResult(Model):
    """resource/v1beta2 DeviceRequestAllocationResult."""

    _json_names: ClassVar[Mapping[str, str]] = {"share_id": "shareID"}

    admin_access: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    consumed_capacity: Mapping[str, Quantity] = EMPTY_MAP
    device: str = ""
    driver: str = ""
    pool: str = ""
    request: str = ""
    share_id: str | None = None
    tolerations: tuple[DeviceToleration, ...] = ()


@frozen_model(kw_only=True)
class DeviceAllocationResult(Model):
    """resource/v1beta2 DeviceAllocationResult."""

    config: tuple[DeviceAllocationConfiguration, ...] = ()
    results: tuple[DeviceRequestAllocationResult, ...] = ()


@frozen_model(kw_only=True)
class AllocationResult(Model):
    """resource/v1beta2 AllocationResult."""

    allocation_timestamp: Time | None = None
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None


@frozen_model(kw_only=True)
class CELDeviceSelector(Model):
    """resource/v1beta2 CELDeviceSelector."""

    expression: str = ""


@frozen_model(kw_only=True)
class CapacityRequestPolicyRange(Model):
    """resource/v1beta2 CapacityRequestPolicyRange."""

    max: Quantity | None = None
    min: Quantity | None = None
    step: Quantity | None = None


@frozen_model(kw_only=True)
class CapacityRequestPolicy(Model):
    """resource/v1beta2 CapacityRequestPolicy."""

    default: Quantity | None = None
    valid_range: CapacityRequestPolicyRange | None = None
    valid_values: tuple[Quantity, ...] = ()


@frozen_model(kw_only=True)
class CapacityRequirements(Model):
    """resource/v1beta2 CapacityRequirements."""

    requests: Mapping[str, Quantity] = EMPTY_MAP


@frozen_model(kw_only=True)
class Counter(Model):
    """resource/v1beta2 Counter."""

    value: Quantity | None = None


@frozen_model(kw_only=True)
class CounterSet(Model):
    """resource/v1beta2 CounterSet."""

    counters: Mapping[str, Counter] = EMPTY_MAP
    name: str = ""


@frozen_model(kw_only=True)
class DeviceAttribute(Model):
    """resource/v1beta2 DeviceAttribute."""

    bool_: bool | None = None
    bools: tuple[bool, ...] = ()
    int_: int | None = None
    ints: tuple[int, ...] = ()
    string: str | None = None
    strings: tuple[str, ...] = ()
    version: str | None = None
    versions: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class DeviceCapacity(Model):
    """resource/v1beta2 DeviceCapacity."""

    request_policy: CapacityRequestPolicy | None = None
    value: Quantity | None = None


@frozen_model(kw_only=True)
class DeviceCounterConsumption(Model):
    """resource/v1beta2 DeviceCounterConsumption."""

    counter_set: str = ""
    counters: Mapping[str, Counter] = EMPTY_MAP


@frozen_model(kw_only=True)
class NodeAllocatableResourceMapping(Model):
    """resource/v1beta2 NodeAllocatableResourceMapping."""

    allocation_multiplier: Quantity | None = None
    capacity_key: str | None = None


@frozen_model(kw_only=True)
class DeviceTaint(Model):
    """resource/v1beta2 DeviceTaint."""

    effect: str = ""
    key: str = ""
    time_added: Time | None = None
    value: str | None = None


@frozen_model(kw_only=True)
class Device(Model):
    """resource/v1beta2 Device."""

    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None
    attributes: Mapping[str, DeviceAttribute] = EMPTY_MAP
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool | None = None
    capacity: Mapping[str, DeviceCapacity] = EMPTY_MAP
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    name: str = ""
    node_allocatable_resource_mappings: Mapping[str, NodeAllocatableResourceMapping] = EMPTY_MAP
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    taints: tuple[DeviceTaint, ...] = ()


@frozen_model(kw_only=True)
class DeviceClaimConfiguration(Model):
    """resource/v1beta2 DeviceClaimConfiguration."""

    opaque: OpaqueDeviceConfiguration | None = None
    requests: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class DeviceConstraint(Model):
    """resource/v1beta2 DeviceConstraint."""

    distinct_attribute: str | None = None
    match_attribute: str | None = None
    requests: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class DeviceSelector(Model):
    """resource/v1beta2 DeviceSelector."""

    cel: CELDeviceSelector | None = None


@frozen_model(kw_only=True)
class ExactDeviceRequest(Model):
    """resource/v1beta2 ExactDeviceRequest."""

    admin_access: bool | None = None
    allocation_mode: str | None = None
    capacity: CapacityRequirements | None = None
    count: int | None = None
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()


@frozen_model(kw_only=True)
class DeviceSubRequest(Model):
    """resource/v1beta2 DeviceSubRequest."""

    allocation_mode: str | None = None
    capacity: CapacityRequirements | None = None
    count: int | None = None
    device_class_name: str = ""
    name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()


@frozen_model(kw_only=True)
class DeviceRequest(Model):
    """resource/v1beta2 DeviceRequest."""

    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()
    name: str = ""


@frozen_model(kw_only=True)
class DeviceClaim(Model):
    """resource/v1beta2 DeviceClaim."""

    config: tuple[DeviceClaimConfiguration, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    requests: tuple[DeviceRequest, ...] = ()


@frozen_model(kw_only=True)
class DeviceClassConfiguration(Model):
    """resource/v1beta2 DeviceClassConfiguration."""

    opaque: OpaqueDeviceConfiguration | None = None


@frozen_model(kw_only=True)
class DeviceClassSpec(Model):
    """resource/v1beta2 DeviceClassSpec."""

    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


@frozen_model(kw_only=True)
class DeviceClass(KubernetesObject):
    """resource/v1beta2 DeviceClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("resource.k8s.io/v1beta2", "DeviceClass")

    spec: DeviceClassSpec = DeviceClassSpec()


@frozen_model(kw_only=True)
class DeviceTaintSelector(Model):
    """resource/v1beta2 DeviceTaintSelector."""

    device: str | None = None
    driver: str | None = None
    pool: str | None = None


@frozen_model(kw_only=True)
class DeviceTaintRuleSpec(Model):
    """resource/v1beta2 DeviceTaintRuleSpec."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


@frozen_model(kw_only=True)
class DeviceTaintRuleStatus(Model):
    """resource/v1beta2 DeviceTaintRuleStatus."""

    conditions: tuple[Condition, ...] = ()


@frozen_model(kw_only=True)
class DeviceTaintRule(KubernetesObject):
    """resource/v1beta2 DeviceTaintRule."""

    __resource__: ClassVar[ResourceInfo] = builtin("resource.k8s.io/v1beta2", "DeviceTaintRule")

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


@frozen_model(kw_only=True)
class ResourceClaimSpec(Model):
    """resource/v1beta2 ResourceClaimSpec."""

    devices: DeviceClaim = DeviceClaim()


@frozen_model(kw_only=True)
class ResourceClaimConsumerReference(Model):
    """resource/v1beta2 ResourceClaimConsumerReference."""

    api_group: str | None = None
    name: str = ""
    resource: str = ""
    uid: str = ""


@frozen_model(kw_only=True)
class ResourceClaimStatus(Model):
    """resource/v1beta2 ResourceClaimStatus."""

    allocation: AllocationResult | None = None
    devices: tuple[AllocatedDeviceStatus, ...] = ()
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()


@frozen_model(kw_only=True)
class ResourceClaim(KubernetesObject):
    """resource/v1beta2 ResourceClaim."""

    __resource__: ClassVar[ResourceInfo] = builtin("resource.k8s.io/v1beta2", "ResourceClaim")

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


@frozen_model(kw_only=True)
class ResourceClaimTemplateSpec(Model):
    """resource/v1beta2 ResourceClaimTemplateSpec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


@frozen_model(kw_only=True)
class ResourceClaimTemplate(KubernetesObject):
    """resource/v1beta2 ResourceClaimTemplate."""

    __resource__: ClassVar[ResourceInfo] = builtin("resource.k8s.io/v1beta2", "ResourceClaimTemplate")

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


@frozen_model(kw_only=True)
class ResourcePool(Model):
    """resource/v1beta2 ResourcePool."""

    generation: int = 0
    name: str = ""
    resource_slice_count: int = 0


@frozen_model(kw_only=True)
class ResourceSliceSpec(Model):
    """resource/v1beta2 ResourceSliceSpec."""

    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    driver: str = ""
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    per_device_node_selection: bool | None = None
    pool: ResourcePool = ResourcePool()
    shared_counters: tuple[CounterSet, ...] = ()


@frozen_model(kw_only=True)
class ResourceSlice(KubernetesObject):
    """resource/v1beta2 ResourceSlice."""

    __resource__: ClassVar[ResourceInfo] = builtin("resource.k8s.io/v1beta2", "ResourceSlice")

    spec: ResourceSliceSpec = ResourceSliceSpec()
