"""Requests what a description shows beside its object: pods, endpoints, leases, quotas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from ...errors import ForbiddenError, StatusError, TrioformerError
from ._describe_text import at, selector_text

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["Objects", "Related", "request_events", "request_related"]

Objects: TypeAlias = Sequence[Mapping[str, Any]]
Related: TypeAlias = Mapping[str, Objects]
"""The objects by their plural; what the user may not read is missing."""


async def request_related(client: Client, resource: str, obj: Mapping[str, Any]) -> Related:
    """Request what belongs to an object; nothing for most kinds."""
    request = _REQUESTS.get(resource)
    return {} if request is None else await request(client, obj)


async def request_events(client: Client, obj: Mapping[str, Any]) -> Objects:
    """Request the events of an object."""
    uids = [at(obj, "metadata", "uid")]
    if obj.get("kind") == "Node":
        uids.append(at(obj, "metadata", "name"))  # the kubelet takes the name for the uid
    namespace = str(at(obj, "metadata", "namespace") or "")
    found: list[Mapping[str, Any]] = []
    for uid in uids:
        selector = {
            "involvedObject.name": at(obj, "metadata", "name"),
            "involvedObject.namespace": namespace,
            "involvedObject.kind": obj.get("kind"),
            "involvedObject.uid": uid,
        }
        text = ",".join(f"{key}={value}" for key, value in selector.items() if value)
        found += await _list(client, f"{_core(namespace)}/events", {"fieldSelector": text})
    return found


async def _pods_of_controller(client: Client, obj: Mapping[str, Any]) -> Related:
    selector = at(obj, "spec", "selector")
    if obj.get("kind") == "ReplicationController":
        selector = {"matchLabels": selector}
    return {"pods": await _owned(client, obj, f"{_core(_namespace(obj))}/pods", selector)}


async def _replica_sets(client: Client, obj: Mapping[str, Any]) -> Related:
    path = f"/apis/apps/v1/namespaces/{quote(_namespace(obj), safe='')}/replicasets"
    return {"replicasets": await _owned(client, obj, path, at(obj, "spec", "selector"))}


async def _owned(client: Client, obj: Mapping[str, Any], path: str, selector: object) -> Objects:
    found = await _list(client, path, {"labelSelector": selector_text(selector, "")})
    uid = at(obj, "metadata", "uid")
    return [
        each
        for each in found
        if any(owner.get("uid") == uid for owner in at(each, "metadata", "ownerReferences") or [])
    ]


async def _slices(client: Client, obj: Mapping[str, Any]) -> Related:
    return {"endpointslices": await _slices_of(client, _namespace(obj), str(at(obj, "metadata", "name")))}


async def _slices_of(client: Client, namespace: str, service: str) -> Objects:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{quote(namespace, safe='')}/endpointslices"
    return await _list(client, path, {"labelSelector": f"kubernetes.io/service-name={service}"})


async def _backends(client: Client, obj: Mapping[str, Any]) -> Related:
    """Request the services of an Ingress and their endpoints; what fails is an object with a ``problem``."""
    spec = obj.get("spec") or {}
    backends = [spec.get("defaultBackend")]
    backends += [path.get("backend") for rule in spec.get("rules") or [] for path in at(rule, "http", "paths") or []]
    names = dict.fromkeys(str(name) for each in backends if (name := at(each, "service", "name")))
    namespace = _namespace(obj)
    services: list[Mapping[str, Any]] = []
    slices: list[Mapping[str, Any]] = []
    for name in names:
        slices += await _slices_of(client, namespace, name)
        try:
            found: Any = (await client.request("GET", f"{_core(namespace)}/services/{quote(name, safe='')}")).json()
        except StatusError as exc:
            found = {"metadata": {"name": name}, "problem": exc.status_message}
        services.append(found)
    return {"services": services, "endpointslices": slices}


async def _of_node(client: Client, obj: Mapping[str, Any]) -> Related:
    name = str(at(obj, "metadata", "name"))
    related: dict[str, Objects] = {}
    selector = f"spec.nodeName={name},status.phase!=Succeeded,status.phase!=Failed"
    with suppress(ForbiddenError):  # the description says so
        related["pods"] = await _pages(client, "/api/v1/pods", {"fieldSelector": selector})
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{quote(name, safe='')}"
    try:
        lease: Any = (await client.request("GET", path)).json()
        related["leases"] = [lease]
    except StatusError as exc:
        related["leases"] = [{"problem": exc.status_message}]
    slices = {"fieldSelector": f"spec.nodeName={name}"}
    related["resourceslices"] = await _list(client, "/apis/resource.k8s.io/v1/resourceslices", slices)
    return related


async def _of_namespace(client: Client, obj: Mapping[str, Any]) -> Related:
    path = _core(str(at(obj, "metadata", "name")))
    return {name: await _list(client, f"{path}/{name}", {}) for name in ("resourcequotas", "limitranges")}


async def _users_of_claim(client: Client, obj: Mapping[str, Any]) -> Related:
    name, owners = at(obj, "metadata", "name"), at(obj, "metadata", "ownerReferences") or []
    uids = {owner.get("uid") for owner in owners if owner.get("kind") == "Pod"}
    pods = await _list(client, f"{_core(_namespace(obj))}/pods", {})
    return {
        "pods": [
            pod
            for pod in pods
            if at(pod, "metadata", "uid") in uids
            or any(at(each, "persistentVolumeClaim", "claimName") == name for each in at(pod, "spec", "volumes") or [])
        ]
    }


_REQUESTS: Final[Mapping[str, Callable[[Client, Mapping[str, Any]], Awaitable[Related]]]] = {
    "daemonsets.apps": _pods_of_controller,
    "deployments.apps": _replica_sets,
    "ingresses.networking.k8s.io": _backends,
    "namespaces": _of_namespace,
    "nodes": _of_node,
    "persistentvolumeclaims": _users_of_claim,
    "replicasets.apps": _pods_of_controller,
    "replicationcontrollers": _pods_of_controller,
    "services": _slices,
    "statefulsets.apps": _pods_of_controller,
}


def _namespace(obj: Mapping[str, Any]) -> str:
    return str(at(obj, "metadata", "namespace") or "")


def _core(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}" if namespace else "/api/v1"


async def _list(client: Client, path: str, params: dict[str, str]) -> Objects:
    """Request a list, which is empty where the user may not or the server does not have it."""
    try:
        return await _pages(client, path, params)
    except TrioformerError:
        return ()


async def _pages(client: Client, path: str, params: dict[str, str]) -> Objects:
    objects: list[Mapping[str, Any]] = []
    token = ""
    while True:
        query = {**params, "limit": "500", **({"continue": token} if token else {})}
        found: Any = (await client.request("GET", path, params=query)).json()
        if not isinstance(found, dict):
            return objects
        objects += found.get("items") or []
        token = str(at(found, "metadata", "continue") or "")
        if not token:
            return objects
