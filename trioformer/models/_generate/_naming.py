"""Convert API names and types to Python."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .._from_crd._names import snake_case as snake_case
from .._values import camel_case
from ._schema import names_in

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

LEAVES: Mapping[str, str] = {
    f"{_META}.FieldsV1": "JSON",
    f"{_META}.MicroTime": "MicroTime",
    f"{_META}.Time": "Time",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "JSON",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int | str",
    f"{_CRD}.JSON": "JSON",
    f"{_CRD}.JSONSchemaPropsOrArray": "JSON",
    f"{_CRD}.JSONSchemaPropsOrBool": "JSON",
    f"{_CRD}.JSONSchemaPropsOrStringArray": "JSON",
}
"""Definitions that have no fields and are not objects."""

EMPTY = frozenset({f"{_CRD}.CustomResourceSubresourceStatus"})
"""Definitions of objects without fields, where only the presence of the object matters."""

BY_HAND = frozenset({f"{_META}.{name}" for name in ("ManagedFieldsEntry", "ObjectMeta", "OwnerReference")})
"""Handwritten classes in ``_meta.py``."""

_SCALARS = {"string": ("str", '""'), "integer": ("int", "0"), "number": ("float", "0.0"), "boolean": ("bool", "False")}


def needs_map(name: str) -> bool:
    """Return whether the camelCase form of the Python name differs from the API name."""
    return camel_case(snake_case(name)) != name


def class_of(definition: str) -> str:
    """Return the class name of a definition: ``Pod`` for ``io.k8s.api.core.v1.Pod``."""
    return definition.rpartition(".")[2]


def module_of(definition: str) -> str:
    """Return the module name of a definition: ``core_v1`` for ``io.k8s.api.core.v1.Pod``."""
    return "_meta" if definition in BY_HAND else "_".join(definition.split(".")[-3:-1])


def module_of_version(api_version: str) -> str:
    """Return the module name of a group and version: ``rbac_v1`` for ``rbac.authorization.k8s.io/v1``."""
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}_{version}"


def label_of(definition: str) -> str:
    """Return the group and version of a definition, such as ``core/v1``, for docstrings."""
    return module_of(definition).replace("_", "/")


@attrs.frozen
class PythonType:
    """The Python annotation and default of a field."""

    hint: str
    """The annotation."""
    default: str
    """The expression of the default."""
    definition: str | None
    """The definition whose class the annotation names."""
    is_value: bool = False
    """Whether the default is an instance of that class."""


def python_type(type_: str) -> PythonType:
    """Convert a field type in the schema to a Python annotation and default."""
    inner = names_in(type_)
    definition = None if inner in _SCALARS or inner == "bytes" or inner in LEAVES else inner
    hint = _hint(type_.removesuffix("?"))
    if type_[0] == "[":
        return PythonType(hint, "()", definition)
    if type_[0] == "{":
        return PythonType(hint, "EMPTY_MAP", definition)
    if hint == "JSON":
        return PythonType(hint, "None", None)
    if type_.endswith("?") or inner in LEAVES:
        return PythonType(f"{hint} | None", "None", definition)
    if inner in _SCALARS:
        return PythonType(hint, _SCALARS[inner][1], None)
    if inner == "bytes":
        return PythonType(hint, 'b""', None)
    return PythonType(hint, f"{hint}()", definition, is_value=True)


def _hint(type_: str) -> str:
    if type_[0] == "[":
        return f"tuple[{_hint(type_[1:-1])}, ...]"
    if type_[0] == "{":
        return f"Mapping[str, {_hint(type_[1:-1])}]"
    if type_ in _SCALARS:
        return _SCALARS[type_][0]
    return "bytes" if type_ == "bytes" else LEAVES.get(type_) or class_of(type_)
