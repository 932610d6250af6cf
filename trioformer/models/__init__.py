"""What travels: the objects of the Kubernetes API, lazy, frozen and encoded without loss.

Import a kind from the module of its API group, and the tools that work on every kind from here::

    from trioformer.models import ObjectMeta, from_json
    from trioformer.models.core_v1 import Pod

The rooms:

- ``core_v1``, ``apps_v1``, ``batch_v1`` …: GENERATED, one module per group and version, imported on demand
- ``_lazy.py``: :class:`Model`, a level of JSON whose fields are made when they are read, and :func:`encode`
- ``_meta.py``: :class:`KubernetesObject`, its metadata, and where its kind lives on the server
- ``_unstructured.py``: :class:`Unstructured`, objects of kinds that no class describes
- ``_partial.py``: :class:`PartialObjectMetadata`, objects without anything but their metadata
- ``_kinds.py``: the built-in kinds by name; ``builtin_kinds.py`` (GENERATED) is their table
- ``_serde.py``: JSON to Python and back, by msgspec; ``_converter.py``: what msgspec does not know, by cattrs
- ``_quantity.py``: amounts such as ``100m`` and ``2Gi``
- ``_selectors/``: label and field selectors
- ``_generate/``: the developers' tool that writes the generated modules from ``_schema.json``; never imported
"""

from __future__ import annotations

from ._kinds import builtin_kind as builtin_kind
from ._kinds import builtin_resources as builtin_resources
from ._lazy import Model as Model
from ._lazy import encode as encode
from ._lazy import from_dict as from_dict
from ._lazy import from_json as from_json
from ._lazy import to_dict as to_dict
from ._meta import GroupVersionKind as GroupVersionKind
from ._meta import KubernetesObject as KubernetesObject
from ._meta import ManagedFieldsEntry as ManagedFieldsEntry
from ._meta import ObjectMeta as ObjectMeta
from ._meta import OwnerReference as OwnerReference
from ._meta import ResourceInfo as ResourceInfo
from ._meta import encode_for_server as encode_for_server
from ._meta import head_of as head_of
from ._meta import key_of as key_of
from ._meta import make_object as make_object
from ._meta import resource_of as resource_of
from ._partial import PartialObjectMetadata as PartialObjectMetadata
from ._partial import metadata_kind as metadata_kind
from ._partial import metadata_only as metadata_only
from ._quantity import Quantity as Quantity
from ._selectors import FieldOperator as FieldOperator
from ._selectors import FieldRequirement as FieldRequirement
from ._selectors import FieldSelector as FieldSelector
from ._selectors import LabelOperator as LabelOperator
from ._selectors import LabelRequirement as LabelRequirement
from ._selectors import LabelSelector as LabelSelector
from ._selectors import SelectableFields as SelectableFields
from ._serde import Head as Head
from ._serde import MetadataHead as MetadataHead
from ._serde import Raw as Raw
from ._serde import decode as decode
from ._serde import dumps as dumps
from ._serde import level_decoder as level_decoder
from ._serde import list_items as list_items
from ._serde import loads as loads
from ._serde import plain as plain
from ._serde import scan_head as scan_head
from ._serde import scan_whole as scan_whole
from ._serde import scan_without_managed_fields as scan_without_managed_fields
from ._unstructured import Unstructured as Unstructured
from ._unstructured import unstructured_kind as unstructured_kind
from ._values import EMPTY_MAP as EMPTY_MAP
from ._values import JSON as JSON
from ._values import FrozenMap as FrozenMap
from ._values import MicroTime as MicroTime
from ._values import Time as Time

__all__ = [
    "EMPTY_MAP",
    "JSON",
    "FieldOperator",
    "FieldRequirement",
    "FieldSelector",
    "FrozenMap",
    "GroupVersionKind",
    "Head",
    "KubernetesObject",
    "LabelOperator",
    "LabelRequirement",
    "LabelSelector",
    "ManagedFieldsEntry",
    "MetadataHead",
    "MicroTime",
    "Model",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "Quantity",
    "Raw",
    "ResourceInfo",
    "SelectableFields",
    "Time",
    "Unstructured",
    "builtin_kind",
    "builtin_resources",
    "decode",
    "dumps",
    "encode",
    "encode_for_server",
    "from_dict",
    "from_json",
    "head_of",
    "key_of",
    "level_decoder",
    "list_items",
    "loads",
    "make_object",
    "metadata_kind",
    "metadata_only",
    "plain",
    "resource_of",
    "scan_head",
    "scan_whole",
    "scan_without_managed_fields",
    "to_dict",
    "unstructured_kind",
]
