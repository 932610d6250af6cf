"""storage/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from ._kinds import builtin
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP

__all__ = ["VolumeAttributesClass"]


@attrs.frozen(kw_only=True, getstate_setstate=False, eq=False, repr=False, weakref_slot=False)
class VolumeAttributesClass(KubernetesObject):
    """storage/v1beta1 VolumeAttributesClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1beta1", "VolumeAttributesClass")

    driver_name: str = ""
    parameters: Mapping[str, str] = EMPTY_MAP
