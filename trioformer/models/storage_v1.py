"""storage/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._quantity import Quantity
from ._resources import ResourceInfo
from ._values import EMPTY_MAP, Time
from .core_v1 import PersistentVolumeSpec, TopologySelectorTerm
from .meta_v1 import LabelSelector

__all__ = [
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSIStorageCapacity",
    "StorageClass",
    "TokenRequest",
    "VolumeAttachment",
    "VolumeAttachmentSource",
    "VolumeAttachmentSpec",
    "VolumeAttachmentStatus",
    "VolumeAttributesClass",
    "VolumeError",
    "VolumeNodeResources",
]


@frozen_model(kw_only=True)
class TokenRequest(Model):
    """storage/v1 TokenRequest."""

    audience: str = ""
    expiration_seconds: int | None = None


@frozen_model(kw_only=True)
class CSIDriverSpec(Model):
    """storage/v1 CSIDriverSpec."""

    attach_required: bool | None = None
    fs_group_policy: str | None = None
    node_allocatable_update_period_seconds: int | None = None
    pod_info_on_mount: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    service_account_token_in_secrets: bool | None = None
    storage_capacity: bool | None = None
    token_requests: tuple[TokenRequest, ...] = ()
    volume_lifecycle_modes: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class CSIDriver(KubernetesObject):
    """storage/v1 CSIDriver."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1", "CSIDriver")

    spec: CSIDriverSpec = CSIDriverSpec()


@frozen_model(kw_only=True)
class VolumeNodeResources(Model):
    """storage/v1 VolumeNodeResources."""

    count: int | None = None


@frozen_model(kw_only=True)
class CSINodeDriver(Model):
    """storage/v1 CSINodeDriver."""

    _json_names: ClassVar[Mapping[str, str]] = {"node_id": "nodeID"}

    allocatable: VolumeNodeResources | None = None
    name: str = ""
    node_id: str = ""
    topology_keys: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class CSINodeSpec(Model):
    """storage/v1 CSINodeSpec."""

    drivers: tuple[CSINodeDriver, ...] = ()


@frozen_model(kw_only=True)
class CSINode(KubernetesObject):
    """storage/v1 CSINode."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1", "CSINode")

    spec: CSINodeSpec = CSINodeSpec()


@frozen_model(kw_only=True)
class CSIStorageCapacity(KubernetesObject):
    """storage/v1 CSIStorageCapacity."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1", "CSIStorageCapacity")

    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""


@frozen_model(kw_only=True)
class StorageClass(KubernetesObject):
    """storage/v1 StorageClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1", "StorageClass")

    allow_volume_expansion: bool | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    mount_options: tuple[str, ...] = ()
    parameters: Mapping[str, str] = EMPTY_MAP
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


@frozen_model(kw_only=True)
class VolumeAttachmentSource(Model):
    """storage/v1 VolumeAttachmentSource."""

    inline_volume_spec: PersistentVolumeSpec | None = None
    persistent_volume_name: str | None = None


@frozen_model(kw_only=True)
class VolumeAttachmentSpec(Model):
    """storage/v1 VolumeAttachmentSpec."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


@frozen_model(kw_only=True)
class VolumeError(Model):
    """storage/v1 VolumeError."""

    error_code: int | None = None
    message: str | None = None
    time: Time | None = None


@frozen_model(kw_only=True)
class VolumeAttachmentStatus(Model):
    """storage/v1 VolumeAttachmentStatus."""

    attach_error: VolumeError | None = None
    attached: bool = False
    attachment_metadata: Mapping[str, str] = EMPTY_MAP
    detach_error: VolumeError | None = None


@frozen_model(kw_only=True)
class VolumeAttachment(KubernetesObject):
    """storage/v1 VolumeAttachment."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1", "VolumeAttachment")

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


@frozen_model(kw_only=True)
class VolumeAttributesClass(KubernetesObject):
    """storage/v1 VolumeAttributesClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1", "VolumeAttributesClass")

    driver_name: str = ""
    parameters: Mapping[str, str] = EMPTY_MAP
