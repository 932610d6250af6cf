"""Kubernetes API objects as Python classes: lazily decoded, immutable, and encoded without loss.

Import a kind from the module of its API group.  Import functions and base classes from this package::

    from trioformer.models import ObjectMeta, from_json
    from trioformer.models.core_v1 import Pod

- ``core_v1``, ``apps_v1``, ``batch_v1`` …: generated modules, one for each group and version
- ``conditions``: the class :class:`~trioformer.models.conditions.Condition`, and functions that find and set conditions
- ``_lazy.py``: the class :class:`Model`, a JSON object whose fields are decoded when they are read, and :func:`encode`
- ``_evolve.py``: the type of :meth:`Model.evolve`, which makes a changed copy
- ``_plain.py``: converts models to plain values, and plain values to models
- ``_fields.py``: decodes one field of a model, and writes a new value of the field
- ``_merge_changes.py``: writes a change into JSON that has more members than the class has fields
- ``_repr.py``: the repr of a model
- ``_meta.py``: the class :class:`KubernetesObject`, its metadata, and the metadata fields that the library itself reads
- ``_resources.py``: the class :class:`ResourceInfo`, the API resource of a kind
- ``_names.py``: the rules for names that become parts of URL paths
- ``_parts.py``: checks that a value given for a field has the type of the field
- ``_mistakes.py``: errors for unknown attributes, with suggestions
- ``_unstructured.py``: the class :class:`Unstructured`, an object of a kind that has no class
- ``_merge_patch.py``: the function :func:`merge_patch`, which makes a merge patch, and a check for models in patches
- ``_extract.py``: the function :func:`extract`, which returns the fields that a field manager has applied
- ``_partial.py``: the class :class:`PartialObjectMetadata`, the metadata of an object without its spec and status
- ``_kinds.py``: finds built-in kinds by name; ``builtin_kinds.py`` is their generated table
- ``_quantity.py``: the class :class:`Quantity` for amounts such as ``100m`` and ``2Gi``
- ``_selectors/``: label and field selectors
- ``_values.py``: the types of fields that are neither models nor scalars
- ``_classes.py``: makes the classes of built-in kinds
- ``_definitions.py``: rejects classes that attrs has not processed, and keeps the methods of models
- ``_hints.py``: rejects classes with a field whose type is mutable or has no form in JSON
- ``_serde.py``: decodes and encodes JSON with msgspec
- ``_converter.py``: decodes and encodes the types that msgspec does not support, with cattrs
- ``_from_crd/``: generates classes from CustomResourceDefinitions, for ``python -m trioformer.models generate``
- ``_generate/``: a developer tool that generates modules from ``_schema.json``; the library never imports it
- ``_internal.py``: private names that other packages of trioformer import
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._lazy import Model as Model
from ._lazy import encode as encode
from ._lazy import evolve as evolve
from ._lazy import from_json as from_json
from ._merge_patch import merge_patch as merge_patch
from ._meta import KubernetesObject as KubernetesObject
from ._meta import ObjectMeta as ObjectMeta
from ._meta import OwnerReference as OwnerReference
from ._meta import key_of as key_of
from ._partial import PartialObjectMetadata as PartialObjectMetadata
from ._partial import metadata_kind as metadata_kind
from ._plain import from_dict as from_dict
from ._plain import json_equal as json_equal
from ._plain import to_dict as to_dict
from ._quantity import Quantity as Quantity
from ._resources import ResourceInfo as ResourceInfo
from ._resources import resource_of as resource_of
from ._selectors import FieldSelector as FieldSelector
from ._selectors import LabelSelector as LabelSelector
from ._unstructured import Unstructured as Unstructured
from ._unstructured import unstructured_kind as unstructured_kind
from ._values import JSON as JSON
from ._values import FrozenMap as FrozenMap
from ._values import MicroTime as MicroTime
from ._values import Time as Time

if TYPE_CHECKING:
    from ._extract import extract as extract

__all__ = [
    "JSON",
    "FieldSelector",
    "FrozenMap",
    "KubernetesObject",
    "LabelSelector",
    "MicroTime",
    "Model",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "Quantity",
    "ResourceInfo",
    "Time",
    "Unstructured",
    "encode",
    "evolve",
    "extract",
    "from_dict",
    "from_json",
    "json_equal",
    "key_of",
    "merge_patch",
    "metadata_kind",
    "resource_of",
    "to_dict",
    "unstructured_kind",
]

if not TYPE_CHECKING:  # most programs never need it
    __getattr__, __dir__ = _names_on_demand(globals(), {"extract": "_extract"})
