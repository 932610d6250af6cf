"""The cells of the columns of each built-in kind.

Source: kubernetes ``pkg/printers/internalversion``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .._storage._storage import JSONObject
from ._cells import (
    NONE,
    UNKNOWN,
    Cell,
    CellOf,
    age_of,
    count_of,
    elapsed_since,
    flag_of,
    given_of,
    human_duration,
    joined,
    labels_of,
    limited,
    name_of,
    number_of,
    objects_at,
    ready_replicas,
    reference_of,
    selector_of,
    since,
    template_cells,
    text_of,
    truth_of,
    value_at,
    workload_cells,
)
from ._pod_cells import node_address, node_roles, node_status, pod_ready, pod_restarts, pod_status, readiness_gates

# --- workloads and services -------------------------------------------------------------------------------------------


def _job_status(obj: JSONObject, _: datetime) -> Cell:
    true = {one.get("type") for one in objects_at(obj, "status", "conditions") if one.get("status") == "True"}
    words = [word for word in ("Complete", "Failed") if word in true]
    words += ["Terminating"] * bool(value_at(obj, "metadata", "deletionTimestamp"))
    words += [word for word in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if word in true]
    return next(iter(words), "Running")


def _job_completions(obj: JSONObject, _: datetime) -> Cell:
    succeeded, wanted = value_at(obj, "status", "succeeded") or 0, value_at(obj, "spec", "completions")
    parallelism = value_at(obj, "spec", "parallelism") or 0
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: JSONObject, now: datetime) -> Cell:
    start, end = value_at(obj, "status", "startTime"), value_at(obj, "status", "completionTime")
    return since(start, datetime.fromisoformat(end) if end else now) if start else ""


def _load_balancer(obj: JSONObject) -> str:
    found = sorted(
        {str(one.get("ip") or one.get("hostname")) for one in objects_at(obj, "status", "loadBalancer", "ingress")}
    )
    return ",".join(found)


def _external_ip(obj: JSONObject, _: datetime) -> Cell:
    kind, external = value_at(obj, "spec", "type"), list(value_at(obj, "spec", "externalIPs") or ())
    if kind == "ExternalName":
        return str(value_at(obj, "spec", "externalName") or "")
    if kind == "LoadBalancer":
        balanced = _load_balancer(obj)
        return ",".join([balanced] * bool(balanced) + external) or "<pending>"
    return ",".join(external) or NONE


def _service_ports(obj: JSONObject, _: datetime) -> Cell:
    ports = [
        f"{one.get('port')}{node and f':{node}'}/{one.get('protocol', 'TCP')}"
        for one in objects_at(obj, "spec", "ports")
        for node in (one.get("nodePort") or "",)
    ]
    return ",".join(ports) or NONE


def _endpoints(obj: JSONObject, _: datetime) -> Cell:
    found = []
    for subset in objects_at(obj, "subsets"):
        addresses = [str(one.get("ip")) for one in objects_at(subset, "addresses")]
        ports = objects_at(subset, "ports")
        found += [f"{one}:{port.get('port')}" for port in ports for one in addresses] if ports else addresses
    return limited(found, default="") if objects_at(obj, "subsets") else NONE


def _slice_ports(obj: JSONObject, _: datetime) -> Cell:
    return limited([str(one.get("port") or one.get("name") or "*") for one in objects_at(obj, "ports")])


def _slice_endpoints(obj: JSONObject, _: datetime) -> Cell:
    return limited([str(one) for endpoint in objects_at(obj, "endpoints") for one in endpoint.get("addresses") or ()])


def _ingress_hosts(obj: JSONObject, _: datetime) -> Cell:
    return limited([str(one["host"]) for one in objects_at(obj, "spec", "rules") if one.get("host")], default="*")


# --- metrics ----------------------------------------------------------------------------------------------------------


def _metrics(obj: JSONObject, _: datetime) -> Cell:
    """Return the targets of a HorizontalPodAutoscaler, in version 1 or 2."""
    if (percent := value_at(obj, "spec", "targetCPUUtilizationPercentage")) is not None:
        current = value_at(obj, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{percent}%"
    current_metrics = objects_at(obj, "status", "currentMetrics")
    found = []
    for index, metric in enumerate(objects_at(obj, "spec", "metrics")):
        source = str(metric.get("type"))[:1].lower() + str(metric.get("type"))[1:]
        status = current_metrics[index] if index < len(current_metrics) else {}
        target, current = value_at(metric, source, "target") or {}, value_at(status, source, "current") or {}
        name = f"{value_at(metric, source, 'name')}: " if source in ("resource", "containerResource") else ""
        if "averageValue" in target:
            average = " (avg)" if source in ("external", "object") else ""
            found.append(f"{name}{current.get('averageValue', UNKNOWN)}/{target['averageValue']}{average}")
        elif name:
            now, wanted = (one.get("averageUtilization") for one in (current, target))
            shown = UNKNOWN if now is None else f"{now}%"
            found.append(f"{name}{shown}/{'<auto>' if wanted is None else f'{wanted}%'}")
        else:
            found.append(f"{current.get('value', UNKNOWN)}/{target.get('value')}")
    return limited(found, 2, NONE, ", ")


# --- storage ----------------------------------------------------------------------------------------------------------

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(*path: str) -> CellOf:
    return lambda obj, _: ",".join(short for mode, short in _MODES.items() if mode in (value_at(obj, *path) or ()))


def _phase(obj: JSONObject, _: datetime) -> Cell:
    if value_at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(value_at(obj, "status", "phase") or "")


def _bound(cell: CellOf) -> CellOf:
    return lambda obj, now: cell(obj, now) if value_at(obj, "spec", "volumeName") else ""


def _claim(obj: JSONObject, _: datetime) -> Cell:
    claim = value_at(obj, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _default_name(annotation: str) -> CellOf:
    def cell(obj: JSONObject, now: datetime) -> Cell:
        is_default = (value_at(obj, "metadata", "annotations") or {}).get(annotation) == "true"
        return f"{name_of(obj, now)} (default)" if is_default else name_of(obj, now)

    return cell


# --- others -----------------------------------------------------------------------------------------------------------


def _event_time(obj: JSONObject, *names: str) -> Any:
    return next((found for name in names if (found := obj.get(name))), None)


def _first_seen(obj: JSONObject, now: datetime) -> Cell:
    found = _event_time(obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    return since(found, now)


def _last_seen(obj: JSONObject, now: datetime) -> Cell:
    found = value_at(obj, "series", "lastObservedTime") or _event_time(obj, "lastTimestamp", "deprecatedLastTimestamp")
    return since(found, now) if found else _first_seen(obj, now)


def _event_count(obj: JSONObject, _: datetime) -> Cell:
    return int(value_at(obj, "series", "count") or _event_time(obj, "count", "deprecatedCount") or 1)


def _event_object(obj: JSONObject, _: datetime) -> Cell:
    involved = _event_time(obj, "involvedObject", "regarding") or {}
    kind, name = str(involved.get("kind") or "").lower(), involved.get("name")
    return f"{kind}/{name}" if name else kind


def _event_subobject(obj: JSONObject, _: datetime) -> Cell:
    return str(value_at(_event_time(obj, "involvedObject", "regarding"), "fieldPath") or "")


def _event_source(obj: JSONObject, _: datetime) -> Cell:
    source = _event_time(obj, "source", "deprecatedSource") or {}
    component = source.get("component") or _event_time(obj, "reportingComponent", "reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _event_message(obj: JSONObject, _: datetime) -> Cell:
    return str(_event_time(obj, "message", "note") or "").strip()


def _subjects(kind: str) -> CellOf:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        found = [one for one in objects_at(obj, "subjects") if one.get("kind") == kind]
        is_account = kind == "ServiceAccount"
        return ", ".join(f"{one.get('namespace', '')}/{one['name']}" if is_account else one["name"] for one in found)

    return cell


def _quota(*, limits: bool) -> CellOf:
    def cell(obj: JSONObject, _: datetime) -> Cell:
        hard, used = value_at(obj, "status", "hard") or {}, value_at(obj, "status", "used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") == limits]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _request_state(obj: JSONObject, _: datetime) -> Cell:
    types = {one.get("type") for one in objects_at(obj, "status", "conditions")}
    word = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    issued = bool(value_at(obj, "status", "certificate"))
    return word + ",Failed" * ("Failed" in types) + ",Issued" * issued


def _controller(obj: JSONObject, _: datetime) -> Cell:
    owners = [one for one in objects_at(obj, "metadata", "ownerReferences") if one.get("controller")]
    if not owners:
        return NONE
    group = str(owners[0].get("apiVersion")).rpartition("/")[0]
    return f"{owners[0]['kind']}{group and '.'}{group}/".lower() + str(owners[0]["name"])


def _parameter_kind(obj: JSONObject, _: datetime) -> Cell:
    kind = value_at(obj, "spec", "paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else "<unset>"


_REPLICAS: dict[str, CellOf] = {
    "Desired": number_of("spec", "replicas"),
    "Current": number_of("status", "replicas"),
    "Ready": number_of("status", "readyReplicas"),
}
_EVENT: dict[str, CellOf] = {
    "Last Seen": _last_seen,
    "Type": text_of("type", default=""),
    "Reason": text_of("reason", default=""),
    "Object": _event_object,
    "Subobject": _event_subobject,
    "Source": _event_source,
    "Message": _event_message,
    "First Seen": _first_seen,
    "Count": _event_count,
}
_BINDING: dict[str, CellOf] = {
    "Role": reference_of("roleRef"),
    "Users": _subjects("User"),
    "Groups": _subjects("Group"),
    "ServiceAccounts": _subjects("ServiceAccount"),
}
COMMON: dict[str, CellOf] = {
    "Name": name_of,
    "Age": age_of,
    "Created At": text_of("metadata", "creationTimestamp", default=""),
}
"""The cells of all kinds, by the name of the column."""

CELLS: Mapping[str, Mapping[str, CellOf]] = {
    "certificatesigningrequests.certificates.k8s.io": {
        "SignerName": text_of("spec", "signerName"),
        "Requestor": text_of("spec", "username", default=""),
        "RequestedDuration": lambda obj, _: (
            NONE if (seconds := value_at(obj, "spec", "expirationSeconds")) is None else human_duration(seconds)
        ),
        "Condition": _request_state,
    },
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "configmaps": {"Data": lambda obj, now: count_of("data")(obj, now) + count_of("binaryData")(obj, now)},
    "controllerrevisions.apps": {"Controller": _controller, "Revision": number_of("revision")},
    "cronjobs.batch": {
        "Schedule": text_of("spec", "schedule", default=""),
        "Timezone": text_of("spec", "timeZone"),
        "Suspend": flag_of("spec", "suspend"),
        "Active": count_of("status", "active"),
        "Last Schedule": elapsed_since("status", "lastScheduleTime"),
        "Selector": selector_of("spec", "jobTemplate", "spec", "selector"),
        **template_cells("spec", "jobTemplate", "spec", "template"),
    },
    "csidrivers.storage.k8s.io": {
        "AttachRequired": truth_of("spec", "attachRequired", default=True),
        "PodInfoOnMount": truth_of("spec", "podInfoOnMount"),
        "StorageCapacity": truth_of("spec", "storageCapacity"),
        "TokenRequests": lambda obj, _: (
            "<unset>"
            if value_at(obj, "spec", "tokenRequests") is None
            else ",".join(str(one.get("audience")) for one in objects_at(obj, "spec", "tokenRequests"))
        ),
        "RequiresRepublish": truth_of("spec", "requiresRepublish"),
        "Modes": joined("spec", "volumeLifecycleModes"),
    },
    "csinodes.storage.k8s.io": {"Drivers": count_of("spec", "drivers")},
    "daemonsets.apps": workload_cells(
        **{
            "Desired": number_of("status", "desiredNumberScheduled"),
            "Current": number_of("status", "currentNumberScheduled"),
            "Ready": number_of("status", "numberReady"),
            "Up-to-date": number_of("status", "updatedNumberScheduled"),
            "Available": number_of("status", "numberAvailable"),
            "Node Selector": labels_of("spec", "template", "spec", "nodeSelector"),
        }
    ),
    "deployments.apps": workload_cells(
        **{
            "Ready": ready_replicas,
            "Up-to-date": number_of("status", "updatedReplicas"),
            "Available": number_of("status", "availableReplicas"),
        }
    ),
    "endpoints": {"Endpoints": _endpoints},
    "endpointslices.discovery.k8s.io": {
        "AddressType": text_of("addressType", default=""),
        "Ports": _slice_ports,
        "Endpoints": _slice_endpoints,
    },
    "events": _EVENT,
    "events.events.k8s.io": _EVENT,
    "flowschemas.flowcontrol.apiserver.k8s.io": {
        "PriorityLevel": text_of("spec", "priorityLevelConfiguration", "name", default=""),
        "MatchingPrecedence": number_of("spec", "matchingPrecedence"),
        "DistinguisherMethod": text_of("spec", "distinguisherMethod", "type"),
        "MissingPL": lambda obj, _: next(
            (str(one["status"]) for one in objects_at(obj, "status", "conditions") if one.get("type") == "Dangling"),
            "?",
        ),
    },
    "horizontalpodautoscalers.autoscaling": {
        "Reference": reference_of("spec", "scaleTargetRef"),
        "Targets": _metrics,
        "MinPods": text_of("spec", "minReplicas", default="<unset>"),
        "MaxPods": number_of("spec", "maxReplicas"),
        "Replicas": number_of("status", "currentReplicas"),
    },
    "ingressclasses.networking.k8s.io": {
        "Name": _default_name("ingressclass.kubernetes.io/is-default-class"),
        "Controller": text_of("spec", "controller", default=""),
        "Parameters": lambda obj, _: (
            f"{found['kind']}{'.' if found.get('apiGroup') else ''}{found.get('apiGroup') or ''}/{found['name']}"
            if (found := value_at(obj, "spec", "parameters"))
            else NONE
        ),
    },
    "ingresses.networking.k8s.io": {
        "Class": text_of("spec", "ingressClassName"),
        "Hosts": _ingress_hosts,
        "Address": lambda obj, _: _load_balancer(obj),
        "Ports": lambda obj, _: "80, 443" if value_at(obj, "spec", "tls") else "80",
    },
    "jobs.batch": workload_cells(Status=_job_status, Completions=_job_completions, Duration=_job_duration),
    "leases.coordination.k8s.io": {"Holder": text_of("spec", "holderIdentity", default="")},
    "mutatingadmissionpolicies.admissionregistration.k8s.io": {
        "Mutations": count_of("spec", "mutations"),
        "ParamKind": _parameter_kind,
    },
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {"Webhooks": count_of("webhooks")},
    "namespaces": {"Status": text_of("status", "phase")},
    "networkpolicies.networking.k8s.io": {"Pod-Selector": selector_of("spec", "podSelector")},
    "nodes": {
        "Status": node_status,
        "Roles": node_roles,
        "Version": text_of("status", "nodeInfo", "kubeletVersion", default=""),
        "Internal-IP": node_address("InternalIP"),
        "External-IP": node_address("ExternalIP"),
        "OS-Image": text_of("status", "nodeInfo", "osImage", default=UNKNOWN),
        "Kernel-Version": text_of("status", "nodeInfo", "kernelVersion", default=UNKNOWN),
        "Container-Runtime": text_of("status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN),
    },
    "persistentvolumeclaims": {
        "Status": _phase,
        "Volume": text_of("spec", "volumeName", default=""),
        "Capacity": _bound(text_of("status", "capacity", "storage", default="0")),
        "Access Modes": _bound(_modes("status", "accessModes")),
        "StorageClass": text_of("spec", "storageClassName", default=""),
        "VolumeAttributesClass": text_of("spec", "volumeAttributesClassName", default="<unset>"),
        "VolumeMode": text_of("spec", "volumeMode", default="<unset>"),
    },
    "persistentvolumes": {
        "Capacity": text_of("spec", "capacity", "storage", default="0"),
        "Access Modes": _modes("spec", "accessModes"),
        "Reclaim Policy": text_of("spec", "persistentVolumeReclaimPolicy", default=""),
        "Status": _phase,
        "Claim": _claim,
        "StorageClass": text_of("spec", "storageClassName", default=""),
        "VolumeAttributesClass": text_of("spec", "volumeAttributesClassName", default="<unset>"),
        "Reason": text_of("status", "reason", default=""),
        "VolumeMode": text_of("spec", "volumeMode", default="<unset>"),
    },
    "poddisruptionbudgets.policy": {
        "Min Available": given_of("spec", "minAvailable"),
        "Max Unavailable": given_of("spec", "maxUnavailable"),
        "Allowed Disruptions": number_of("status", "disruptionsAllowed"),
    },
    "pods": {
        "Ready": pod_ready,
        "Status": pod_status,
        "Restarts": pod_restarts,
        "IP": text_of("status", "podIP"),
        "Node": text_of("spec", "nodeName"),
        "Nominated Node": text_of("status", "nominatedNodeName"),
        "Readiness Gates": readiness_gates,
    },
    "podtemplates": {**template_cells("template"), "Pod Labels": labels_of("template", "metadata", "labels")},
    "priorityclasses.scheduling.k8s.io": {
        "Value": number_of("value"),
        "Global-Default": truth_of("globalDefault"),
        "PreemptionPolicy": text_of("preemptionPolicy", default=""),
    },
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
        "Type": text_of("spec", "type", default=""),
        "NominalConcurrencyShares": number_of("spec", "limited", "nominalConcurrencyShares", default=NONE),
        "Queues": number_of("spec", "limited", "limitResponse", "queuing", "queues", default=NONE),
        "HandSize": number_of("spec", "limited", "limitResponse", "queuing", "handSize", default=NONE),
        "QueueLengthLimit": number_of("spec", "limited", "limitResponse", "queuing", "queueLengthLimit", default=NONE),
    },
    "replicasets.apps": workload_cells(**_REPLICAS),
    "replicationcontrollers": workload_cells(**_REPLICAS) | {"Selector": labels_of("spec", "selector")},
    "resourcequotas": {"Request": _quota(limits=False), "Limit": _quota(limits=True)},
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "runtimeclasses.node.k8s.io": {"Handler": text_of("handler", default="")},
    "secrets": {"Type": text_of("type", default=""), "Data": count_of("data")},
    "servicecidrs.networking.k8s.io": {"CIDRs": joined("spec", "cidrs", default="")},
    "services": {
        "Type": text_of("spec", "type", default="ClusterIP"),
        "Cluster-IP": text_of("spec", "clusterIP"),
        "External-IP": _external_ip,
        "Port(s)": _service_ports,
        "Selector": labels_of("spec", "selector"),
    },
    "statefulsets.apps": {"Ready": ready_replicas, **template_cells("spec", "template")},
    "storageclasses.storage.k8s.io": {
        "Name": _default_name("storageclass.kubernetes.io/is-default-class"),
        "Provisioner": text_of("provisioner", default=""),
        "ReclaimPolicy": text_of("reclaimPolicy", default="Delete"),
        "VolumeBindingMode": text_of("volumeBindingMode", default="Immediate"),
        "AllowVolumeExpansion": truth_of("allowVolumeExpansion"),
    },
    "validatingadmissionpolicies.admissionregistration.k8s.io": {
        "Validations": count_of("spec", "validations"),
        "ParamKind": _parameter_kind,
    },
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"Webhooks": count_of("webhooks")},
    "volumeattachments.storage.k8s.io": {
        "Attacher": text_of("spec", "attacher", default=""),
        "PV": text_of("spec", "source", "persistentVolumeName", default=""),
        "Node": text_of("spec", "nodeName", default=""),
        "Attached": truth_of("status", "attached"),
    },
    "volumeattributesclasses.storage.k8s.io": {"DriverName": text_of("driverName", default="")},
}
"""The cells of each resource, by the name of the column.  ``columns.txt`` has the columns."""
