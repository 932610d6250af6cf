"""The rules for ``metadata``: the fields that only the server sets, and the order of fields.

Source: apimachinery ``pkg/api/validation`` and apiserver ``pkg/registry/rest``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from ._field_errors import forbidden, invalid_value
from ._kinds import ServedKind
from ._status import invalid
from ._storage import JSONObject

_SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_ORDER = (
    "name",
    "generateName",
    "namespace",
    *_SERVER_FIELDS,
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)


def ordered(metadata: Mapping[str, Any]) -> JSONObject:
    """Return the metadata without empty fields, and with the other fields in kube-apiserver's order."""
    full = {**{key: metadata[key] for key in _ORDER if key in metadata}, **metadata}
    return {key: value for key, value in full.items() if (value or value == 0) and key != "selfLink"}


def without_server_fields(metadata: Mapping[str, Any]) -> JSONObject:
    """Return the metadata without the fields that only the server sets."""
    return {key: value for key, value in metadata.items() if key not in _SERVER_FIELDS}


def with_server_fields(new: Mapping[str, Any], old: Mapping[str, Any]) -> JSONObject:
    """Return the new metadata, with the old values of all fields that a client cannot change."""
    kept = {key: old[key] for key in (*_SERVER_FIELDS, "name", "namespace") if key in old}
    return ordered({**without_server_fields(new), **kept})


def check_metadata_change(served: ServedKind, old: JSONObject, new: JSONObject) -> None:
    """Check that an update does not change immutable metadata, or add finalizers to an object that is being deleted.

    Raises:
        APIStatusError: The update does so (422).
    """
    is_deleting = "deletionTimestamp" in old
    causes = [
        invalid_value(f"metadata.{name}", new[name], "field is immutable")
        for name in ("uid", *(() if is_deleting else ("deletionTimestamp",)), "deletionGracePeriodSeconds")
        if new.get(name) not in (None, "", old.get(name))
    ]
    before = frozenset(old.get("finalizers", ()))
    added = [one for one in new.get("finalizers") or () if one not in before]
    if is_deleting and added:
        problem = "no new finalizers can be added if the object is being deleted, found new finalizers"
        listed = ", ".join(f'"{one}"' for one in added)
        causes.append(forbidden("metadata.finalizers", f"{problem} []string{{{listed}}}"))
    if causes:
        raise invalid(served.info.group, served.info.kind, old["name"], causes)


def json_equal(one: object, other: object) -> bool:
    """Return whether two decoded JSON values are equal.

    In contrast to Python's ``==``, the values true, 1 and 1.0 are different.
    """
    return one == other and _have_equal_types(one, other)


def _have_equal_types(one: object, other: object) -> bool:
    """Return whether two values that are equal for Python are equal JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs: Iterable[tuple[object, object]] = [(value, other[key]) for key, value in one.items()]
    elif isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=True)
    else:
        return type(one) is type(other)
    # Most values are texts, for which a call would take most of the time.
    return all(type(value) is str or _have_equal_types(value, same) for value, same in pairs)


def stored_numbers(value: Any) -> Any:
    """Convert the numbers in a JSON value to the form in which kube-apiserver stores them in custom objects.

    kube-apiserver decodes integers as int64 and other numbers as float64, and encodes ``1.0`` as ``1``.
    """
    if isinstance(value, dict):
        return {key: stored_numbers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [stored_numbers(item) for item in value]
    if type(value) is int and not -(2**63) <= value < 2**63:
        value = float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _FIRST_WITH_EXPONENT:
        return int(Decimal(repr(value)))
    return value


_FIRST_WITH_EXPONENT = 1e21
