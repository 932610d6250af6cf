"""Patch requests, and how merge patches (RFC 7386) and JSON patches (RFC 6902) are applied.

``_apply.py`` handles the fourth type of patch, server-side apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import DecodeError
from ...models._internal import decode, dumps
from ._bodies import check_size, count_values, decode_body, has_too_many_levels, has_too_many_values
from ._field_checks import FieldCheck
from ._field_types import DEDUCED, builtin_type
from ._kinds import ServedKind
from ._metadata import json_equal
from ._status import NOT_AN_OBJECT, bad_request, status_error, unknown_format
from ._storage import JSONObject
from ._strategic import strategic_merge

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

MAX_OPERATIONS = 10_000
"""The maximum number of operations in a JSON patch, as in kube-apiserver."""
MAX_COPIED = 3 * 1024 * 1024
"""The maximum total size of the values that a JSON patch copies, in bytes, as in kube-apiserver.  Each copy can double
an object.

Copies may add as many values as a body may have.
"""

Change = Callable[[JSONObject], JSONObject]
"""A function that takes the old state of an object, which it may modify, and returns the new state."""


def read_patch(served: ServedKind, content_type: str, body: bytes, fields: FieldCheck | None = None) -> Change:
    """Return a function that applies the patch in the body of a request.

    The function raises a 413 error if the object becomes larger than a request body may be.

    Raises:
        APIStatusError: The body is not a patch (400), the body has too many operations or values (413), or the content
            type is not supported for the kind (415).
    """
    change = _read_change(served, content_type, body, fields)

    def bounded(obj: JSONObject) -> JSONObject:
        changed = change(obj)
        check_size(dumps(changed))
        return changed

    return bounded


def _read_change(served: ServedKind, content_type: str, body: bytes, fields: FieldCheck | None) -> Change:
    if content_type not in (MERGE, JSON_PATCH, *([STRATEGIC] if served.is_builtin else [])):
        if served.is_builtin:
            raise status_error(415, details={})
        raise unknown_format(f"{JSON_PATCH}, {MERGE}, application/apply-patch+yaml")
    try:
        patch: Any = decode_body(body)
    except ValueError as exc:
        raise bad_request(f"error decoding patch: {exc}") from exc
    if fields is not None:
        fields.check_duplicates(body, patch, prefix="json patch " if content_type == JSON_PATCH else "")
    if content_type == JSON_PATCH:
        if not (isinstance(patch, list) and all(isinstance(one, dict) for one in patch)):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp"
            )
        if len(patch) > MAX_OPERATIONS:
            problem = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
            raise status_error(413, message=f"Request entity too large: {problem}")
        if fields is not None:
            fields.check_operations(patch)
        return lambda obj: apply_json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request(f"{'error decoding patch: ' if content_type == MERGE else ''}{NOT_AN_OBJECT}")
    if content_type == MERGE:
        return lambda obj: merge(obj, patch)
    if fields is not None:
        fields.strategic = patch
    of = builtin_type(served.release, served.info.api_version, served.info.kind) or DEDUCED
    return lambda obj: strategic_merge(of, obj, patch)


# --- RFC 7386 ---------------------------------------------------------------------------------------------------------


def merge(obj: object, patch: object) -> Any:
    """Apply a merge patch.

    Members that are null in the patch are deleted, objects are merged, and all other values are replaced.

    As in kube-apiserver, but not in the RFC, null members of objects in a list are also deleted, unless the list
    replaces an object.
    """
    if not isinstance(obj, dict):
        return _pruned(patch)
    if not isinstance(patch, dict):
        return patch
    merged = dict(obj)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _pruned(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(member) for key, member in value.items() if member is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


# --- RFC 6902 ---------------------------------------------------------------------------------------------------------


def apply_json_patch(obj: JSONObject, operations: list[JSONObject]) -> JSONObject:
    """Apply the operations of a JSON patch in order.

    Raises:
        APIStatusError: An operation cannot be applied, a test fails, the result would be too large, or the result has
            too many levels (422).
    """
    document: Any = obj
    copied = values = containers = 0
    try:
        for operation in operations:
            if operation["op"] == "copy":
                source = dumps(_value_at(document, _pointer(operation["from"])))
                copied += len(source)
                counts = count_values(source)
                values += counts[0]
                containers += counts[1]
                if copied > MAX_COPIED or has_too_many_values(values, containers):
                    raise ValueError(f"the patch copies more than {MAX_COPIED} bytes, or too many values")  # noqa: TRY301
                document = _put(document, _pointer(operation["path"]), decode(source), insert=True)
            else:
                document = _apply(document, operation)
    except (DecodeError, LookupError, TypeError, ValueError) as exc:
        raise status_error(422, details={}) from exc
    if not isinstance(document, dict) or has_too_many_levels(document):
        raise status_error(422, details={})
    return document


def _apply(document: Any, operation: JSONObject) -> Any:
    """Apply an operation other than copy."""
    path = _pointer(operation["path"])
    match operation["op"]:
        case "test":
            if not json_equal(_value_at(document, path), operation.get("value")):
                raise ValueError("test failed")
            return document
        case "add":
            return _put(document, path, operation.get("value"), insert=True)
        case "replace":
            return _put(document, path, operation.get("value"), insert=False)
        case "remove":
            return _remove(document, path)
        case "move":
            source = _pointer(operation["from"])
            value = _at(document, source)
            return _put(_remove(document, source), path, value, insert=True)
        case unknown:
            raise ValueError(f"unknown operation {unknown!r}")


def _pointer(text: object) -> list[str]:
    if not isinstance(text, str) or (text and "/" not in text):
        raise ValueError(f"{text!r} is not a JSON pointer")
    parts = text.split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts] if "~" in text else parts


def _index(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is not a list index")
    return int(text)


def _at(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(part)] if isinstance(document, list) else document[part]
    return document


def _value_at(document: Any, path: list[str]) -> Any:
    """Return the value at a path.  As in kube-apiserver, a missing member of an object is null."""
    if not path:
        return document
    parent = _at(document, path[:-1])
    return parent.get(path[-1]) if isinstance(parent, dict) else _at(parent, path[-1:])


def _put(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    *parents, last = path
    parent = _at(document, parents)
    if not isinstance(parent, list):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    elif not insert:
        parent[_index(last)] = value
    elif _index(last) <= len(parent):
        parent.insert(_index(last), value)
    else:
        raise IndexError(last)
    return document


def _remove(document: Any, path: list[str]) -> Any:
    *parents, last = path
    parent = _at(document, parents)
    if isinstance(parent, list):
        del parent[_index(last)]
    else:
        del parent[last]
    return document
