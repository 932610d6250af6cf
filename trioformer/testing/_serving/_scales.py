"""The ``scale`` subresource of workloads, and of custom kinds whose definition has the paths of the scale's fields.

Source: kubernetes ``pkg/registry/apps/*/storage``, apiextensions-apiserver ``pkg/registry/customresource/etcd.go``.
"""

from __future__ import annotations

from typing import Any

from ...errors import SelectorError
from .._storage._field_checks import FieldCheck, decode_fields
from .._storage._field_errors import invalid_value
from .._storage._go_types import metadata_of
from .._storage._kinds import SCALE, ServedKind
from .._storage._locations import check_location
from .._storage._patching import Change, merge
from .._storage._registry import Registry, WriteOptions
from .._storage._selection import selector_in
from .._storage._status import bad_request, internal_error, invalid, status_error
from .._storage._storage import JSONObject, Stored
from .._storage._values import value_at


def _path(served: ServedKind, name: str, default: str = "") -> tuple[str, ...]:
    """Return the path in an object of a field of its Scale, or an empty path."""
    text = (served.scale or {}).get(name)
    path = text if isinstance(text, str) and text else default
    return tuple(path.removeprefix(".").split(".")) if path else ()


def _replicas_path(served: ServedKind) -> tuple[str, ...]:
    return _path(served, "specReplicasPath", ".spec.replicas")


def scale_of(served: ServedKind, stored: Stored) -> JSONObject:
    """Return the Scale of an object, which is in the version of the kind.

    Raises:
        APIStatusError: A custom object does not have a number of replicas (500).
    """
    obj = stored.decoded()
    replicas = value_at(obj, *_replicas_path(served))
    if replicas is None and not served.is_builtin:
        problem = f'the spec replicas field "{_shown(_replicas_path(served))}" does not exist'
        raise internal_error(problem)
    return _scale(served, obj, replicas)


def _scale(served: ServedKind, obj: JSONObject, replicas: object) -> JSONObject:
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JSONObject = {"replicas": value_at(obj, *_path(served, "statusReplicasPath", ".status.replicas")) or 0}
    selector = _selector(served, obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in kept if key in obj["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},  # Go omits a zero
        "status": status,
    }


def _selector(served: ServedKind, obj: JSONObject) -> str:
    if path := _path(served, "labelSelectorPath"):
        return str(value_at(obj, *path) or "")
    selector = value_at(obj, "spec", "selector") if served.is_builtin else None
    if not isinstance(selector, dict):
        return ""
    is_map = served.resource == "replicationcontrollers"
    try:
        return str(selector_in({"matchLabels": selector} if is_map else selector))
    except SelectorError:
        return ""  # kube-apiserver would not have stored it


def rescale(
    registry: Registry,
    served: ServedKind,
    namespace: str,
    name: str,
    change: Change,
    options: WriteOptions,
    fields: FieldCheck,
) -> JSONObject:
    """Change a Scale and return it.  Only the number of replicas can be changed.

    Raises:
        APIStatusError: The object is not a valid Scale (400 or 422), or is not up to date (409).
    """
    obj = registry.get(served, namespace, name, options["admission"]).decoded()
    scale = change(_scale(served, obj, value_at(obj, *_replicas_path(served))))
    decode_fields(SCALE, scale, fields)
    scale, options = _admitted(registry, served, namespace, name, scale, options)
    metadata = metadata_of(scale)
    check_location(served, namespace, name, metadata)
    replicas = value_at(scale, "spec", "replicas") or 0
    if replicas < 0 and served.is_builtin:
        raise _negative(served, name, replicas)
    version = metadata.get("resourceVersion")

    def rescaled(obj: JSONObject) -> JSONObject:
        metadata = {**obj["metadata"], "resourceVersion": version or obj["metadata"]["resourceVersion"]}
        changed: JSONObject = merge({**obj, "metadata": metadata}, _at(_replicas_path(served), replicas))
        return changed

    return scale_of(served, registry.update(served, namespace, name, rescaled, **options))


def _admitted(
    registry: Registry, served: ServedKind, namespace: str, name: str, scale: JSONObject, options: WriteOptions
) -> tuple[JSONObject, WriteOptions]:
    """Call the webhooks for a write of a Scale.  Return the Scale, and the options for the write of its object."""
    admission = options["admission"]
    if admission is None:
        return scale, options
    old = scale_of(served, registry.get(served, namespace, name, admission))
    return admission.admit("UPDATE", served, scale, old), {**options, "admission": admission.internal()}


def apply_scale(
    registry: Registry,
    served: ServedKind,
    namespace: str,
    name: str,
    config: JSONObject,
    options: WriteOptions,
    *,
    force: bool,
) -> JSONObject:
    """Apply a Scale and return it.  The manager of the request then owns the replicas field of the object.

    Raises:
        APIStatusError: The configuration is not valid (400, 404 or 422), other managers own the replicas field (409),
            or the kind is a custom kind, as in kube-apiserver (500).
    """
    version, kind = config.get("apiVersion"), config.get("kind")
    if (version, kind) != ("autoscaling/v1", "Scale"):
        raise bad_request(f"invalid object type: {version}, Kind={kind}")
    metadata = metadata_of(config)
    check_location(served, namespace, name, {"name": name, **metadata})
    replicas = value_at(config, "spec", "replicas")
    if replicas is not None and (not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0):
        raise _negative(served, name, replicas)
    kept = {key: metadata[key] for key in ("resourceVersion", "uid") if metadata.get(key)}
    if replicas is not None and served.is_builtin:
        scale = {**scale_of(served, registry.get(served, namespace, name)), "spec": {"replicas": replicas}}
        scale, options = _admitted(registry, served, namespace, name, scale, options)
        replicas = value_at(scale, "spec", "replicas") or 0
    wanted: JSONObject = {
        "apiVersion": served.info.api_version,
        "kind": served.info.kind,
        "metadata": {"name": name, **kept},
        **({} if replicas is None else _at(_replicas_path(served), replicas)),
    }

    def applied(live: JSONObject) -> JSONObject:
        obj = registry.tracker.apply(served, live, wanted, options["writer"], force=force)
        if not served.is_builtin:
            # kube-apiserver cannot convert the Scale back into an object of another group.
            where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
            what = f"failed to convert new object ({where}; autoscaling/v1, Kind=Scale) to proper version"
            problem = "request to convert CR to an invalid group/version: autoscaling/v1"
            raise status_error(500, reason="", message=f"{what}: {problem}")
        return obj

    return scale_of(served, registry.update(served, namespace, name, applied, **options))


def _at(path: tuple[str, ...], value: object) -> JSONObject:
    """Return nested dicts that contain a value at a path."""
    nested: Any = value
    for part in reversed(path):
        nested = {part: nested}
    made: JSONObject = nested
    return made


def _negative(served: ServedKind, name: str, replicas: object) -> Exception:
    if served.is_builtin:
        wrong = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        return invalid("autoscaling", "Scale", name, [wrong])
    wrong = invalid_value(_shown(_replicas_path(served)), replicas, "should be a non-negative integer")
    return invalid(served.info.group, served.info.kind, name, [wrong])


def _shown(path: tuple[str, ...]) -> str:
    return f".{'.'.join(path)}"
