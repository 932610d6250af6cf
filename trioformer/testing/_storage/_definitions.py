"""The rules for the names, versions, columns and paths in CustomResourceDefinitions.

Before validation, kube-apiserver moves the parts that are equal in all versions to the top level of the spec.
So the path of an error is in ``spec.validation`` if there is a single version, and in ``spec.versions[0].schema`` if
the versions have different schemas.

Source: apiextensions-apiserver ``pkg/apis/apiextensions/validation``, ``pkg/apis/apiextensions/v1/conversion.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from ._definition_schemas import has_rules, schema_causes
from ._field_errors import duplicate, forbidden, invalid_value, not_supported, required
from ._metadata import json_equal
from ._object_meta import dns_1035_problems, subdomain_problems
from ._schema_formats import text_format
from ._storage import JSONObject
from ._values import value_at

Causes: TypeAlias = Iterator[JSONObject]

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_NAMES: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
_LONGEST_WARNING: Final = 256
_APPROVAL: Final = "api-approved.kubernetes.io"
_MOST_SELECTABLE: Final = 8


def set_definition_defaults(definition: JSONObject) -> None:
    """Set the default names and the default conversion strategy of a definition, which is modified in place."""
    spec = definition.setdefault("spec", {})
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(names.get("kind"), str) and names["kind"]:
        names["singular"] = names.get("singular") or names["kind"].lower()
        names["listKind"] = names.get("listKind") or f"{names['kind']}List"
        spec["names"] = {name: names[name] for name in _NAMES if name in names}
    spec["conversion"] = spec.get("conversion") or {"strategy": "None"}


def definition_causes(definition: JSONObject, old: JSONObject | None) -> list[JSONObject]:
    """Validate a definition whose types are checked and whose defaults are set, and return the causes of all errors."""
    spec, metadata = definition["spec"], definition["metadata"]
    causes = []
    if old is None and metadata.get("name") != f"{value_at(spec, 'names', 'plural') or ''}.{spec.get('group') or ''}":
        problem = 'must be spec.names.plural+"."+spec.group'
        causes.append(invalid_value("metadata.name", metadata.get("name") or "", problem))
    causes += _spec_causes(spec)
    if old is not None:
        causes += _change_causes(spec, old["spec"])
        causes += _stored_causes(spec, (definition.get("status") or {}).get("storedVersions") or ())
    if not [one for one in spec.get("versions") or () if one.get("storage")]:
        causes.append(invalid_value("status.storedVersions", None, "must have at least one stored version"))
    elif len(stored := [one.get("name", "") for one in spec["versions"] if one.get("storage")]) > 1:
        problem = f"must have the storage version {stored[1]}"
        causes.append(invalid_value("status.storedVersions", stored[:1], problem))
    causes += _approval_causes(spec.get("group") or "", metadata.get("annotations") or {})
    if spec.get("preserveUnknownFields"):
        problem = "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead"
        causes.append(invalid_value("spec.preserveUnknownFields", value=True, detail=problem))
    return causes


def _spec_causes(spec: JSONObject) -> Causes:
    group, versions = spec.get("group") or "", spec.get("versions") or []
    if not group:
        yield required("spec.group")
    elif problems := list(subdomain_problems(group)):
        yield invalid_value("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    for i, version in enumerate(versions):
        if _schema_of(version) is None:
            yield required(f"spec.versions[{i}].schema.openAPIV3Schema")
    shared = [part for part in _PARTS if versions and _is_shared(versions, part)]
    for i, version in enumerate(versions):
        yield from _version_causes(version, i)
        for part in _PARTS:
            if part not in shared:
                yield from _part_causes(version, part, f"spec.versions[{i}].{part}")
    if len({version.get("name") for version in versions}) < len(versions):
        yield invalid_value("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        problem = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", spec.get("versions"), problem)
    for name in ("plural", "singular", "kind", "listKind"):
        if not value_at(spec, "names", name):
            yield required(f"spec.names.{name}")
    yield from _names_causes(spec.get("names") or {})
    for part in shared:
        yield from _part_causes(versions[0], part, f"spec.{_AT_TOP.get(part, part)}")
    yield from _conversion_causes(spec.get("conversion") or {})


def _schema_of(version: JSONObject) -> Any:
    return value_at(version, "schema", "openAPIV3Schema")


def _version_causes(version: JSONObject, index: int) -> Causes:
    path = f"spec.versions[{index}]"
    name = version.get("name") or ""
    if problems := list(dns_1035_problems(name)):
        yield invalid_value(f"{path}.name", name, ",".join(problems))
        if index == 0 and name:
            yield invalid_value("spec.version", name, ",".join(problems))
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid_value(where, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > _LONGEST_WARNING:
        yield invalid_value(where, warning, f"must be <= {_LONGEST_WARNING} characters long")
    if not warning:
        yield invalid_value(where, warning, "must not be an empty string")
    bad = next((i for i, one in enumerate(warning) if not one.isprintable()), None)
    if bad is not None:
        problem = "must only contain printable UTF-8 characters; non-printable character found at index"
        yield invalid_value(where, warning, f"{problem} {bad}")


# --- parts of each version, or of all versions in common --------------------------------------------------------------

_PARTS: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_AT_TOP: Final = {"schema": "validation"}
"""The names of the moved parts at the top level of the spec, if they differ from the names in a version."""


def _is_shared(versions: list[JSONObject], part: str) -> bool:
    first = versions[0].get(part)
    return bool(first) and all(json_equal(first, version.get(part)) for version in versions)


def _part_causes(version: JSONObject, part: str, path: str) -> Causes:
    value = version.get(part)
    if not value:
        return
    if part == "schema":
        schema = value.get("openAPIV3Schema")
        if schema is not None:
            has_status = (version.get("subresources") or {}).get("status") is not None
            yield from schema_causes(schema, f"{path}.openAPIV3Schema", has_status=has_status)
    elif part == "subresources":
        if value.get("scale") is not None:
            yield from _scale_causes(value["scale"], f"{path}.scale")
    elif part == "selectableFields":
        yield from _selectable_causes(value, _schema_of(version) or {}, path)
    else:
        for i, column in enumerate(value):
            yield from _column_causes(column, f"{path}[{i}]")


def _simple_path_problem(text: str) -> str:
    return "" if text.startswith(".") else "must be a simple json path starting with ."


def _scale_causes(scale: JSONObject, path: str) -> Causes:
    for name, prefix in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, where = scale.get(name) or "", f"{path}.{name}"
        if not text:
            yield required(where)
        elif problem := _simple_path_problem(text):
            yield invalid_value(where, text, problem)
        elif not text.startswith(prefix):
            yield invalid_value(where, text, f"should be a json path under {prefix[:-1]}")
    text, where = scale.get("labelSelectorPath") or "", f"{path}.labelSelectorPath"
    if text and (problem := _simple_path_problem(text)):
        yield invalid_value(where, text, problem)
    elif text and not text.startswith((".spec.", ".status.")):
        yield invalid_value(where, text, "should be a json path under either .spec or .status")


def _column_causes(column: JSONObject, path: str) -> Causes:
    if not column.get("name"):
        yield required(f"{path}.name")
    listed = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        yield required(f"{path}.type", listed)
    elif column["type"] not in _COLUMN_TYPES:
        yield invalid_value(f"{path}.type", column["type"], listed)
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        yield invalid_value(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column.get("jsonPath"):
        yield required(f"{path}.JSONPath")
    elif problem := _simple_path_problem(column["jsonPath"]):
        yield invalid_value(f"{path}.JSONPath", column["jsonPath"], problem)


def _field_path_problem(text: str, schema: Any) -> str:
    if not text.startswith("."):
        first = re.match(r"\w+|.", text)
        return f"expected [ or . but got: {first and first[0]}"
    if "[" in text:
        return "array notation is not allowed"
    if text.endswith("."):
        return "unexpected end of JSON path"
    return "" if isinstance(schema, dict) else "does not refer to a valid field"


def _selectable_causes(fields: list[JSONObject], schema: JSONObject, path: str) -> Causes:
    seen: set[str] = set()
    for i, one in enumerate(fields):
        text, where = one.get("jsonPath") or "", f"{path}[{i}].jsonPath"
        if not text:
            yield required(where)
            continue
        found: Any = schema
        for name in text[1:].split("."):
            level = found if isinstance(found, dict) else {}
            found = (level.get("properties") or {}).get(name) or level.get("additionalProperties")
        if problem := _field_path_problem(text, found):
            yield invalid_value(where, text, f"is an invalid path: {problem}")
            continue
        if text.startswith(".metadata"):
            yield invalid_value(where, text, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            problem = "must point to a field of type string, boolean or integer."
            yield invalid_value(where, text, f"{problem} Enum string fields and strings with formats are allowed.")
        if text in seen:
            yield duplicate(where, text)
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        yield invalid_value(path, len(seen), f"must have at most {_MOST_SELECTABLE} items", reason="FieldValueTooMany")


# --- names, conversion and changes ------------------------------------------------------------------------------------


def _names_causes(names: JSONObject) -> Causes:
    for name in ("plural", "singular", "kind", "listKind"):
        text = names.get(name) or ""
        is_kind = name in ("kind", "listKind")
        if text and (problems := list(dns_1035_problems(text.lower() if is_kind else text))):
            words = "may have mixed case, but should otherwise match: " if is_kind else ""
            yield invalid_value(f"spec.names.{name}", text, words + ",".join(problems))
    for name in ("shortNames", "categories"):
        for i, text in enumerate(names.get(name) or ()):
            if problems := list(dns_1035_problems(text)):
                yield invalid_value(f"spec.names.{name}[{i}]", text, ",".join(problems))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid_value("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion_causes(conversion: JSONObject) -> Causes:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook")
    if strategy == "Webhook" and not (webhook or {}).get("clientConfig"):
        yield required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
    elif strategy == "None" and webhook:
        yield forbidden("spec.conversion.webhookClientConfig", "should not be set when strategy is not set to Webhook")


def _change_causes(spec: JSONObject, old: JSONObject) -> Causes:
    for path in ("scope", "names.kind", "group", "names.plural"):
        after, before = (value_at(one, *path.split(".")) for one in (spec, old))
        if after != before:
            yield invalid_value(f"spec.{path}", after, "field is immutable")


def _stored_causes(spec: JSONObject, stored: Iterable[str]) -> Causes:
    """Yield a cause for each version that was removed from the definition although objects may be stored in it."""
    names = [one.get("name") for one in spec.get("versions") or ()]
    for index, name in enumerate(stored):
        if name not in names:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", name, problem)


def _approval_causes(group: str, annotations: JSONObject) -> Causes:
    is_protected = f".{group}".endswith((".k8s.io", ".kubernetes.io"))
    if is_protected and not annotations.get(_APPROVAL):
        problem = f'protected groups must have approval annotation "{_APPROVAL}"'
        see = "see https://github.com/kubernetes/enhancements/pull/1111"
        yield required(f"metadata.annotations[{_APPROVAL}]", f"{problem}, {see}")


# --- warnings ---------------------------------------------------------------------------------------------------------


def definition_warnings(definition: JSONObject) -> list[str]:
    """Return warnings for formats and CEL rules in a definition that this server ignores."""
    schemas = [_schema_of(version) for version in definition["spec"].get("versions") or ()]
    warnings = [f'unrecognized format "{name}"' for schema in schemas for name in _unknown_formats(schema)]
    if any(map(has_rules, schemas)):
        warnings.append("x-kubernetes-validations: the embedded API server does not evaluate CEL rules")
    return warnings


def _unknown_formats(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    name, type_ = schema.get("format"), schema.get("type") or ""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(type_, ())
    if name and not (text_format(name) if type_ in ("", "string") else name in known):
        yield name
    below: Iterable[Any] = (
        schema.get("items"),
        schema.get("additionalProperties"),
        schema.get("not"),
        *(schema.get("properties") or {}).values(),
        *(one for clause in ("allOf", "anyOf", "oneOf") for one in schema.get(clause) or ()),
    )
    for one in below:
        yield from _unknown_formats(one)


def deprecation_of(spec: JSONObject, version: JSONObject) -> str:
    """Return the warning for requests to a deprecated version, or an empty string if the version is not deprecated."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        text: str = version["deprecationWarning"]
        return text
    group, kind = spec.get("group"), spec["names"]["kind"]
    usable = (one["name"] for one in spec["versions"] if one.get("served") and not one.get("deprecated"))
    newest = max(usable, key=version_order, default="")
    use = f"; use {group}/{newest} {kind}" if version_order(newest) > version_order(version["name"]) else ""
    return f"{group}/{version['name']} {kind} is deprecated{use}"


def version_order(name: str) -> tuple[int, int, int]:
    """Return a sort key that orders the versions of a kind: v1alpha1, v1beta1, v1beta2, v1, v2."""
    head, _, tail = name.removeprefix("v").partition("alpha" if "alpha" in name else "beta")
    if not name.startswith("v") or not head.isdecimal():
        return (0, 0, 0)
    return (1 if "alpha" in name else 2 if "beta" in name else 3, int(head), int(tail) if tail.isdecimal() else 0)
