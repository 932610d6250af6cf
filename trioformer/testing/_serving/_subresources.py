"""Handles requests for ``scale``, for ``binding`` and ``eviction`` of pods, and for ``bindings``."""

from __future__ import annotations

from collections.abc import Callable

from ...models._internal import decode
from .._storage._deletion import Preconditions
from .._storage._kinds import ServedKind
from .._storage._metadata import metadata_of
from .._storage._patching import Change, merge
from .._storage._registry import Registry, decoded
from .._storage._status import SUCCESS, bad_request, cause, conflict, invalid, status_error
from .._storage._storage import JSONObject, Stored
from ._requests import RequestRecord
from ._responses import Response, json_response
from ._tables import value_at


def handle(
    registry: Registry,
    served: ServedKind,
    record: RequestRecord,
    *,
    body: Callable[[], JSONObject],
    patch: Callable[[], Change],
    dry_run: bool,
) -> Response:
    """Handle a request for a subresource other than ``status``.

    Args:
        registry: The objects.
        served: The kind that has the subresource.
        record: The request.
        body: Decodes the object in the request's body.
        patch: Decodes the patch in the request's body.
        dry_run: Whether to write nothing.

    Raises:
        APIStatusError: The request fails; 404 for a subresource that this server does not support.
    """
    namespace, name = record.namespace or "", record.name or ""
    match served.resource, record.subresource, record.verb:
        case "pods", "binding", "create":
            binding = body()
            if metadata_of(binding).get("name") != name:
                raise bad_request("name in URL does not match name in Binding object")
            return _bind(registry, served, namespace, name, binding, dry_run=dry_run)
        case "pods", "eviction", "create":
            return _evict(registry, served, namespace, name, body(), dry_run=dry_run)
        case _, "scale", "get" if "scale" in served.info.subresources:
            return json_response(_scale(registry.get(served, namespace, name)))
        case _, "scale", "update" if "scale" in served.info.subresources:
            scale = body()
            return _rescale(registry, served, namespace, name, lambda _: scale, dry_run=dry_run)
        case _, "scale", "patch" if "scale" in served.info.subresources:
            return _rescale(registry, served, namespace, name, patch(), dry_run=dry_run)
        case _, ("binding" | "eviction" | "scale"), _ if record.subresource in served.info.subresources:
            raise status_error(405, details={})
        case _:
            raise status_error(404, details={})


def create_binding(
    registry: Registry, record: RequestRecord, body: Callable[[], JSONObject], *, dry_run: bool
) -> tuple[Response, ServedKind]:
    """Handle a request for ``bindings``: a Binding is not stored, but binds the pod of its name.

    Raises:
        APIStatusError: The request fails.
    """
    pods = registry.kinds.find("", "v1", "pods")
    if pods is None or record.namespace is None:
        raise status_error(404, details={})
    if record.verb != "create" or record.name is not None:
        raise status_error(405, details={})
    binding = body()
    name = metadata_of(binding).get("name")
    if not name:
        raise bad_request("Name parameter required.")
    return _bind(registry, pods, record.namespace, name, binding, dry_run=dry_run), pods


def _bind(
    registry: Registry, served: ServedKind, namespace: str, name: str, binding: JSONObject, *, dry_run: bool
) -> Response:
    node = value_at(binding, "target", "name")
    if not isinstance(node, str) or not node:
        raise status_error(500, reason="", message="target.name: Required value")
    bound = value_at(decoded(registry.get(served, namespace, name)), "spec", "nodeName")
    if bound:
        raise conflict(served.info, name, f'pod {name} is already assigned to node "{bound}"', subresource="binding")
    registry.update(served, namespace, name, lambda pod: merge(pod, {"spec": {"nodeName": node}}), dry_run=dry_run)
    return json_response({**SUCCESS, "code": 201}, code=201)


def _evict(
    registry: Registry, served: ServedKind, namespace: str, name: str, eviction: JSONObject, *, dry_run: bool
) -> Response:
    """Delete a pod; there are no disruption budgets."""
    if metadata_of(eviction).get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    preconditions = Preconditions(
        *(value_at(eviction, "deleteOptions", "preconditions", key) for key in ("uid", "resourceVersion"))
    )
    dry_run = dry_run or value_at(eviction, "deleteOptions", "dryRun") == ["All"]
    registry.delete(served, namespace, name, preconditions=preconditions, dry_run=dry_run)
    return json_response({**SUCCESS, "code": 201}, code=201)


def _scale(stored: Stored) -> JSONObject:
    obj = decode(b"{" + stored.body)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = value_at(obj, "spec", "selector", "matchLabels")
    selector = labels.items() if isinstance(labels, dict) else ()
    replicas = value_at(obj, "spec", "replicas")
    status: JSONObject = {"replicas": value_at(obj, "status", "replicas") or 0}
    if labels:
        status["selector"] = ",".join(f"{key}={value}" for key, value in sorted(selector))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in kept if key in obj["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},  # Go omits a zero
        "status": status,
    }


def _rescale(
    registry: Registry, served: ServedKind, namespace: str, name: str, change: Change, *, dry_run: bool
) -> Response:
    """Set the replicas from a change of the Scale; its status, and other metadata, cannot be changed."""
    scale = change(_scale(registry.get(served, namespace, name)))
    metadata = metadata_of(scale)
    registry.check_location(served, namespace, name, metadata)
    replicas = value_at(scale, "spec", "replicas") or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        problem = f"Invalid value: {replicas!r}: must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [cause("FieldValueInvalid", problem, "spec.replicas")])
    version = metadata.get("resourceVersion")

    def rescaled(obj: JSONObject) -> JSONObject:
        metadata = {**obj["metadata"], "resourceVersion": version or obj["metadata"]["resourceVersion"]}
        changed: JSONObject = merge({**obj, "metadata": metadata}, {"spec": {"replicas": replicas}})
        return changed

    return json_response(_scale(registry.update(served, namespace, name, rescaled, dry_run=dry_run)))
