"""storage/v1beta1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._classes import frozen_model
from ._kinds import builtin
from ._meta import KubernetesObject
from ._resources import ResourceInfo
from ._values import EMPTY_MAP

__all__ = ["VolumeAttributesClass"]


@frozen_model(kw_only=True)
class VolumeAttributesClass(KubernetesObject):
    """storage/v1beta1 VolumeAttributesClass."""

    __resource__: ClassVar[ResourceInfo] = builtin("storage.k8s.io/v1beta1", "VolumeAttributesClass")

    driver_name: str = ""
    parameters: Mapping[str, str] = EMPTY_MAP
