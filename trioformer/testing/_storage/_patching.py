"""The three kinds of patch: RFC 7386 merge patch, RFC 6902 JSON patch, and a subset of Kubernetes' strategic merge.

Source: apimachinery ``pkg/util/strategicpatch`` and the API conventions' "Strategic Merge Patch".
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import DecodeError
from ...models._internal import decode
from ._kinds import ServedKind
from ._metadata import json_equal
from ._status import bad_request, status_error
from ._storage import JSONObject

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_UNKNOWN_FORMAT = "the body of the request was in an unknown format - accepted media types include: "

MERGE_KEYS: Mapping[str, str] = {
    "conditions": "type",
    "containers": "name",
    "containerStatuses": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The merge key of each list that a strategic merge merges; other lists are replaced.

kube-apiserver reads it from the Go types; ``ports`` is a Service's when its items have no ``containerPort``.
"""
_SERVICE_PORT_KEY = "port"
_MERGED_SETS = frozenset({"finalizers"})

Change = Callable[[JSONObject], JSONObject]
"""Returns the new state of an object; is given the old one, which it may modify."""


def read_patch(served: ServedKind, content_type: str, body: bytes) -> Change:
    """Parse the body of a patch request.

    Raises:
        APIStatusError: 400 when the body is not a patch; 415 when the content type is not supported for the kind.
    """
    if content_type not in (MERGE, JSON_PATCH, STRATEGIC):
        raise status_error(415, details={})
    if content_type == STRATEGIC and not served.is_builtin:
        raise status_error(415, message=f"{_UNKNOWN_FORMAT}{JSON_PATCH}, {MERGE}")
    try:
        patch: Any = decode(body)
    except (DecodeError, RecursionError) as exc:
        raise bad_request(f"error decoding patch: {exc}") from exc
    if content_type == JSON_PATCH:
        if not (isinstance(patch, list) and all(isinstance(one, dict) for one in patch)):
            raise bad_request("error decoding patch: a JSON patch is a list of operations")
        return lambda obj: apply_json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: expected a JSON object")
    if content_type == MERGE:
        return lambda obj: merge(obj, patch)
    return lambda obj: _strategic_change(obj, patch)


# --- RFC 7386 ---------------------------------------------------------------------------------------------------------


def merge(obj: object, patch: object) -> Any:
    """Apply a merge patch: null members are deleted, objects merged, all other values replaced."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


# --- strategic merge --------------------------------------------------------------------------------------------------


def _strategic_change(obj: JSONObject, patch: JSONObject) -> JSONObject:
    try:
        changed: JSONObject = strategic_merge(obj, patch)
    except (AttributeError, TypeError) as exc:
        raise bad_request(f"unable to apply the patch: {exc}") from exc
    return changed


def strategic_merge(obj: object, patch: JSONObject) -> Any:
    """Apply a strategic merge patch: like :func:`merge`, but lists with a merge key are merged by item.

    Supports ``$patch: replace``, ``$patch: delete`` and ``$deleteFromPrimitiveList``; ignores ``$setElementOrder`` and
    ``$retainKeys``.
    """
    directive = patch.get("$patch")
    rest = {key: value for key, value in patch.items() if not key.startswith("$")}
    if directive == "delete":
        return {}
    merged: JSONObject = dict(obj) if isinstance(obj, dict) and directive != "replace" else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            merged[name] = [one for one in merged.get(name, ()) if one not in value]
    for key, value in rest.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = strategic_merge(merged.get(key), value)
        elif isinstance(value, list):
            merged[key] = _merge_list(key, merged.get(key), value)
        else:
            merged[key] = value
    return merged


def _merge_list(name: str, old: object, patch: list[Any]) -> list[Any]:
    items: list[Any] = list(old) if isinstance(old, list) else []
    if name in _MERGED_SETS:
        return items + [one for one in patch if one not in items]
    key = MERGE_KEYS.get(name)
    if name == "ports" and not any(isinstance(one, dict) and "containerPort" in one for one in patch):
        key = _SERVICE_PORT_KEY
    if key is None or not all(isinstance(one, dict) for one in (*items, *patch)):
        return patch
    if any(one.get("$patch") == "replace" for one in patch):
        return [one for one in patch if "$patch" not in one]
    for one in patch:
        index = next((i for i, item in enumerate(items) if json_equal(item.get(key), one.get(key))), None)
        if one.get("$patch") == "delete":
            items = [item for i, item in enumerate(items) if i != index]
        elif index is None:
            items.append(strategic_merge(None, one))
        else:
            items[index] = strategic_merge(items[index], one)
    return items


# --- RFC 6902 ---------------------------------------------------------------------------------------------------------


def apply_json_patch(obj: JSONObject, operations: list[JSONObject]) -> JSONObject:
    """Apply the operations of a JSON patch in order.

    Raises:
        APIStatusError: 422 when an operation does not apply or a test fails.
    """
    document: Any = obj
    try:
        for operation in operations:
            document = _apply(document, operation)
    except (LookupError, TypeError, ValueError) as exc:
        raise status_error(422, details={}) from exc
    if not isinstance(document, dict):
        raise status_error(422, details={})
    return document


def _apply(document: Any, operation: JSONObject) -> Any:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "test":
            if not json_equal(_at(document, path), operation["value"]):
                raise ValueError("test failed")
            return document
        case "add":
            return _put(document, path, operation["value"], insert=True)
        case "replace":
            _at(document, path)
            return _put(document, path, operation["value"], insert=False)
        case "remove":
            return _remove(document, path)
        case "move":
            source = _pointer(operation["from"])
            value = _at(document, source)
            return _put(_remove(document, source), path, value, insert=True)
        case "copy":
            return _put(document, path, copy.deepcopy(_at(document, _pointer(operation["from"]))), insert=True)
        case unknown:
            raise ValueError(f"unknown operation {unknown!r}")


def _pointer(text: object) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise ValueError(f"{text!r} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a list index")
    return int(text)


def _at(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(part)] if isinstance(document, list) else document[part]
    return document


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
