"""The handler for requests to ``bindings`` and to the subresources that have their own kind."""

from __future__ import annotations

from collections.abc import Callable

from .._storage._apply import is_forced
from .._storage._clock import timestamp
from .._storage._field_checks import FieldCheck
from .._storage._go_types import metadata_of
from .._storage._kinds import ServedKind
from .._storage._patching import Change, merge
from .._storage._registry import Registry, WriteOptions
from .._storage._status import SUCCESS, bad_request, conflict, status_error
from .._storage._storage import JSONObject
from .._storage._values import objects_at, value_at
from ._evictions import evict
from ._not_served import missing
from ._requests import RequestRecord
from ._responses import Response, json_response
from ._scales import apply_scale, rescale, scale_of
from ._tokens import grant


def handle(
    registry: Registry,
    served: ServedKind,
    record: RequestRecord,
    *,
    body: Callable[[], JSONObject],
    patch: Callable[[], Change],
    apply: Callable[[], JSONObject] | None,
    options: WriteOptions,
    fields: FieldCheck,
) -> Response:
    """Handle a request for a subresource that has its own kind.

    The functions ``body``, ``patch`` and ``apply`` decode the body of the request.  For requests other than
    server-side apply, ``apply`` is None.  ``fields`` is the check of the fields of a Scale.
    """
    namespace, name = record.namespace or "", record.name or ""
    dry_run, admission = options["dry_run"], options["admission"]

    def admitted(obj: JSONObject) -> JSONObject:
        return obj if admission is None else admission.admit("CREATE", served, obj)

    match served.resource, record.subresource, record.verb:
        case "pods", "binding", "create":
            binding = admitted(body())
            if metadata_of(binding).get("name") != name:
                raise bad_request("name in URL does not match name in Binding object")
            return _bind(registry, served, namespace, name, binding, dry_run=dry_run)
        case "pods", "eviction", "create":
            evict(registry, served, namespace, name, admitted(body()), dry_run=dry_run)
            return json_response({**SUCCESS, "code": 201}, code=201)
        case "serviceaccounts", "token", "create":
            return json_response(grant(registry, served, namespace, name, admitted(body())), code=201)
        case _, "scale", "get":
            return json_response(scale_of(served, registry.get(served, namespace, name, admission)))
        case _, "scale", "update":
            scale = body()
            return json_response(rescale(registry, served, namespace, name, lambda _: scale, options, fields))
        case _, "scale", "patch" if apply is not None:
            force = is_forced(record.query)
            return json_response(apply_scale(registry, served, namespace, name, apply(), options, force=force))
        case _, "scale", "patch":
            return json_response(rescale(registry, served, namespace, name, patch(), options, fields))
        case _, ("binding" | "eviction" | "log" | "scale" | "token"), _:
            raise status_error(405, details={})
        case _:
            raise missing(served.release, record)


def create_binding(registry: Registry, namespace: str, binding: JSONObject, *, dry_run: bool) -> Response:
    """Bind the pod with the name of a Binding to a node, without storing the Binding."""
    pods = registry.kinds.find("", "v1", "pods")
    name = metadata_of(binding).get("name")
    if pods is None or not name:
        raise bad_request("Name parameter required.")
    return _bind(registry, pods, namespace, name, binding, dry_run=dry_run)


def _bind(
    registry: Registry, served: ServedKind, namespace: str, name: str, binding: JSONObject, *, dry_run: bool
) -> Response:
    node = value_at(binding, "target", "name")
    if not isinstance(node, str) or not node:
        raise status_error(500, reason="", message="target.name: Required value")
    about = metadata_of(binding)

    def bind(pod: JSONObject) -> JSONObject:
        if problem := _cannot_be_bound(name, pod):
            raise conflict(served.info, name, problem, subresource="binding")
        preconditions = {key: about[key] for key in ("uid", "resourceVersion") if about.get(key)}
        metadata = {key: about[key] for key in ("annotations", "labels") if about.get(key)}
        conditions = [one for one in objects_at(pod, "status", "conditions") if one.get("type") != "PodScheduled"]
        times = {"lastProbeTime": None, "lastTransitionTime": timestamp(registry.clock)}
        scheduled = {"type": "PodScheduled", "status": "True", **times}
        bound = merge(pod, {"metadata": {**preconditions, **metadata}, "spec": {"nodeName": node}})
        status = {key: value for key, value in (pod.get("status") or {}).items() if key != "nominatedNodeName"}
        return {**bound, "status": {**status, "conditions": [*conditions, scheduled]}}

    registry.update(served, namespace, name, bind, part="binding", dry_run=dry_run)
    return json_response({**SUCCESS, "code": 201}, code=201)


def _cannot_be_bound(name: str, pod: JSONObject) -> str:
    """Return the reason why a pod cannot be bound, or an empty string if it can be bound."""
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if bound := value_at(pod, "spec", "nodeName"):
        return f'pod {name} is already assigned to node "{bound}"'
    if value_at(pod, "spec", "schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""
