"""Make CustomResourceDefinitions from classes, each of which describes one version of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from .._suggestions import describe
from ..models import KubernetesObject, ResourceInfo, from_dict, resource_of, to_dict
from ..models.apiextensions_v1 import CustomResourceConversion, CustomResourceDefinition
from ._constraints import JSONSchema
from ._facts import CustomResource, PrinterColumn
from ._schemas import schema_of
from ._sources import problem

__all__ = ["crd_of", "crds_of", "is_custom_resource"]

Kind: TypeAlias = type[KubernetesObject]

_MAX_SELECTABLE: Final = 8
_COLUMN_TYPES: Final = ("integer", "number", "string", "boolean")


def crds_of(*classes: Kind) -> tuple[CustomResourceDefinition, ...]:
    """Return one CustomResourceDefinition for each kind, with all versions of the kind.

    Args:
        classes: Classes decorated with :func:`custom_resource`, in any order.

    Raises:
        SchemaError: A class cannot be converted to a schema, or the versions of a kind contradict each other. The
            message names the class, field, file and line.
    """
    kinds: dict[tuple[str, str], list[Kind]] = {}
    for cls in classes:
        _facts_of(cls)
        kinds.setdefault((cls.__resource__.group, cls.__resource__.plural), []).append(cls)
    return tuple(crd_of(*versions) for versions in kinds.values())


def crd_of(*classes: Kind, conversion: CustomResourceConversion | None = None) -> CustomResourceDefinition:
    """Return the CustomResourceDefinition of one kind.

    Args:
        classes: The classes decorated with :func:`custom_resource`, one for each version, in the order of the
            definition.  If there are several classes, exactly one of them must have ``stored=True``.
        conversion: The conversion between versions. The default, None, changes only the apiVersion, so the server
            drops fields that the stored version does not have.

    Raises:
        SchemaError: A class cannot be converted to a schema, or the versions contradict each other. The message names
            the class, field, file and line.
        ValueError: No class is given.
    """
    if not classes:
        raise ValueError("crd_of() requires the class of at least one version")
    first, *others = classes
    versions = [_version_of(cls, is_only=not others) for cls in classes]
    _check_versions(classes)
    info = first.__resource__
    names = {
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": info.singular,
        **({"shortNames": [*info.short_names]} if info.short_names else {}),
        **({"categories": [*info.categories]} if info.categories else {}),
    }
    spec = {
        "group": info.group,
        "names": names,
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "versions": versions,
        **({} if conversion is None else {"conversion": to_dict(conversion)}),
    }
    return from_dict(
        CustomResourceDefinition,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{info.plural}.{info.group}"},
            "spec": spec,
        },
    )


def is_custom_resource(value: object) -> TypeGuard[Kind]:
    """Return whether a class is itself decorated with :func:`custom_resource`; a subclass does not count."""
    return isinstance(value, type) and isinstance(vars(value).get("__custom_resource__"), CustomResource)


def _facts_of(cls: Any) -> CustomResource:
    if not is_custom_resource(cls):
        name = getattr(cls, "__name__", repr(cls))
        text = "it does not define a custom resource; decorate it with @custom_resource"
        raise problem(cls, None, text) if isinstance(cls, type) else TypeError(f"{name}: {text}")
    facts: CustomResource = vars(cls)["__custom_resource__"]
    return facts


def _version_of(cls: Kind, *, is_only: bool) -> dict[str, object]:
    facts, info = _facts_of(cls), resource_of(cls)
    schema = schema_of(cls, facts.schema, has_status="status" in info.subresources)
    version: dict[str, object] = {
        "name": info.version,
        "served": facts.served,
        "storage": is_only if facts.stored is None else facts.stored,
        "schema": {"openAPIV3Schema": schema},
    }
    if facts.deprecated:
        version["deprecated"] = True
    if facts.deprecation_warning is not None:
        version["deprecationWarning"] = facts.deprecation_warning
    subresources = _subresources(cls, facts, info, schema)
    if subresources:
        version["subresources"] = subresources
    if facts.selectable_fields:
        version["selectableFields"] = _selectable_fields(cls, facts, schema)
    if facts.printer_columns:
        version["additionalPrinterColumns"] = [_column(cls, column, schema) for column in facts.printer_columns]
    return version


def _check_versions(classes: tuple[Kind, ...]) -> None:
    first = classes[0]
    seen: dict[str, Kind] = {}
    for cls in classes:
        info = cls.__resource__
        for name in ("group", "kind", "plural", "singular", "namespaced", "short_names", "categories"):
            mine, theirs = getattr(info, name), getattr(first.__resource__, name)
            if mine != theirs:
                text = f"{name} is {mine!r}, but {first.__name__} has {theirs!r}; all versions must have the same value"
                raise problem(cls, None, text)
        if info.version in seen:
            raise problem(cls, None, f"{seen[info.version].__name__} also has the version {info.version}")
        seen[info.version] = cls
    stored = [cls for cls in classes if _facts_of(cls).stored or (len(classes) == 1 and _facts_of(cls).stored is None)]
    if len(stored) != 1:
        found = " and ".join(cls.__name__ for cls in stored) or "none"
        text = f"exactly one version of {first.__resource__} must be stored, not {found}; set stored=True in one"
        raise problem(stored[-1] if stored else first, None, text)


# --- paths ------------------------------------------------------------------------------------------------------------


def _field_at(schema: JSONSchema, path: str) -> JSONSchema | None:
    """Return the schema at a path such as ``.spec.replicas``, or None if the class has no such field.

    Inside a map, or inside a part that preserves unknown fields, the result is an empty schema.
    """
    found: JSONSchema = schema
    for name in path.removeprefix(".").split("."):
        properties: Mapping[str, JSONSchema] = found.get("properties", {})
        if name in properties:
            found = properties[name]
        elif found.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in found or not found:
            return {}
        else:
            return None
    return found


def _check_path(cls: Kind, schema: JSONSchema, path: str, what: str) -> JSONSchema:
    """Return the schema at a path, or raise an error.

    Raises:
        SchemaError: The path does not consist only of names, or the class has no such field.
    """
    if not _is_simple(path):
        raise problem(cls, None, f"{what}: {path!r} is not a JSON path of names, such as .spec.replicas")
    found = {"type": "string"} if path.startswith(".metadata.") else _field_at(schema, path)
    if found is None:
        raise problem(cls, None, f"{what}: {path!r} is not a field of the class; a path consists of the API's names")
    return found


def _is_simple(path: str) -> bool:
    names = path.split(".")
    return names[0] == "" and len(names) > 1 and all(name.isidentifier() for name in names[1:])


def _subresources(cls: Kind, facts: CustomResource, info: ResourceInfo, schema: JSONSchema) -> dict[str, object]:
    found: dict[str, object] = {"status": {}} if "status" in info.subresources else {}
    scale = facts.scale
    if scale is None:
        return found
    wanted: list[tuple[str, str | None, str, tuple[str, ...]]] = [
        ("specReplicasPath", scale.spec_replicas, "integer", (".spec.",)),
        ("statusReplicasPath", scale.status_replicas, "integer", (".status.",)),
        ("labelSelectorPath", scale.label_selector, "string", (".spec.", ".status.")),
    ]
    members: dict[str, str] = {}
    for name, path, kind, starts in wanted:
        if path is None:
            continue
        where = f"the {name} of its scale"
        if _check_path(cls, schema, path, where).get("type", kind) != kind:
            raise problem(cls, None, f"{where}: {path!r} is not of type {kind}")
        if not path.startswith(starts):
            raise problem(cls, None, f"{where}: {path!r} does not begin with {' or '.join(starts)}")
        members[name] = path
    return {**found, "scale": members}


def _selectable_fields(cls: Kind, facts: CustomResource, schema: JSONSchema) -> list[dict[str, str]]:
    if len(facts.selectable_fields) > _MAX_SELECTABLE:
        text = f"it has {len(facts.selectable_fields)} selectable fields, but the server allows only {_MAX_SELECTABLE}"
        raise problem(cls, None, text)
    for path in facts.selectable_fields:
        found = _check_path(cls, schema, path, "a selectable field")
        if found.get("type") not in ("string", "integer", "boolean"):
            raise problem(cls, None, f"a selectable field: {path!r} is not a string, an integer or a boolean")
    return [{"jsonPath": path} for path in facts.selectable_fields]


def _column(cls: Kind, column: PrinterColumn, schema: JSONSchema) -> dict[str, object]:
    if not isinstance(column, PrinterColumn):
        raise problem(cls, None, f"a column must be a PrinterColumn, not {describe(column)}")
    kind: str | None = column.type
    if kind is None:
        kind = _type_at(cls, column, schema)
    optional = {"format": column.format, "description": column.description, "priority": column.priority or None}
    return {
        "name": column.name,
        "type": kind,
        "jsonPath": column.path,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _type_at(cls: Kind, column: PrinterColumn, schema: JSONSchema) -> str:
    if not column.path.startswith("."):
        raise problem(cls, None, f"the column {column.name}: {column.path!r} is not a JSON path such as .spec.replicas")
    if column.path in (".metadata.creationTimestamp", ".metadata.deletionTimestamp"):
        return "date"
    if not _is_simple(column.path):
        return "string"
    found = _check_path(cls, schema, column.path, f"the column {column.name}")
    if found.get("format") == "date-time":
        return "date"
    return found["type"] if found.get("type") in _COLUMN_TYPES else "string"
