"""The validation of objects before they are stored: their metadata, and the rules of their kind.

Objects of built-in kinds in requests are validated by a table of rules for fields, and by the rules of some kinds.
Custom objects are validated with their schema, and CustomResourceDefinitions have their own rules.
"""

from __future__ import annotations

from ._custom_objects import custom_causes, scale_causes
from ._definitions import DEFINITIONS, definition_causes, definition_warnings
from ._field_checks import FieldCheck
from ._field_errors import forbidden, invalid_value
from ._field_rules import field_causes
from ._kind_rules import change_causes
from ._kinds import ServedKind
from ._metadata import json_equal
from ._object_meta import finalizer_warnings, metadata_causes, name_causes, unqualified_finalizers
from ._status import invalid
from ._storage import JSONObject
from ._values import value_at

_CHANGES_FIRST = ("secrets", "services")
"""The kinds whose changes kube-apiserver validates before their fields."""
_GENERIC_METADATA = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io"})
"""The groups of built-in kinds whose finalizers do not require a domain."""


def check_object(
    served: ServedKind,
    obj: JSONObject,
    old: JSONObject | None = None,
    *,
    status_only: bool = False,
    checks_fields: bool = False,
    fields: FieldCheck | None = None,
) -> None:
    """Check an object in the form in which it is stored.  ``old`` is the state of the object before an update.

    The fields of a built-in kind are only checked if ``checks_fields`` is true.
    """
    metadata = obj["metadata"]
    causes = name_causes(served, metadata["name"], metadata.get("generateName") or "") if old is None else []
    causes += metadata_causes(metadata)
    finalizers = metadata.get("finalizers") or []
    if served.is_builtin and served.info.group not in _GENERIC_METADATA:
        problem = "name is neither a standard finalizer name nor is it fully qualified"
        for part in ("metadata", "spec") if served.is_namespace else ("metadata",):
            listed = value_at(obj, part, "finalizers") or []
            for i in unqualified_finalizers(listed):
                causes.append(invalid_value(f"{part}.finalizers[{i}]", listed[i], problem))
    if old is not None and served.resource in ("configmaps", "secrets") and old.get("immutable") is True:
        causes += _immutable_causes(obj, old)
    if checks_fields and served.is_builtin:
        changes = [] if old is None else change_causes(served, obj, old)
        found = field_causes(served, obj)
        if found and old is not None:  # the direct API may have stored an object that is not valid
            known = field_causes(served, old)
            found = [one for one in found if one not in known]
        causes += changes + found if served.resource in _CHANGES_FIRST else found + changes
    if served.resource == DEFINITIONS:
        causes += definition_causes(obj, old)
    elif served.schema is not None:
        names = {"apiVersion": served.info.api_version, "kind": served.info.kind}
        was = None if old is None else {**names, **old}
        causes += custom_causes({**names, **obj}, served.schema, was, status_only=status_only)
        causes += scale_causes(obj, served.scale, status_only=status_only)
    if causes:
        raise invalid(served.info.group, served.info.kind, metadata["name"], causes)
    if fields is not None:
        if not served.is_builtin:
            before = [] if old is None else old["metadata"].get("finalizers") or []
            fields.warnings += finalizer_warnings(finalizers, before)
        if served.resource == DEFINITIONS:
            fields.warnings += definition_warnings(obj)


def _immutable_causes(obj: JSONObject, old: JSONObject) -> list[JSONObject]:
    changed = [] if obj.get("immutable") is True else ["immutable"]
    changed += [name for name in ("data", "binaryData") if not json_equal(obj.get(name) or {}, old.get(name) or {})]
    return [forbidden(name, "field is immutable when `immutable` is set") for name in changed]
