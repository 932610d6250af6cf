"""The handler of requests for subresources that have their own kind, and for ``bindings``."""

from __future__ import annotations

from collections.abc import Callable

from .._storage._apply import is_forced
from .._storage._kinds import ServedKind
from .._storage._metadata import metadata_of
from .._storage._patching import Change, merge
from .._storage._registry import Registry, WriteOptions, decoded
from .._storage._status import SUCCESS, bad_request, conflict, status_error
from .._storage._storage import JSONObject
from ._evictions import evict
from ._requests import RequestRecord
from ._responses import Response, json_response
from ._scales import ScalePaths, apply_scale, rescale, scale_of
from ._tables import value_at
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
) -> Response:
    """Handle a request for a subresource that has its own kind.

    The functions ``body``, ``patch`` and ``apply`` decode the body of the request.  For requests other than
    server-side apply, ``apply`` is None.
    """
    namespace, name = record.namespace or "", record.name or ""
    dry_run = options["dry_run"]
    match served.resource, record.subresource, record.verb:
        case "pods", "binding", "create":
            binding = body()
            if metadata_of(binding).get("name") != name:
                raise bad_request("name in URL does not match name in Binding object")
            return _bind(registry, served, namespace, name, binding, dry_run=dry_run)
        case "pods", "eviction", "create":
            evict(registry, served, namespace, name, body(), dry_run=dry_run)
            return json_response({**SUCCESS, "code": 201}, code=201)
        case "serviceaccounts", "token", "create":
            return json_response(grant(registry, served, namespace, name, body()), code=201)
        case _, "scale", "get" if "scale" in served.info.subresources:
            return json_response(
                scale_of(ScalePaths.of(registry, served), served, registry.get(served, namespace, name))
            )
        case _, "scale", "update" if "scale" in served.info.subresources:
            scale = body()
            return json_response(rescale(registry, served, namespace, name, lambda _: scale, options))
        case _, "scale", "patch" if "scale" in served.info.subresources and apply is not None:
            force = is_forced(record.query)
            return json_response(apply_scale(registry, served, namespace, name, apply(), options, force=force))
        case _, "scale", "patch" if "scale" in served.info.subresources:
            return json_response(rescale(registry, served, namespace, name, patch(), options))
        case _, ("binding" | "eviction" | "log" | "scale" | "token"), _ if (
            record.subresource in served.info.subresources
        ):
            raise status_error(405, details={})
        case _:
            raise status_error(404, details={})


def create_binding(
    registry: Registry, record: RequestRecord, body: Callable[[], JSONObject], *, dry_run: bool
) -> tuple[Response, ServedKind]:
    """Handle a request for ``bindings``.  A Binding is not stored, but binds the pod of the same name to a node."""
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
