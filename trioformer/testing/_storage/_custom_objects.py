"""The validation of custom objects, except for their metadata: their schema, unique items and embedded objects.

Source: apiextensions-apiserver ``pkg/registry/customresource``, ``pkg/apiserver/schema/listtype`` and ``objectmeta``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ._field_errors import duplicate, invalid_value, json_text, required
from ._go_formats import go_text, go_type
from ._object_meta import dns_1035_problems, metadata_causes, segment_problems
from ._schema_validation import MISSING, validate
from ._schemas import Schema, children, embedded_objects
from ._storage import JSONObject

_MAX_REPLICAS: Final = 2**31 - 1


def custom_causes(obj: JSONObject, schema: Schema, old: JSONObject | None, *, status_only: bool) -> list[JSONObject]:
    """Validate a custom object whose defaults, kind and apiVersion are set, and return the causes of all errors."""
    before: Any = MISSING if old is None else old
    if status_only:
        status = schema.properties.get("status")
        if status is None or "status" not in obj:
            return []
        old_status = MISSING if old is None else old.get("status", MISSING)
        return validate(obj["status"], status, old_status, prefix="status")
    causes = validate(obj, schema, before)
    causes += embedded_causes(obj, schema, "")
    if old is None or not list(_unique_causes(old, schema, "")):
        causes += _unique_causes(obj, schema, "")
    return causes


def scale_causes(obj: JSONObject, scale: Mapping[str, Any] | None, *, status_only: bool) -> Iterator[JSONObject]:
    """Validate the numbers of replicas of a kind with a Scale, and yield the causes of errors."""
    for name in ("statusReplicasPath",) if status_only else ("specReplicasPath", "statusReplicasPath"):
        path = (scale or {}).get(name, "")
        value: Any = obj
        for part in path.removeprefix(".").split("."):
            value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
        if value is MISSING:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            kind = "float64" if isinstance(value, float) else go_type(value)
            yield invalid_value(
                path, 0, f"{path} accessor error: {go_text(value)} is of the type {kind}, expected int64"
            )
        elif value < 0:
            yield invalid_value(path, value, "should be a non-negative integer")
        elif value > _MAX_REPLICAS:
            yield invalid_value(path, value, f"should be less than or equal to {_MAX_REPLICAS}")


# --- lists that are sets or maps --------------------------------------------------------------------------------------


def _unique_causes(value: Any, schema: Schema, path: str) -> Iterator[JSONObject]:
    """Yield a cause for each repeated item in a list of type set, and for each repeated key in a list of type map."""
    if isinstance(value, list):
        kind = schema.raw.get("x-kubernetes-list-type")
        if kind == "set":
            for i in _repetitions(value):
                yield duplicate(f"{path}[{i}]", value[i])
        elif kind == "map":
            yield from _map_causes(value, schema.raw.get("x-kubernetes-list-map-keys") or [], path)
    for child, known, where in children(value, schema, path):
        yield from _unique_causes(child, known, where)


def _map_causes(value: list[Any], keys: list[str], path: str) -> Iterator[JSONObject]:
    for i, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid_value(f"{path}[{i}]", item, "must be an object for an array of list-type map")
            return
    identities = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
    for i in _repetitions(identities):
        yield duplicate(f"{path}[{i}]", identities[i])


def _repetitions(values: list[Any]) -> Iterator[int]:
    """Yield the index of the second occurrence of each repeated value."""
    counts: dict[str, int] = {}
    for i, value in enumerate(values):
        text = json_text(value)
        counts[text] = counts.get(text, 0) + 1
        if counts[text] == 2:
            yield i


# --- objects in objects -----------------------------------------------------------------------------------------------


def embedded_causes(value: Any, schema: Schema, path: str) -> Iterator[JSONObject]:
    """Validate the kinds and the metadata of embedded objects, and yield the causes of errors."""
    for where, embedded in embedded_objects(value, schema, path):
        yield from _object_causes(embedded, where)


def _object_causes(value: JSONObject, path: str) -> Iterator[JSONObject]:
    for name in ("apiVersion", "kind"):
        where, text = f"{path}.{name}", value.get(name)
        if name not in value:
            yield required(where)
        elif not isinstance(text, str):
            yield invalid_value(where, text, "must be a string")
        elif not text:
            yield invalid_value(where, text, "must not be empty")
        elif name == "apiVersion" and text.count("/") > 1:
            yield invalid_value(where, text, f"unexpected GroupVersion string: {text}")
        elif name == "kind" and (problems := list(dns_1035_problems(text.lower()))):
            words = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid_value(where, text, words)
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        for problem in segment_problems(metadata.get("name") or ""):
            yield invalid_value(f"{path}.metadata.name", metadata["name"], problem)
        yield from metadata_causes(metadata, f"{path}.metadata")
