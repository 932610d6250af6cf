"""The fields of built-in kinds that depend on other objects or on the server: what kube-apiserver's strategies set.

The default admission plugins that set fields are included, with exceptions.  The service accounts of pods and the
users of requests are not known here, and no finalizers are set, because no controller would remove them.

Source: kubernetes ``pkg/registry/*/*/strategy.go`` and ``plugin/pkg/admission``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Final

from ...errors import DecodeError
from ...models import Quantity
from . import _custom
from ._default_rules import TEMPLATE_GENERATION, WRONG_TYPE, take_labels
from ._defaults import empty_status
from ._kinds import ServedKind
from ._metadata import json_equal, ordered
from ._services import create_service, update_service
from ._storage import JSONObject, Storage

_UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"


def prepare_create(
    storage: Storage, served: ServedKind, obj: JSONObject, *, keep_status: bool, sets_defaults: bool
) -> None:
    """Set the fields of a new object, whose other defaults are set if ``sets_defaults`` is true."""
    now = obj["metadata"]["creationTimestamp"]
    if served.has_status and not keep_status and served.resource != "nodes":  # a kubelet registers its node
        obj.pop("status", None)
    if served.is_namespace:
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
    elif served.resource == _custom.DEFINITIONS:
        others = (one.decoded() for one in storage.snapshot(_custom.DEFINITIONS))
        obj["status"] = _custom.accepted_status(obj, now, others)
    elif served.is_builtin and served.has_status and "status" not in obj:
        obj["status"] = empty_status(served) if sets_defaults else {}
    if served.resource == "pods":
        obj.setdefault("status", {}).setdefault("phase", "Pending")
    prepare = _CREATED.get(served.resource)
    # Without the labels and the selector that the server generates, a Job would not find its pods.
    if prepare is not None and (sets_defaults or prepare is _job):
        with suppress(*WRONG_TYPE):
            prepare(storage, obj, now)


def prepare_update(storage: Storage, served: ServedKind, old: JSONObject, new: JSONObject) -> None:
    """Set the fields of a changed object that a client may leave out."""
    if (prepare := _UPDATED.get(served.resource)) is not None:
        with suppress(*WRONG_TYPE):
            prepare(storage, old, new)


# --- pods and nodes ---------------------------------------------------------------------------------------------------


def _pod(storage: Storage, pod: JSONObject, now: str) -> None:
    spec = pod["spec"]
    _tolerate(spec)
    if priority := _priority_class(storage, spec.get("priorityClassName")):
        spec["priorityClassName"] = priority["metadata"]["name"]
    spec.setdefault("priority", priority.get("value", 0))
    spec.setdefault("preemptionPolicy", priority.get("preemptionPolicy", "PreemptLowerPriority"))
    status = pod["status"]
    status.setdefault("qosClass", _qos_class(spec))
    if spec.get("schedulingGates") and not status.get("conditions"):
        status["conditions"] = [{**_GATED, "lastProbeTime": None, "lastTransitionTime": now}]


def _tolerate(spec: JSONObject) -> None:
    tolerations = spec.setdefault("tolerations", [])
    given = {one.get("key") for one in tolerations if one.get("effect") in (None, "", "NoExecute")}
    for key in _UNREACHABLE if given.isdisjoint((None, "")) else ():
        if key not in given:
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _update_pod(storage: Storage, old: JSONObject, new: JSONObject) -> None:
    _tolerate(new["spec"])
    for name in ("priority", "preemptionPolicy"):
        if name in old["spec"]:
            new["spec"].setdefault(name, old["spec"][name])
    if quality := old["status"].get("qosClass"):
        new["status"].setdefault("qosClass", quality)


def _priority_class(storage: Storage, name: object) -> JSONObject:
    """Return the PriorityClass with this name, or the global default, or an empty dict."""
    if name:
        found = storage.get(_PRIORITY_CLASSES, str(name))
        return {} if found is None else found.decoded()
    if _PRIORITY_CLASSES not in storage.resources():
        return {}  # none of those that every cluster has is the default
    classes = [one.decoded() for one in storage.snapshot(_PRIORITY_CLASSES) if b'"globalDefault":true' in one.body]
    return min(classes, key=lambda one: one["value"], default={})


def _amounts(holder: JSONObject, part: str) -> list[Decimal]:
    amounts = (holder.get("resources") or {}).get(part)
    if not amounts:
        return _NO_AMOUNTS
    with suppress(DecodeError):
        return [Quantity(amounts.get(name, "0")).value for name in ("cpu", "memory")]
    return _NO_AMOUNTS


_NO_AMOUNTS: Final = [Decimal(0), Decimal(0)]


def _qos_class(spec: JSONObject) -> str:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    holders = [spec] if spec.get("resources") else containers
    requests, limits = ([_amounts(one, part) for one in holders] for part in ("requests", "limits"))
    if not any(map(any, (*requests, *limits))):
        return "BestEffort"
    is_equal = [*map(sum, zip(*requests, strict=True))] == [*map(sum, zip(*limits, strict=True))]
    return "Guaranteed" if is_equal and all(map(all, limits)) else "Burstable"


def _node(storage: Storage, node: JSONObject, now: str) -> None:
    taints = node["spec"].get("taints") or []
    if not any(one.get("key") == _NOT_READY["key"] and one.get("effect") == _NOT_READY["effect"] for one in taints):
        node["spec"]["taints"] = [*taints, dict(_NOT_READY)]


# --- workloads --------------------------------------------------------------------------------------------------------


def _job(storage: Storage, job: JSONObject, now: str) -> None:
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    names, uids = ("batch.kubernetes.io/job-name", "job-name"), ("batch.kubernetes.io/controller-uid", "controller-uid")
    generated = {**dict.fromkeys(uids, metadata["uid"]), **dict.fromkeys(names, metadata["name"])}
    pods = spec["template"].setdefault("metadata", {})
    labels = pods.setdefault("labels", {})
    for name in sorted(generated):
        labels.setdefault(name, generated[name])
    selector = spec.get("selector") or {}
    spec["selector"] = {**selector, "matchLabels": {uids[0]: metadata["uid"], **(selector.get("matchLabels") or {})}}
    take_labels(job)
    job["metadata"] = ordered(metadata)


def _update_daemon_set(storage: Storage, old: JSONObject, new: JSONObject) -> None:
    generation = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    if generation.isdecimal():
        is_same = json_equal(old["spec"].get("template"), new["spec"].get("template"))
        annotations = new["metadata"].get("annotations") or {}
        annotations[TEMPLATE_GENERATION] = generation if is_same else str(int(generation) + 1)


def _volume(storage: Storage, volume: JSONObject, now: str) -> None:
    volume["status"].setdefault("lastPhaseTransitionTime", now)


_CREATED: Final[Mapping[str, Callable[[Storage, JSONObject, str], None]]] = {
    "jobs.batch": _job,
    "nodes": _node,
    "persistentvolumes": _volume,
    "pods": _pod,
    "services": create_service,
}
"""The functions for new objects, by resource."""

_UPDATED: Final[Mapping[str, Callable[[Storage, JSONObject, JSONObject], None]]] = {
    "daemonsets.apps": _update_daemon_set,
    "pods": _update_pod,
    "services": update_service,
}
"""The functions for changed objects, by resource."""
