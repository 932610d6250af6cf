"""core/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject, ObjectMeta
from ._quantity import Quantity
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, MicroTime, Time
from .meta_v1 import Condition, LabelSelector

__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "Affinity",
    "AppArmorProfile",
    "AttachedVolume",
    "AzureDiskVolumeSource",
    "AzureFilePersistentVolumeSource",
    "AzureFileVolumeSource",
    "Binding",
    "CSIPersistentVolumeSource",
    "CSIVolumeSource",
    "Capabilities",
    "CephFSPersistentVolumeSource",
    "CephFSVolumeSource",
    "CinderPersistentVolumeSource",
    "CinderVolumeSource",
    "ClientIPConfig",
    "ClusterTrustBundleProjection",
    "ComponentCondition",
    "ComponentStatus",
    "ConfigMap",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapNodeConfigSource",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerImage",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "ContainerUser",
    "DaemonEndpoint",
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "EndpointAddress",
    "EndpointPort",
    "EndpointSubset",
    "Endpoints",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "EphemeralVolumeSource",
    "Event",
    "EventSeries",
    "EventSource",
    "ExecAction",
    "FCVolumeSource",
    "FileKeySelector",
    "FlexPersistentVolumeSource",
    "FlexVolumeSource",
    "FlockerVolumeSource",
    "GCEPersistentDiskVolumeSource",
    "GRPCAction",
    "GitRepoVolumeSource",
    "GlusterfsPersistentVolumeSource",
    "GlusterfsVolumeSource",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostIP",
    "HostPathVolumeSource",
    "ISCSIPersistentVolumeSource",
    "ISCSIVolumeSource",
    "ImageVolumeSource",
    "ImageVolumeStatus",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "LinuxContainerUser",
    "LoadBalancerIngress",
    "LoadBalancerStatus",
    "LocalObjectReference",
    "LocalVolumeSource",
    "ModifyVolumeStatus",
    "NFSVolumeSource",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "NodeCondition",
    "NodeConfigSource",
    "NodeConfigStatus",
    "NodeDaemonEndpoints",
    "NodeFeatures",
    "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "NodeSwapStatus",
    "NodeSystemInfo",
    "ObjectFieldSelector",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimCondition",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "PhotonPersistentDiskVolumeSource",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCertificateProjection",
    "PodCondition",
    "PodDNSConfig",
    "PodDNSConfigOption",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSecurityContext",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PodTemplateSpec",
    "PortStatus",
    "PortworxVolumeSource",
    "PreferredSchedulingTerm",
    "Probe",
    "ProjectedVolumeSource",
    "QuobyteVolumeSource",
    "RBDPersistentVolumeSource",
    "RBDVolumeSource",
    "ReplicationController",
    "ReplicationControllerCondition",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceHealth",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ResourceStatus",
    "SELinuxOptions",
    "ScaleIOPersistentVolumeSource",
    "ScaleIOVolumeSource",
    "ScopeSelector",
    "ScopedResourceSelectorRequirement",
    "SeccompProfile",
    "Secret",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretReference",
    "SecretVolumeSource",
    "SecurityContext",
    "Service",
    "ServiceAccount",
    "ServiceAccountTokenProjection",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "SessionAffinityConfig",
    "SleepAction",
    "StorageOSPersistentVolumeSource",
    "StorageOSVolumeSource",
    "Sysctl",
    "TCPSocketAction",
    "Taint",
    "Toleration",
    "TopologySelectorLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "VolumeMountStatus",
    "VolumeNodeAffinity",
    "VolumeProjection",
    "VolumeResourceRequirements",
    "VolumeStatus",
    "VsphereVirtualDiskVolumeSource",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]


@frozen_model(kw_only=True)
class AWSElasticBlockStoreVolumeSource(Model):
    """core/v1 AWSElasticBlockStoreVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"volume_id": "volumeID"}

    fs_type: str | None = None
    partition: int | None = None
    read_only: bool | None = None
    volume_id: str = ""


@frozen_model(kw_only=True)
class NodeSelectorRequirement(Model):
    """core/v1 NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class NodeSelectorTerm(Model):
    """core/v1 NodeSelectorTerm."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


@frozen_model(kw_only=True)
class PreferredSchedulingTerm(Model):
    """core/v1 PreferredSchedulingTerm."""

    preference: NodeSelectorTerm = NodeSelectorTerm()
    weight: int = 0


@frozen_model(kw_only=True)
class NodeSelector(Model):
    """core/v1 NodeSelector."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


@frozen_model(kw_only=True)
class NodeAffinity(Model):
    """core/v1 NodeAffinity."""

    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


@frozen_model(kw_only=True)
class PodAffinityTerm(Model):
    """core/v1 PodAffinityTerm."""

    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


@frozen_model(kw_only=True)
class WeightedPodAffinityTerm(Model):
    """core/v1 WeightedPodAffinityTerm."""

    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()
    weight: int = 0


@frozen_model(kw_only=True)
class PodAffinity(Model):
    """core/v1 PodAffinity."""

    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


@frozen_model(kw_only=True)
class PodAntiAffinity(Model):
    """core/v1 PodAntiAffinity."""

    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


@frozen_model(kw_only=True)
class Affinity(Model):
    """core/v1 Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


@frozen_model(kw_only=True)
class AppArmorProfile(Model):
    """core/v1 AppArmorProfile."""

    localhost_profile: str | None = None
    type: str = ""


@frozen_model(kw_only=True)
class AttachedVolume(Model):
    """core/v1 AttachedVolume."""

    device_path: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class AzureDiskVolumeSource(Model):
    """core/v1 AzureDiskVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"disk_uri": "diskURI"}

    caching_mode: str | None = None
    disk_name: str = ""
    disk_uri: str = ""
    fs_type: str | None = None
    kind: str | None = None
    read_only: bool = False


@frozen_model(kw_only=True)
class AzureFilePersistentVolumeSource(Model):
    """core/v1 AzureFilePersistentVolumeSource."""

    read_only: bool | None = None
    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""


@frozen_model(kw_only=True)
class AzureFileVolumeSource(Model):
    """core/v1 AzureFileVolumeSource."""

    read_only: bool | None = None
    secret_name: str = ""
    share_name: str = ""


@frozen_model(kw_only=True)
class ObjectReference(Model):
    """core/v1 ObjectReference."""

    api_version: str | None = None
    field_path: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    resource_version: str | None = None
    uid: str | None = None


@frozen_model(kw_only=True)
class Binding(KubernetesObject):
    """core/v1 Binding."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Binding")

    target: ObjectReference = ObjectReference()


@frozen_model(kw_only=True)
class SecretReference(Model):
    """core/v1 SecretReference."""

    name: str | None = None
    namespace: str | None = None


@frozen_model(kw_only=True)
class CSIPersistentVolumeSource(Model):
    """core/v1 CSIPersistentVolumeSource."""

    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    driver: str = ""
    fs_type: str | None = None
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    read_only: bool | None = None
    volume_attributes: Mapping[str, str] = EMPTY_MAP
    volume_handle: str = ""


@frozen_model(kw_only=True)
class LocalObjectReference(Model):
    """core/v1 LocalObjectReference."""

    name: str = ""


@frozen_model(kw_only=True)
class CSIVolumeSource(Model):
    """core/v1 CSIVolumeSource."""

    driver: str = ""
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: Mapping[str, str] = EMPTY_MAP


@frozen_model(kw_only=True)
class Capabilities(Model):
    """core/v1 Capabilities."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class CephFSPersistentVolumeSource(Model):
    """core/v1 CephFSPersistentVolumeSource."""

    monitors: tuple[str, ...] = ()
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: SecretReference | None = None
    user: str | None = None


@frozen_model(kw_only=True)
class CephFSVolumeSource(Model):
    """core/v1 CephFSVolumeSource."""

    monitors: tuple[str, ...] = ()
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


@frozen_model(kw_only=True)
class CinderPersistentVolumeSource(Model):
    """core/v1 CinderPersistentVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"volume_id": "volumeID"}

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None
    volume_id: str = ""


@frozen_model(kw_only=True)
class CinderVolumeSource(Model):
    """core/v1 CinderVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"volume_id": "volumeID"}

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    volume_id: str = ""


@frozen_model(kw_only=True)
class ClientIPConfig(Model):
    """core/v1 ClientIPConfig."""

    timeout_seconds: int | None = None


@frozen_model(kw_only=True)
class ClusterTrustBundleProjection(Model):
    """core/v1 ClusterTrustBundleProjection."""

    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: str = ""
    signer_name: str | None = None


@frozen_model(kw_only=True)
class ComponentCondition(Model):
    """core/v1 ComponentCondition."""

    error: str | None = None
    message: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class ComponentStatus(KubernetesObject):
    """core/v1 ComponentStatus."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "ComponentStatus")

    conditions: tuple[ComponentCondition, ...] = ()


@frozen_model(kw_only=True)
class ConfigMap(KubernetesObject):
    """core/v1 ConfigMap."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "ConfigMap")

    binary_data: Mapping[str, bytes] = EMPTY_MAP
    data: Mapping[str, str] = EMPTY_MAP
    immutable: bool | None = None


@frozen_model(kw_only=True)
class ConfigMapEnvSource(Model):
    """core/v1 ConfigMapEnvSource."""

    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class ConfigMapKeySelector(Model):
    """core/v1 ConfigMapKeySelector."""

    key: str = ""
    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class ConfigMapNodeConfigSource(Model):
    """core/v1 ConfigMapNodeConfigSource."""

    kubelet_config_key: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str | None = None
    uid: str | None = None


@frozen_model(kw_only=True)
class KeyToPath(Model):
    """core/v1 KeyToPath."""

    key: str = ""
    mode: int | None = None
    path: str = ""


@frozen_model(kw_only=True)
class ConfigMapProjection(Model):
    """core/v1 ConfigMapProjection."""

    items: tuple[KeyToPath, ...] = ()
    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class ConfigMapVolumeSource(Model):
    """core/v1 ConfigMapVolumeSource."""

    default_mode: int | None = None
    items: tuple[KeyToPath, ...] = ()
    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class ResourceClaim(Model):
    """core/v1 ResourceClaim."""

    name: str = ""
    request: str | None = None


@frozen_model(kw_only=True)
class ResourceRequirements(Model):
    """core/v1 ResourceRequirements."""

    claims: tuple[ResourceClaim, ...] = ()
    limits: Mapping[str, Quantity] = EMPTY_MAP
    requests: Mapping[str, Quantity] = EMPTY_MAP


@frozen_model(kw_only=True)
class ObjectFieldSelector(Model):
    """core/v1 ObjectFieldSelector."""

    api_version: str | None = None
    field_path: str = ""


@frozen_model(kw_only=True)
class FileKeySelector(Model):
    """core/v1 FileKeySelector."""

    key: str = ""
    optional: bool = False
    path: str = ""
    volume_name: str = ""


@frozen_model(kw_only=True)
class ResourceFieldSelector(Model):
    """core/v1 ResourceFieldSelector."""

    container_name: str | None = None
    divisor: Quantity | None = None
    resource: str = ""


@frozen_model(kw_only=True)
class SecretKeySelector(Model):
    """core/v1 SecretKeySelector."""

    key: str = ""
    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class EnvVarSource(Model):
    """core/v1 EnvVarSource."""

    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


@frozen_model(kw_only=True)
class EnvVar(Model):
    """core/v1 EnvVar."""

    name: str = ""
    value: str | None = None
    value_from: EnvVarSource | None = None


@frozen_model(kw_only=True)
class SecretEnvSource(Model):
    """core/v1 SecretEnvSource."""

    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class EnvFromSource(Model):
    """core/v1 EnvFromSource."""

    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str | None = None
    secret_ref: SecretEnvSource | None = None


@frozen_model(kw_only=True)
class ExecAction(Model):
    """core/v1 ExecAction."""

    command: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class HTTPHeader(Model):
    """core/v1 HTTPHeader."""

    name: str = ""
    value: str = ""


@frozen_model(kw_only=True)
class HTTPGetAction(Model):
    """core/v1 HTTPGetAction."""

    host: str | None = None
    http_headers: tuple[HTTPHeader, ...] = ()
    path: str | None = None
    port: int | str | None = None
    scheme: str | None = None


@frozen_model(kw_only=True)
class SleepAction(Model):
    """core/v1 SleepAction."""

    seconds: int = 0


@frozen_model(kw_only=True)
class TCPSocketAction(Model):
    """core/v1 TCPSocketAction."""

    host: str | None = None
    port: int | str | None = None


@frozen_model(kw_only=True)
class LifecycleHandler(Model):
    """core/v1 LifecycleHandler."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


@frozen_model(kw_only=True)
class Lifecycle(Model):
    """core/v1 Lifecycle."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


@frozen_model(kw_only=True)
class GRPCAction(Model):
    """core/v1 GRPCAction."""

    port: int = 0
    service: str = ""


@frozen_model(kw_only=True)
class Probe(Model):
    """core/v1 Probe."""

    exec: ExecAction | None = None
    failure_threshold: int | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int | None = None


@frozen_model(kw_only=True)
class ContainerPort(Model):
    """core/v1 ContainerPort."""

    _json_names: ClassVar[Mapping[str, str]] = {"host_ip": "hostIP"}

    container_port: int = 0
    host_ip: str | None = None
    host_port: int | None = None
    name: str | None = None
    protocol: str | None = None


@frozen_model(kw_only=True)
class ContainerResizePolicy(Model):
    """core/v1 ContainerResizePolicy."""

    resource_name: str = ""
    restart_policy: str = ""


@frozen_model(kw_only=True)
class ContainerRestartRuleOnExitCodes(Model):
    """core/v1 ContainerRestartRuleOnExitCodes."""

    operator: str = ""
    values: tuple[int, ...] = ()


@frozen_model(kw_only=True)
class ContainerRestartRule(Model):
    """core/v1 ContainerRestartRule."""

    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


@frozen_model(kw_only=True)
class SELinuxOptions(Model):
    """core/v1 SELinuxOptions."""

    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


@frozen_model(kw_only=True)
class SeccompProfile(Model):
    """core/v1 SeccompProfile."""

    localhost_profile: str | None = None
    type: str = ""


@frozen_model(kw_only=True)
class WindowsSecurityContextOptions(Model):
    """core/v1 WindowsSecurityContextOptions."""

    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


@frozen_model(kw_only=True)
class SecurityContext(Model):
    """core/v1 SecurityContext."""

    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


@frozen_model(kw_only=True)
class VolumeDevice(Model):
    """core/v1 VolumeDevice."""

    device_path: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class VolumeMount(Model):
    """core/v1 VolumeMount."""

    mount_path: str = ""
    mount_propagation: str | None = None
    name: str = ""
    read_only: bool | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


@frozen_model(kw_only=True)
class Container(Model):
    """core/v1 Container."""

    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: tuple[VolumeDevice, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    working_dir: str | None = None


@frozen_model(kw_only=True)
class ContainerExtendedResourceRequest(Model):
    """core/v1 ContainerExtendedResourceRequest."""

    container_name: str = ""
    request_name: str = ""
    resource_name: str = ""


@frozen_model(kw_only=True)
class ContainerImage(Model):
    """core/v1 ContainerImage."""

    names: tuple[str, ...] = ()
    size_bytes: int | None = None


@frozen_model(kw_only=True)
class ContainerStateRunning(Model):
    """core/v1 ContainerStateRunning."""

    started_at: Time | None = None


@frozen_model(kw_only=True)
class ContainerStateTerminated(Model):
    """core/v1 ContainerStateTerminated."""

    _json_names: ClassVar[Mapping[str, str]] = {"container_id": "containerID"}

    container_id: str | None = None
    exit_code: int = 0
    finished_at: Time | None = None
    message: str | None = None
    reason: str | None = None
    signal: int | None = None
    started_at: Time | None = None


@frozen_model(kw_only=True)
class ContainerStateWaiting(Model):
    """core/v1 ContainerStateWaiting."""

    message: str | None = None
    reason: str | None = None


@frozen_model(kw_only=True)
class ContainerState(Model):
    """core/v1 ContainerState."""

    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


@frozen_model(kw_only=True)
class ResourceHealth(Model):
    """core/v1 ResourceHealth."""

    _json_names: ClassVar[Mapping[str, str]] = {"resource_id": "resourceID"}

    health: str | None = None
    message: str | None = None
    resource_id: str = ""


@frozen_model(kw_only=True)
class ResourceStatus(Model):
    """core/v1 ResourceStatus."""

    name: str = ""
    resources: tuple[ResourceHealth, ...] = ()


@frozen_model(kw_only=True)
class LinuxContainerUser(Model):
    """core/v1 LinuxContainerUser."""

    gid: int = 0
    supplemental_groups: tuple[int, ...] = ()
    uid: int = 0


@frozen_model(kw_only=True)
class ContainerUser(Model):
    """core/v1 ContainerUser."""

    linux: LinuxContainerUser | None = None


@frozen_model(kw_only=True)
class ImageVolumeStatus(Model):
    """core/v1 ImageVolumeStatus."""

    image_ref: str = ""


@frozen_model(kw_only=True)
class VolumeStatus(Model):
    """core/v1 VolumeStatus."""

    image: ImageVolumeStatus | None = None


@frozen_model(kw_only=True)
class VolumeMountStatus(Model):
    """core/v1 VolumeMountStatus."""

    mount_path: str = ""
    name: str = ""
    read_only: bool | None = None
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


@frozen_model(kw_only=True)
class ContainerStatus(Model):
    """core/v1 ContainerStatus."""

    _json_names: ClassVar[Mapping[str, str]] = {"container_id": "containerID", "image_id": "imageID"}

    allocated_resources: Mapping[str, Quantity] = EMPTY_MAP
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    container_id: str | None = None
    image: str = ""
    image_id: str = ""
    last_state: ContainerState = ContainerState()
    name: str = ""
    ready: bool = False
    resources: ResourceRequirements | None = None
    restart_count: int = 0
    started: bool | None = None
    state: ContainerState = ContainerState()
    stop_signal: str | None = None
    user: ContainerUser | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] = ()


@frozen_model(kw_only=True)
class DaemonEndpoint(Model):
    """core/v1 DaemonEndpoint."""

    _json_names: ClassVar[Mapping[str, str]] = {"port": "Port"}

    port: int = 0


@frozen_model(kw_only=True)
class DownwardAPIVolumeFile(Model):
    """core/v1 DownwardAPIVolumeFile."""

    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str = ""
    resource_field_ref: ResourceFieldSelector | None = None


@frozen_model(kw_only=True)
class DownwardAPIProjection(Model):
    """core/v1 DownwardAPIProjection."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()


@frozen_model(kw_only=True)
class DownwardAPIVolumeSource(Model):
    """core/v1 DownwardAPIVolumeSource."""

    default_mode: int | None = None
    items: tuple[DownwardAPIVolumeFile, ...] = ()


@frozen_model(kw_only=True)
class EmptyDirVolumeSource(Model):
    """core/v1 EmptyDirVolumeSource."""

    medium: str | None = None
    size_limit: Quantity | None = None


@frozen_model(kw_only=True)
class EndpointAddress(Model):
    """core/v1 EndpointAddress."""

    hostname: str | None = None
    ip: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


@frozen_model(kw_only=True)
class EndpointPort(Model):
    """core/v1 EndpointPort."""

    app_protocol: str | None = None
    name: str | None = None
    port: int = 0
    protocol: str | None = None


@frozen_model(kw_only=True)
class EndpointSubset(Model):
    """core/v1 EndpointSubset."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


@frozen_model(kw_only=True)
class Endpoints(KubernetesObject):
    """core/v1 Endpoints."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Endpoints")

    subsets: tuple[EndpointSubset, ...] = ()


@frozen_model(kw_only=True)
class EphemeralContainer(Model):
    """core/v1 EphemeralContainer."""

    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    target_container_name: str | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: tuple[VolumeDevice, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    working_dir: str | None = None


@frozen_model(kw_only=True)
class VolumeResourceRequirements(Model):
    """core/v1 VolumeResourceRequirements."""

    limits: Mapping[str, Quantity] = EMPTY_MAP
    requests: Mapping[str, Quantity] = EMPTY_MAP


@frozen_model(kw_only=True)
class TypedLocalObjectReference(Model):
    """core/v1 TypedLocalObjectReference."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""


@frozen_model(kw_only=True)
class TypedObjectReference(Model):
    """core/v1 TypedObjectReference."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


@frozen_model(kw_only=True)
class PersistentVolumeClaimSpec(Model):
    """core/v1 PersistentVolumeClaimSpec."""

    access_modes: tuple[str, ...] = ()
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


@frozen_model(kw_only=True)
class PersistentVolumeClaimTemplate(Model):
    """core/v1 PersistentVolumeClaimTemplate."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


@frozen_model(kw_only=True)
class EphemeralVolumeSource(Model):
    """core/v1 EphemeralVolumeSource."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


@frozen_model(kw_only=True)
class EventSource(Model):
    """core/v1 EventSource."""

    component: str | None = None
    host: str | None = None


@frozen_model(kw_only=True)
class EventSeries(Model):
    """core/v1 EventSeries."""

    count: int | None = None
    last_observed_time: MicroTime | None = None


@frozen_model(kw_only=True)
class Event(KubernetesObject):
    """core/v1 Event."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Event")

    action: str | None = None
    count: int | None = None
    event_time: MicroTime | None = None
    first_timestamp: Time | None = None
    involved_object: ObjectReference = ObjectReference()
    last_timestamp: Time | None = None
    message: str | None = None
    reason: str | None = None
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    source: EventSource = EventSource()
    type: str | None = None


@frozen_model(kw_only=True)
class FCVolumeSource(Model):
    """core/v1 FCVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"target_wwns": "targetWWNs"}

    fs_type: str | None = None
    lun: int | None = None
    read_only: bool | None = None
    target_wwns: tuple[str, ...] = ()
    wwids: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class FlexPersistentVolumeSource(Model):
    """core/v1 FlexPersistentVolumeSource."""

    driver: str = ""
    fs_type: str | None = None
    options: Mapping[str, str] = EMPTY_MAP
    read_only: bool | None = None
    secret_ref: SecretReference | None = None


@frozen_model(kw_only=True)
class FlexVolumeSource(Model):
    """core/v1 FlexVolumeSource."""

    driver: str = ""
    fs_type: str | None = None
    options: Mapping[str, str] = EMPTY_MAP
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


@frozen_model(kw_only=True)
class FlockerVolumeSource(Model):
    """core/v1 FlockerVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"dataset_uuid": "datasetUUID"}

    dataset_name: str | None = None
    dataset_uuid: str | None = None


@frozen_model(kw_only=True)
class GCEPersistentDiskVolumeSource(Model):
    """core/v1 GCEPersistentDiskVolumeSource."""

    fs_type: str | None = None
    partition: int | None = None
    pd_name: str = ""
    read_only: bool | None = None


@frozen_model(kw_only=True)
class GitRepoVolumeSource(Model):
    """core/v1 GitRepoVolumeSource."""

    directory: str | None = None
    repository: str = ""
    revision: str | None = None


@frozen_model(kw_only=True)
class GlusterfsPersistentVolumeSource(Model):
    """core/v1 GlusterfsPersistentVolumeSource."""

    endpoints: str = ""
    endpoints_namespace: str | None = None
    path: str = ""
    read_only: bool | None = None


@frozen_model(kw_only=True)
class GlusterfsVolumeSource(Model):
    """core/v1 GlusterfsVolumeSource."""

    endpoints: str = ""
    path: str = ""
    read_only: bool | None = None


@frozen_model(kw_only=True)
class HostAlias(Model):
    """core/v1 HostAlias."""

    hostnames: tuple[str, ...] = ()
    ip: str = ""


@frozen_model(kw_only=True)
class HostIP(Model):
    """core/v1 HostIP."""

    ip: str = ""


@frozen_model(kw_only=True)
class HostPathVolumeSource(Model):
    """core/v1 HostPathVolumeSource."""

    path: str = ""
    type: str | None = None


@frozen_model(kw_only=True)
class ISCSIPersistentVolumeSource(Model):
    """core/v1 ISCSIPersistentVolumeSource."""

    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iqn: str = ""
    iscsi_interface: str | None = None
    lun: int = 0
    portals: tuple[str, ...] = ()
    read_only: bool | None = None
    secret_ref: SecretReference | None = None
    target_portal: str = ""


@frozen_model(kw_only=True)
class ISCSIVolumeSource(Model):
    """core/v1 ISCSIVolumeSource."""

    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iqn: str = ""
    iscsi_interface: str | None = None
    lun: int = 0
    portals: tuple[str, ...] = ()
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    target_portal: str = ""


@frozen_model(kw_only=True)
class ImageVolumeSource(Model):
    """core/v1 ImageVolumeSource."""

    pull_policy: str | None = None
    reference: str | None = None


@frozen_model(kw_only=True)
class LimitRangeItem(Model):
    """core/v1 LimitRangeItem."""

    default: Mapping[str, Quantity] = EMPTY_MAP
    default_request: Mapping[str, Quantity] = EMPTY_MAP
    max: Mapping[str, Quantity] = EMPTY_MAP
    max_limit_request_ratio: Mapping[str, Quantity] = EMPTY_MAP
    min: Mapping[str, Quantity] = EMPTY_MAP
    type: str = ""


@frozen_model(kw_only=True)
class LimitRangeSpec(Model):
    """core/v1 LimitRangeSpec."""

    limits: tuple[LimitRangeItem, ...] = ()


@frozen_model(kw_only=True)
class LimitRange(KubernetesObject):
    """core/v1 LimitRange."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "LimitRange")

    spec: LimitRangeSpec = LimitRangeSpec()


@frozen_model(kw_only=True)
class PortStatus(Model):
    """core/v1 PortStatus."""

    error: str | None = None
    port: int = 0
    protocol: str = ""


@frozen_model(kw_only=True)
class LoadBalancerIngress(Model):
    """core/v1 LoadBalancerIngress."""

    hostname: str | None = None
    ip: str | None = None
    ip_mode: str | None = None
    ports: tuple[PortStatus, ...] = ()


@frozen_model(kw_only=True)
class LoadBalancerStatus(Model):
    """core/v1 LoadBalancerStatus."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


@frozen_model(kw_only=True)
class LocalVolumeSource(Model):
    """core/v1 LocalVolumeSource."""

    fs_type: str | None = None
    path: str = ""


@frozen_model(kw_only=True)
class ModifyVolumeStatus(Model):
    """core/v1 ModifyVolumeStatus."""

    status: str = ""
    target_volume_attributes_class_name: str | None = None


@frozen_model(kw_only=True)
class NFSVolumeSource(Model):
    """core/v1 NFSVolumeSource."""

    path: str = ""
    read_only: bool | None = None
    server: str = ""


@frozen_model(kw_only=True)
class NamespaceSpec(Model):
    """core/v1 NamespaceSpec."""

    finalizers: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class NamespaceCondition(Model):
    """core/v1 NamespaceCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class NamespaceStatus(Model):
    """core/v1 NamespaceStatus."""

    conditions: tuple[NamespaceCondition, ...] = ()
    phase: str | None = None


@frozen_model(kw_only=True)
class Namespace(KubernetesObject):
    """core/v1 Namespace."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Namespace")

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


@frozen_model(kw_only=True)
class NodeConfigSource(Model):
    """core/v1 NodeConfigSource."""

    config_map: ConfigMapNodeConfigSource | None = None


@frozen_model(kw_only=True)
class Taint(Model):
    """core/v1 Taint."""

    effect: str = ""
    key: str = ""
    time_added: Time | None = None
    value: str | None = None


@frozen_model(kw_only=True)
class NodeSpec(Model):
    """core/v1 NodeSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "external_id": "externalID",
        "pod_cidr": "podCIDR",
        "pod_cidrs": "podCIDRs",
        "provider_id": "providerID",
    }

    config_source: NodeConfigSource | None = None
    external_id: str | None = None
    pod_cidr: str | None = None
    pod_cidrs: tuple[str, ...] = ()
    provider_id: str | None = None
    taints: tuple[Taint, ...] = ()
    unschedulable: bool | None = None


@frozen_model(kw_only=True)
class NodeDaemonEndpoints(Model):
    """core/v1 NodeDaemonEndpoints."""

    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


@frozen_model(kw_only=True)
class NodeSwapStatus(Model):
    """core/v1 NodeSwapStatus."""

    capacity: int | None = None


@frozen_model(kw_only=True)
class NodeSystemInfo(Model):
    """core/v1 NodeSystemInfo."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "boot_id": "bootID",
        "machine_id": "machineID",
        "system_uuid": "systemUUID",
    }

    architecture: str = ""
    boot_id: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kube_proxy_version: str = ""
    kubelet_version: str = ""
    machine_id: str = ""
    operating_system: str = ""
    os_image: str = ""
    swap: NodeSwapStatus | None = None
    system_uuid: str = ""


@frozen_model(kw_only=True)
class NodeAddress(Model):
    """core/v1 NodeAddress."""

    address: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class NodeCondition(Model):
    """core/v1 NodeCondition."""

    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class NodeConfigStatus(Model):
    """core/v1 NodeConfigStatus."""

    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str | None = None
    last_known_good: NodeConfigSource | None = None


@frozen_model(kw_only=True)
class NodeFeatures(Model):
    """core/v1 NodeFeatures."""

    supplemental_groups_policy: bool | None = None


@frozen_model(kw_only=True)
class NodeRuntimeHandlerFeatures(Model):
    """core/v1 NodeRuntimeHandlerFeatures."""

    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


@frozen_model(kw_only=True)
class NodeRuntimeHandler(Model):
    """core/v1 NodeRuntimeHandler."""

    features: NodeRuntimeHandlerFeatures | None = None
    name: str = ""


@frozen_model(kw_only=True)
class NodeStatus(Model):
    """core/v1 NodeStatus."""

    addresses: tuple[NodeAddress, ...] = ()
    allocatable: Mapping[str, Quantity] = EMPTY_MAP
    capacity: Mapping[str, Quantity] = EMPTY_MAP
    conditions: tuple[NodeCondition, ...] = ()
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints = NodeDaemonEndpoints()
    declared_features: tuple[str, ...] = ()
    features: NodeFeatures | None = None
    images: tuple[ContainerImage, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    phase: str | None = None
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class Node(KubernetesObject):
    """core/v1 Node."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Node")

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


@frozen_model(kw_only=True)
class NodeAllocatableResourceClaimStatus(Model):
    """core/v1 NodeAllocatableResourceClaimStatus."""

    containers: tuple[str, ...] = ()
    resource_claim_name: str = ""
    resources: Mapping[str, Quantity] = EMPTY_MAP


@frozen_model(kw_only=True)
class VolumeNodeAffinity(Model):
    """core/v1 VolumeNodeAffinity."""

    required: NodeSelector | None = None


@frozen_model(kw_only=True)
class PhotonPersistentDiskVolumeSource(Model):
    """core/v1 PhotonPersistentDiskVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"pd_id": "pdID"}

    fs_type: str | None = None
    pd_id: str = ""


@frozen_model(kw_only=True)
class PortworxVolumeSource(Model):
    """core/v1 PortworxVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"volume_id": "volumeID"}

    fs_type: str | None = None
    read_only: bool | None = None
    volume_id: str = ""


@frozen_model(kw_only=True)
class QuobyteVolumeSource(Model):
    """core/v1 QuobyteVolumeSource."""

    group: str | None = None
    read_only: bool | None = None
    registry: str = ""
    tenant: str | None = None
    user: str | None = None
    volume: str = ""


@frozen_model(kw_only=True)
class RBDPersistentVolumeSource(Model):
    """core/v1 RBDPersistentVolumeSource."""

    fs_type: str | None = None
    image: str = ""
    keyring: str | None = None
    monitors: tuple[str, ...] = ()
    pool: str | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None
    user: str | None = None


@frozen_model(kw_only=True)
class ScaleIOPersistentVolumeSource(Model):
    """core/v1 ScaleIOPersistentVolumeSource."""

    fs_type: str | None = None
    gateway: str = ""
    protection_domain: str | None = None
    read_only: bool | None = None
    secret_ref: SecretReference = SecretReference()
    ssl_enabled: bool | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    system: str = ""
    volume_name: str | None = None


@frozen_model(kw_only=True)
class StorageOSPersistentVolumeSource(Model):
    """core/v1 StorageOSPersistentVolumeSource."""

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: ObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


@frozen_model(kw_only=True)
class VsphereVirtualDiskVolumeSource(Model):
    """core/v1 VsphereVirtualDiskVolumeSource."""

    _json_names: ClassVar[Mapping[str, str]] = {"storage_policy_id": "storagePolicyID"}

    fs_type: str | None = None
    storage_policy_id: str | None = None
    storage_policy_name: str | None = None
    volume_path: str = ""


@frozen_model(kw_only=True)
class PersistentVolumeSpec(Model):
    """core/v1 PersistentVolumeSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {"scale_io": "scaleIO"}

    access_modes: tuple[str, ...] = ()
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    capacity: Mapping[str, Quantity] = EMPTY_MAP
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: tuple[str, ...] = ()
    nfs: NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = None
    storage_class_name: str | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


@frozen_model(kw_only=True)
class PersistentVolumeStatus(Model):
    """core/v1 PersistentVolumeStatus."""

    last_phase_transition_time: Time | None = None
    message: str | None = None
    phase: str | None = None
    reason: str | None = None


@frozen_model(kw_only=True)
class PersistentVolume(KubernetesObject):
    """core/v1 PersistentVolume."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "PersistentVolume")

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


@frozen_model(kw_only=True)
class PersistentVolumeClaimCondition(Model):
    """core/v1 PersistentVolumeClaimCondition."""

    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class PersistentVolumeClaimStatus(Model):
    """core/v1 PersistentVolumeClaimStatus."""

    access_modes: tuple[str, ...] = ()
    allocated_resource_statuses: Mapping[str, str] = EMPTY_MAP
    allocated_resources: Mapping[str, Quantity] = EMPTY_MAP
    capacity: Mapping[str, Quantity] = EMPTY_MAP
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ()
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str | None = None


@frozen_model(kw_only=True)
class PersistentVolumeClaim(KubernetesObject):
    """core/v1 PersistentVolumeClaim."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "PersistentVolumeClaim")

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


@frozen_model(kw_only=True)
class PersistentVolumeClaimVolumeSource(Model):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""
    read_only: bool | None = None


@frozen_model(kw_only=True)
class PodDNSConfigOption(Model):
    """core/v1 PodDNSConfigOption."""

    name: str | None = None
    value: str | None = None


@frozen_model(kw_only=True)
class PodDNSConfig(Model):
    """core/v1 PodDNSConfig."""

    nameservers: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()
    searches: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class PodOS(Model):
    """core/v1 PodOS."""

    name: str = ""


@frozen_model(kw_only=True)
class PodReadinessGate(Model):
    """core/v1 PodReadinessGate."""

    condition_type: str = ""


@frozen_model(kw_only=True)
class PodResourceClaim(Model):
    """core/v1 PodResourceClaim."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


@frozen_model(kw_only=True)
class PodSchedulingGate(Model):
    """core/v1 PodSchedulingGate."""

    name: str = ""


@frozen_model(kw_only=True)
class PodSchedulingGroup(Model):
    """core/v1 PodSchedulingGroup."""

    pod_group_name: str | None = None


@frozen_model(kw_only=True)
class Sysctl(Model):
    """core/v1 Sysctl."""

    name: str = ""
    value: str = ""


@frozen_model(kw_only=True)
class PodSecurityContext(Model):
    """core/v1 PodSecurityContext."""

    app_armor_profile: AppArmorProfile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: str | None = None
    sysctls: tuple[Sysctl, ...] = ()
    windows_options: WindowsSecurityContextOptions | None = None


@frozen_model(kw_only=True)
class Toleration(Model):
    """core/v1 Toleration."""

    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: int | None = None
    value: str | None = None


@frozen_model(kw_only=True)
class TopologySpreadConstraint(Model):
    """core/v1 TopologySpreadConstraint."""

    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    max_skew: int = 0
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    topology_key: str = ""
    when_unsatisfiable: str = ""


@frozen_model(kw_only=True)
class PodCertificateProjection(Model):
    """core/v1 PodCertificateProjection."""

    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    key_type: str = ""
    max_expiration_seconds: int | None = None
    signer_name: str = ""
    user_annotations: Mapping[str, str] = EMPTY_MAP


@frozen_model(kw_only=True)
class SecretProjection(Model):
    """core/v1 SecretProjection."""

    items: tuple[KeyToPath, ...] = ()
    name: str = ""
    optional: bool | None = None


@frozen_model(kw_only=True)
class ServiceAccountTokenProjection(Model):
    """core/v1 ServiceAccountTokenProjection."""

    audience: str | None = None
    expiration_seconds: int | None = None
    path: str = ""


@frozen_model(kw_only=True)
class VolumeProjection(Model):
    """core/v1 VolumeProjection."""

    _json_names: ClassVar[Mapping[str, str]] = {"downward_api": "downwardAPI"}

    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


@frozen_model(kw_only=True)
class ProjectedVolumeSource(Model):
    """core/v1 ProjectedVolumeSource."""

    default_mode: int | None = None
    sources: tuple[VolumeProjection, ...] = ()


@frozen_model(kw_only=True)
class RBDVolumeSource(Model):
    """core/v1 RBDVolumeSource."""

    fs_type: str | None = None
    image: str = ""
    keyring: str | None = None
    monitors: tuple[str, ...] = ()
    pool: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


@frozen_model(kw_only=True)
class ScaleIOVolumeSource(Model):
    """core/v1 ScaleIOVolumeSource."""

    fs_type: str | None = None
    gateway: str = ""
    protection_domain: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference = LocalObjectReference()
    ssl_enabled: bool | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    system: str = ""
    volume_name: str | None = None


@frozen_model(kw_only=True)
class SecretVolumeSource(Model):
    """core/v1 SecretVolumeSource."""

    default_mode: int | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None
    secret_name: str | None = None


@frozen_model(kw_only=True)
class StorageOSVolumeSource(Model):
    """core/v1 StorageOSVolumeSource."""

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


@frozen_model(kw_only=True)
class Volume(Model):
    """core/v1 Volume."""

    _json_names: ClassVar[Mapping[str, str]] = {"downward_api": "downwardAPI", "scale_io": "scaleIO"}

    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    name: str = ""
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


@frozen_model(kw_only=True)
class PodSpec(Model):
    """core/v1 PodSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "host_ipc": "hostIPC",
        "host_pid": "hostPID",
        "set_hostname_as_fqdn": "setHostnameAsFQDN",
    }

    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: tuple[Container, ...] = ()
    dns_config: PodDNSConfig | None = None
    dns_policy: str | None = None
    enable_service_links: bool | None = None
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    host_ipc: bool | None = None
    host_network: bool | None = None
    host_pid: bool | None = None
    host_users: bool | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str | None = None
    node_selector: Mapping[str, str] = EMPTY_MAP
    os: PodOS | None = None
    overhead: Mapping[str, Quantity] = EMPTY_MAP
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: bool | None = None
    share_process_namespace: bool | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: int | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()


@frozen_model(kw_only=True)
class PodCondition(Model):
    """core/v1 PodCondition."""

    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    observed_generation: int | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class PodExtendedResourceClaimStatus(Model):
    """core/v1 PodExtendedResourceClaimStatus."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


@frozen_model(kw_only=True)
class PodIP(Model):
    """core/v1 PodIP."""

    ip: str = ""


@frozen_model(kw_only=True)
class PodResourceClaimStatus(Model):
    """core/v1 PodResourceClaimStatus."""

    name: str = ""
    resource_claim_name: str | None = None


@frozen_model(kw_only=True)
class PodStatus(Model):
    """core/v1 PodStatus."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "host_ip": "hostIP",
        "host_ips": "hostIPs",
        "pod_ip": "podIP",
        "pod_ips": "podIPs",
    }

    allocated_resources: Mapping[str, Quantity] = EMPTY_MAP
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str | None = None
    host_ips: tuple[HostIP, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    message: str | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    nominated_node_name: str | None = None
    observed_generation: int | None = None
    phase: str | None = None
    pod_ip: str | None = None
    pod_ips: tuple[PodIP, ...] = ()
    qos_class: str | None = None
    reason: str | None = None
    resize: str | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    resources: ResourceRequirements | None = None
    start_time: Time | None = None


@frozen_model(kw_only=True)
class Pod(KubernetesObject):
    """core/v1 Pod."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Pod")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


@frozen_model(kw_only=True)
class PodTemplateSpec(Model):
    """core/v1 PodTemplateSpec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


@frozen_model(kw_only=True)
class PodTemplate(KubernetesObject):
    """core/v1 PodTemplate."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "PodTemplate")

    template: PodTemplateSpec = PodTemplateSpec()


@frozen_model(kw_only=True)
class ReplicationControllerSpec(Model):
    """core/v1 ReplicationControllerSpec."""

    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: Mapping[str, str] = EMPTY_MAP
    template: PodTemplateSpec | None = None


@frozen_model(kw_only=True)
class ReplicationControllerCondition(Model):
    """core/v1 ReplicationControllerCondition."""

    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class ReplicationControllerStatus(Model):
    """core/v1 ReplicationControllerStatus."""

    available_replicas: int | None = None
    conditions: tuple[ReplicationControllerCondition, ...] = ()
    fully_labeled_replicas: int | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0


@frozen_model(kw_only=True)
class ReplicationController(KubernetesObject):
    """core/v1 ReplicationController."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "ReplicationController")

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


@frozen_model(kw_only=True)
class ScopedResourceSelectorRequirement(Model):
    """core/v1 ScopedResourceSelectorRequirement."""

    operator: str = ""
    scope_name: str = ""
    values: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ScopeSelector(Model):
    """core/v1 ScopeSelector."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


@frozen_model(kw_only=True)
class ResourceQuotaSpec(Model):
    """core/v1 ResourceQuotaSpec."""

    hard: Mapping[str, Quantity] = EMPTY_MAP
    scope_selector: ScopeSelector | None = None
    scopes: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class ResourceQuotaStatus(Model):
    """core/v1 ResourceQuotaStatus."""

    hard: Mapping[str, Quantity] = EMPTY_MAP
    used: Mapping[str, Quantity] = EMPTY_MAP


@frozen_model(kw_only=True)
class ResourceQuota(KubernetesObject):
    """core/v1 ResourceQuota."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "ResourceQuota")

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


@frozen_model(kw_only=True)
class Secret(KubernetesObject):
    """core/v1 Secret."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Secret")

    data: Mapping[str, bytes] = EMPTY_MAP
    immutable: bool | None = None
    string_data: Mapping[str, str] = EMPTY_MAP
    type: str | None = None


@frozen_model(kw_only=True)
class ServicePort(Model):
    """core/v1 ServicePort."""

    app_protocol: str | None = None
    name: str | None = None
    node_port: int | None = None
    port: int = 0
    protocol: str | None = None
    target_port: int | str | None = None


@frozen_model(kw_only=True)
class SessionAffinityConfig(Model):
    """core/v1 SessionAffinityConfig."""

    _json_names: ClassVar[Mapping[str, str]] = {"client_ip": "clientIP"}

    client_ip: ClientIPConfig | None = None


@frozen_model(kw_only=True)
class ServiceSpec(Model):
    """core/v1 ServiceSpec."""

    _json_names: ClassVar[Mapping[str, str]] = {
        "cluster_ip": "clusterIP",
        "cluster_ips": "clusterIPs",
        "external_ips": "externalIPs",
        "load_balancer_ip": "loadBalancerIP",
    }

    allocate_load_balancer_node_ports: bool | None = None
    cluster_ip: str | None = None
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    external_name: str | None = None
    external_traffic_policy: str | None = None
    health_check_node_port: int | None = None
    internal_traffic_policy: str | None = None
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str | None = None
    load_balancer_source_ranges: tuple[str, ...] = ()
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool | None = None
    selector: Mapping[str, str] = EMPTY_MAP
    session_affinity: str | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None
    type: str | None = None


@frozen_model(kw_only=True)
class ServiceStatus(Model):
    """core/v1 ServiceStatus."""

    conditions: tuple[Condition, ...] = ()
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


@frozen_model(kw_only=True)
class Service(KubernetesObject):
    """core/v1 Service."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "Service")

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


@frozen_model(kw_only=True)
class ServiceAccount(KubernetesObject):
    """core/v1 ServiceAccount."""

    __resource__: ClassVar[ResourceInfo] = builtin("v1", "ServiceAccount")

    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    secrets: tuple[ObjectReference, ...] = ()


@frozen_model(kw_only=True)
class TopologySelectorLabelRequirement(Model):
    """core/v1 TopologySelectorLabelRequirement."""

    key: str = ""
    values: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class TopologySelectorTerm(Model):
    """core/v1 TopologySelectorTerm."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
