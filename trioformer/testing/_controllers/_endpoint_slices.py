"""EndpointSlices: the pods of a Service.  Source: kubernetes ``staging/src/k8s.io/endpointslice``."""

from __future__ import annotations

from .._storage._storage import JSONObject
from ._cluster import Cluster, controller_of
from ._objects import phase_of, pods_in, ready_since


def reconcile_service(cluster: Cluster, service: JSONObject) -> None:
    """Write the EndpointSlice of a Service with a selector."""
    selector, metadata = service["spec"].get("selector"), service["metadata"]
    if not selector or service["spec"].get("type") == "ExternalName":
        return
    selected = pods_in(cluster, metadata["namespace"], {"matchLabels": selector})
    pods = [pod for pod in selected if pod["status"].get("podIP") and phase_of(pod) not in ("Succeeded", "Failed")]
    labels = {
        **(metadata.get("labels") or {}),
        "kubernetes.io/service-name": metadata["name"],
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        **({"service.kubernetes.io/headless": ""} if service["spec"].get("clusterIP") == "None" else {}),
    }
    ports = _ports(service, pods[0]) if pods else []
    content = {"ports": ports, "endpoints": [_endpoint(service, pod) for pod in pods]}
    for one in cluster.list("EndpointSlice", metadata["namespace"]):
        if controller_of(one).get("uid") == metadata["uid"]:
            cluster.write({**one, **content}, metadata={**one["metadata"], "labels": labels})
            return
    cluster.create_owned("EndpointSlice", service, {"labels": labels}, addressType="IPv4", **content)


def _ports(service: JSONObject, pod: JSONObject) -> list[JSONObject]:
    every = [port for container in pod["spec"].get("containers") or () for port in container.get("ports") or ()]
    named, found = {port.get("name"): port["containerPort"] for port in every}, []
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort") or port["port"]
        number = named.get(target) if isinstance(target, str) else target
        if number is not None:
            found.append({"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")})
    return found


def _endpoint(service: JSONObject, pod: JSONObject) -> JSONObject:
    metadata, spec = pod["metadata"], pod["spec"]
    is_ready, is_ending = ready_since(pod) is not None, "deletionTimestamp" in metadata
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (is_ready and not is_ending)
    has_name = spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": is_ready, "terminating": is_ending},
        **({"hostname": spec["hostname"]} if has_name else {}),
        "targetRef": {"kind": "Pod", **{key: metadata[key] for key in ("namespace", "name", "uid")}},
        "nodeName": spec.get("nodeName"),
    }
