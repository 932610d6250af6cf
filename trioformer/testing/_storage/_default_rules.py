"""The defaults of built-in types that depend on other fields.

Each function takes an object in the form in which the client sent it, before the defaults of the table are set.

Source: kubernetes ``pkg/apis/*/*/defaults.go``, and its conversions for the labels and selectors of workloads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from ._storage import JSONObject

WRONG_TYPE: Final = (AttributeError, LookupError, TypeError, ValueError)
"""The exceptions that a value of the wrong type causes.  The direct API stores objects with such values."""
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation of a DaemonSet that counts the changes of its template."""
_RBAC: Final = "rbac.authorization.k8s.io"
_AFFINITY_SECONDS: Final = 10_800
_BACKOFF_LIMIT: Final = 6
_TARGET_UTILIZATION: Final = 80
_NO_BACKOFF_LIMIT: Final = 2**31 - 1


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[JSONObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@functools.lru_cache(1_000)
def pull_policy(image: object) -> str:
    """Return the policy for an image, which is always pulled if its tag may move to another image."""
    name = str(image or "")
    tag = name.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or "@" in name) else "IfNotPresent"


# --- pods -------------------------------------------------------------------------------------------------------------


def _container(container: JSONObject) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image"))


def _image_volume(source: JSONObject) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = pull_policy(source.get("reference"))


def _volume(volume: JSONObject) -> None:
    if all(source is None for name, source in volume.items() if name != "name"):
        volume["emptyDir"] = {}


def _pod(pod: JSONObject) -> None:
    spec = _dict(pod.get("spec"))
    containers = _dicts(spec.get("initContainers")) + _dicts(spec.get("containers"))
    for container in containers:
        if limits := _dict(_dict(container.get("resources")).get("limits")):
            resources = container["resources"]
            resources["requests"] = {**limits, **_dict(resources.get("requests"))}
        for port in _dicts(container.get("ports")) if spec.get("hostNetwork") is True else ():
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort")


def _pod_spec(spec: JSONObject) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


# --- workloads --------------------------------------------------------------------------------------------------------


def _rolling_update(strategy: JSONObject) -> None:
    if (strategy.get("type") or "RollingUpdate") == "RollingUpdate" and strategy.get("rollingUpdate") is None:
        strategy["rollingUpdate"] = {}


def _stateful_set_strategy(strategy: JSONObject) -> None:
    if not strategy.get("type") and strategy.get("rollingUpdate") is None:
        strategy["rollingUpdate"] = {}


def take_labels(workload: JSONObject) -> dict[str, str]:
    """Give a workload without labels those of its pods, and return them.

    Both then share one dict, as in kube-apiserver, so that a Job also gets the labels that are generated for its pods.
    """
    labels = _dict(_dict(_dict(_dict(workload.get("spec")).get("template")).get("metadata")).get("labels"))
    metadata = workload["metadata"]
    if labels and not metadata.get("labels") and all(isinstance(each, str) for each in labels.values()):
        metadata["labels"] = labels
    return labels


def _daemon_set(daemon_set: JSONObject) -> None:
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {TEMPLATE_GENERATION: "1", **_dict(metadata.get("annotations"))}


def _stateful_set(spec: JSONObject) -> None:
    for claim in _dicts(spec.get("volumeClaimTemplates")):
        claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}


def _replication_controller(controller: JSONObject) -> None:
    labels = take_labels(controller)
    if labels and not controller["spec"].get("selector"):
        controller["spec"]["selector"] = dict(labels)


def _job(job: JSONObject) -> None:
    take_labels(job)
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = _BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else _NO_BACKOFF_LIMIT
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"


# --- other kinds ------------------------------------------------------------------------------------------------------


def _service_port(port: JSONObject) -> None:
    if not port.get("targetPort"):
        port["targetPort"] = port.get("port")


def _affinity_seconds(spec: JSONObject) -> object:
    return _dict(_dict(spec.get("sessionAffinityConfig")).get("clientIP")).get("timeoutSeconds")


def _service(spec: JSONObject) -> None:
    kind = spec.get("type") or "ClusterIP"
    if (spec.get("sessionAffinity") or "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP" and _affinity_seconds(spec) is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    is_external = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))
    if is_external and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind != "ExternalName" and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True


def _scaler(spec: JSONObject) -> None:
    if spec.get("targetCPUUtilizationPercentage") is None:
        spec["targetCPUUtilizationPercentage"] = _TARGET_UTILIZATION


def _ingress_status(status: JSONObject) -> None:
    if status.get("ip") and status.get("ipMode") is None:
        status["ipMode"] = "VIP"


def _node_status(status: JSONObject) -> None:
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])


def _limits(item: JSONObject) -> None:
    if item.get("type") == "Container":
        limits = {**_dict(item.get("max")), **_dict(item.get("default"))}
        item["default"] = limits
        item["defaultRequest"] = {**_dict(item.get("min")), **limits, **_dict(item.get("defaultRequest"))}


def _network_policy(spec: JSONObject) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _subject(subject: JSONObject) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _RBAC


def _device_request(request: JSONObject) -> None:
    if (request.get("allocationMode") or "ExactCount") == "ExactCount" and not request.get("count"):
        request["count"] = 1


RULES: Final[dict[str, Callable[[JSONObject], None]]] = {
    "apps_v1.DaemonSet": _daemon_set,
    "apps_v1.DaemonSetUpdateStrategy": _rolling_update,
    "apps_v1.DeploymentStrategy": _rolling_update,
    "apps_v1.StatefulSetSpec": _stateful_set,
    "apps_v1.StatefulSetUpdateStrategy": _stateful_set_strategy,
    "autoscaling_v1.HorizontalPodAutoscalerSpec": _scaler,
    "batch_v1.Job": _job,
    "core_v1.Container": _container,
    "core_v1.EphemeralContainerCommon": _container,
    "core_v1.ImageVolumeSource": _image_volume,
    "core_v1.LimitRangeItem": _limits,
    "core_v1.LoadBalancerIngress": _ingress_status,
    "core_v1.NodeStatus": _node_status,
    "core_v1.Pod": _pod,
    "core_v1.PodSpec": _pod_spec,
    "core_v1.ReplicationController": _replication_controller,
    "core_v1.ServicePort": _service_port,
    "core_v1.ServiceSpec": _service,
    "core_v1.Volume": _volume,
    "networking_v1.NetworkPolicySpec": _network_policy,
    "rbac_v1.Subject": _subject,
    "resource_v1.DeviceSubRequest": _device_request,
    "resource_v1.ExactDeviceRequest": _device_request,
}
"""The functions, by the types of the objects that they take."""
