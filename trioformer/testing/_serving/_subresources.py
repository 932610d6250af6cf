"""Handles requests for ``scale``, and for ``binding`` and ``eviction`` of pods."""

from __future__ import annotations

from collections.abc import Callable

from ...models._internal import decode
from .._storage._kinds import ServedKind
from .._storage._metadata import metadata_of
from .._storage._patching import merge
from .._storage._registry import Registry, decoded
from .._storage._status import SUCCESS, bad_request, conflict, status_error
from .._storage._storage import JSONObject, Stored
from ._requests import RequestRecord
from ._responses import Response, json_response
from ._tables import value_at


def handle(registry: Registry, served: ServedKind, record: RequestRecord, body: Callable[[], JSONObject]) -> Response:
    """Handle a request for a subresource other than ``status``.

    Raises:
        APIStatusError: The request fails; 404 for a subresource that this server does not support.
    """
    namespace, name = record.namespace or "", record.name or ""
    match served.resource, record.subresource, record.verb:
        case "pods", "binding", "create":
            return _bind(registry, served, namespace, name, body())
        case "pods", "eviction", "create":
            registry.delete(served, namespace, name)
            return json_response({**SUCCESS, "code": 201}, code=201)
        case _, "scale", "get" if "scale" in served.info.subresources:
            return json_response(_scale(registry.get(served, namespace, name)))
        case _, "scale", ("update" | "patch") if "scale" in served.info.subresources:
            return _rescale(registry, served, namespace, name, body())
        case _, ("binding" | "eviction" | "scale"), _ if record.subresource in served.info.subresources:
            raise status_error(405, details={})
        case _:
            raise status_error(404, details={})


def _bind(registry: Registry, served: ServedKind, namespace: str, name: str, binding: JSONObject) -> Response:
    node = value_at(binding, "target", "name")
    if not isinstance(node, str) or not node:
        raise bad_request("target.name of a binding must be the name of a node")
    bound = value_at(decoded(registry.get(served, namespace, name)), "spec", "nodeName")
    if bound:
        raise conflict(served.info, name, f'pod {name} is already assigned to node "{bound}"')
    registry.update(served, namespace, name, lambda pod: merge(pod, {"spec": {"nodeName": node}}))
    return json_response({**SUCCESS, "code": 201}, code=201)


def _scale(stored: Stored) -> JSONObject:
    obj = decode(b"{" + stored.body)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = value_at(obj, "spec", "selector", "matchLabels")
    selector = labels.items() if isinstance(labels, dict) else ()
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in kept if key in obj["metadata"]},
        "spec": {"replicas": value_at(obj, "spec", "replicas") or 0},
        "status": {
            "replicas": value_at(obj, "status", "replicas") or 0,
            "selector": ",".join(f"{key}={value}" for key, value in sorted(selector)),
        },
    }


def _rescale(registry: Registry, served: ServedKind, namespace: str, name: str, scale: JSONObject) -> Response:
    """Set the replicas from a Scale, or from a merge patch of one."""
    replicas = value_at(scale, "spec", "replicas")
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise bad_request("spec.replicas must be a non-negative integer")
    version = metadata_of(scale).get("resourceVersion")

    def change(obj: JSONObject) -> JSONObject:
        metadata = {**obj["metadata"], "resourceVersion": version or obj["metadata"]["resourceVersion"]}
        changed: JSONObject = merge({**obj, "metadata": metadata}, {"spec": {"replicas": replicas}})
        return changed

    return json_response(_scale(registry.update(served, namespace, name, change)))
