"""storagemigration/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import Condition, GroupResource

__all__ = ["StorageVersionMigration", "StorageVersionMigrationSpec", "StorageVersionMigrationStatus"]


@frozen_model(kw_only=True)
class StorageVersionMigrationSpec(Model):
    """storagemigration/v1beta1 StorageVersionMigrationSpec."""

    resource: GroupResource = GroupResource()


@frozen_model(kw_only=True)
class StorageVersionMigrationStatus(Model):
    """storagemigration/v1beta1 StorageVersionMigrationStatus."""

    conditions: tuple[Condition, ...] = ()
    resource_version: str | None = None


@frozen_model(kw_only=True)
class StorageVersionMigration(KubernetesObject):
    """storagemigration/v1beta1 StorageVersionMigration."""

    __resource__: ClassVar[ResourceInfo] = builtin("storagemigration.k8s.io/v1beta1", "StorageVersionMigration")

    spec: StorageVersionMigrationSpec = StorageVersionMigrationSpec()
    status: StorageVersionMigrationStatus = StorageVersionMigrationStatus()
