"""The objects of the Kubernetes API: lazily decoded, immutable, and encoded without loss.

Import a kind from the module of its API group, and what works on every kind from here::

    from trioformer.models import ObjectMeta, from_json
    from trioformer.models.core_v1 import Pod

- ``core_v1``, ``apps_v1``, ``batch_v1`` …: generated, one module for each group and version; import the one you need
- ``conditions``: :class:`~trioformer.models.conditions.Condition`, and functions for the conditions of every kind
- ``_lazy.py``: :class:`Model`, a JSON object whose fields are decoded when they are read, and :func:`encode`
- ``_evolve.py``: the type of :meth:`Model.evolve`, which makes a changed copy
- ``_plain.py``: models as plain values, and back
- ``_fields.py``: one field of such an object, how it is decoded and how a change of it is written
- ``_merge_changes.py``: writes a change into JSON of which a class knows only a part
- ``_repr.py``: how a model is shown
- ``_meta.py``: :class:`KubernetesObject`, its metadata, and the head that the library reads of every object
- ``_resources.py``: :class:`ResourceInfo`, where the server keeps a kind
- ``_names.py``: the rules for the names that URL paths consist of
- ``_parts.py``: checks that what a program gives for a field is of its type
- ``_mistakes.py``: what a name that a model does not have probably means
- ``_unstructured.py``: :class:`Unstructured`, objects of kinds without a class
- ``_merge_patch.py``: :func:`merge_patch`, the changes between two values, and finds models in merge patches
- ``_extract.py``: :func:`extract`, what a field manager has applied
- ``_partial.py``: :class:`PartialObjectMetadata`, the metadata of objects
- ``_kinds.py``: finds built-in kinds by name; ``builtin_kinds.py`` is their generated table
- ``_quantity.py``: :class:`Quantity`, amounts such as ``100m`` and ``2Gi``
- ``_selectors/``: label and field selectors
- ``_values.py``: the types of fields that are neither models nor scalars: JSON, times, read-only maps
- ``_definitions.py``: refuses classes whose fields attrs has not made, and keeps the methods of models
- ``_hints.py``: refuses classes with fields of mutable types, and of types that JSON does not have
- ``_serde.py``: JSON to Python and back, with msgspec
- ``_converter.py``: the same for the types that msgspec does not support, with cattrs
- ``_from_crd/``: makes the source of classes from CustomResourceDefinitions, for the command
  ``python -m trioformer.models generate``
- ``_generate/``: the developers' tool that generates modules from ``_schema.json``; the library never imports it
- ``_internal.py``: what other packages of trioformer need
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._kinds import builtin_kind as builtin_kind
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
from ._values import EMPTY_MAP as EMPTY_MAP
from ._values import JSON as JSON
from ._values import FrozenMap as FrozenMap
from ._values import MicroTime as MicroTime
from ._values import Time as Time

if TYPE_CHECKING:
    from ._extract import extract as extract

__all__ = [
    "EMPTY_MAP",
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
    "builtin_kind",
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
