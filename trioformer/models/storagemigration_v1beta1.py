"""storagemigration/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

# ruff: noqa: RUF009

from __future__ import annotations

from typing import ClassVar

import attrs

from ._kinds import builtin
from ._lazy import Model
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from .meta_v1 import Condition, GroupResource

__all__ = ["StorageVersionMigration", "StorageVersionMigrationSpec", "StorageVersionMigrationStatus"]


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class StorageVersionMigrationSpec(Model):
    """storagemigration/v1beta1 StorageVersionMigrationSpec."""

    resource: GroupResource = GroupResource()


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class StorageVersionMigrationStatus(Model):
    """storagemigration/v1beta1 StorageVersionMigrationStatus."""

    conditions: tuple[Condition, ...] = ()
    resource_version: str | None = None


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class StorageVersionMigration(KubernetesObject):
    """storagemigration/v1beta1 StorageVersionMigration."""

    __resource__: ClassVar[ResourceInfo] = builtin("storagemigration.k8s.io/v1beta1", "StorageVersionMigration")

    spec: StorageVersionMigrationSpec = StorageVersionMigrationSpec()
    status: StorageVersionMigrationStatus = StorageVersionMigrationStatus()
