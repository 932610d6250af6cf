"""Owned objects, conditions, and the readiness of pods."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable
from typing import Any, Final

from ...models._internal import dumps
from .._storage._selection import selector_in
from .._storage._storage import JSONObject
from ._cluster import Cluster, controller_of, owner_reference

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_TIMES: Final = {"Deployment": ("lastUpdateTime",), "Job": ("lastProbeTime",)}
"""The other times in the conditions of a kind."""


def claim(cluster: Cluster, owner: JSONObject, kind: str) -> list[JSONObject]:
    """Return the objects that an owner controls, and adopt or release objects as its selector requires."""
    uid, selector, claimed = owner["metadata"]["uid"], selector_in(owner["spec"]["selector"]), []
    for obj in cluster.list(kind, owner["metadata"]["namespace"]):
        controller, metadata = controller_of(obj).get("uid"), obj["metadata"]
        is_matching = selector.matches(metadata.get("labels") or {})
        if owner["kind"] == "StatefulSet":  # other pods with its labels are not its members
            prefix, _, ordinal = metadata["name"].rpartition("-")
            is_matching &= prefix == owner["metadata"]["name"] and ordinal.isdecimal()
        if controller == uid and not is_matching:
            metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one["uid"] != uid]
            cluster.write(obj)
        elif controller is None and is_matching and "deletionTimestamp" not in metadata:
            metadata["ownerReferences"] = [*(metadata.get("ownerReferences") or ()), owner_reference(owner)]
            cluster.write(obj)
            claimed.append(obj)
        elif controller == uid:
            claimed.append(obj)
    return claimed


def pods_in(cluster: Cluster, namespace: str, selector: JSONObject) -> list[JSONObject]:
    """Return the pods that a selector selects."""
    matches = selector_in(selector).matches
    return [pod for pod in cluster.list("Pod", namespace) if matches(pod["metadata"].get("labels") or {})]


def create_pod(
    cluster: Cluster, owner: JSONObject, template: JSONObject, metadata: JSONObject, **spec: object
) -> JSONObject:
    """Create a pod of an owner with a template and other fields of the metadata and the spec."""
    given = template.get("metadata") or {}
    copied = {key: given.get(key) for key in ("labels", "annotations", "finalizers")}
    return cluster.create_owned("Pod", owner, {**copied, **metadata}, spec={**(template.get("spec") or {}), **spec})


def scale_pods(cluster: Cluster, owner: JSONObject, pods: list[JSONObject], count: int) -> list[JSONObject]:
    """Delete or create pods of an owner, and return the pods that exist afterwards.

    The least useful pods are deleted first, and among equals, the newest.
    """
    ranked = pods[::-1]
    ranked.sort(key=_deletion_rank)
    surplus = ranked[: max(len(pods) - count, 0)]
    for pod in surplus:
        cluster.delete(pod)
    template = owner["spec"].get("template") or {}
    created = [create_pod(cluster, owner, template, {}) for _ in range(count - len(pods))]
    return [*(pod for pod in pods if pod not in surplus), *created]


def _deletion_rank(pod: JSONObject) -> tuple[Any, ...]:
    """Return a key that is the lower, the sooner a pod should be deleted."""
    cost = (pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0")
    return bool(pod["spec"].get("nodeName")), phase_of(pod) == "Running", ready_since(pod) is not None, number_in(cost)


def number_in(text: str) -> int:
    """Return the number in an annotation, or 0 if it is not a number."""
    return int(text) if re.fullmatch("-?[0-9]{1,10}", text) else 0


def hash_of(value: object) -> str:
    """Return a hash for names and labels."""
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(zlib.crc32(dumps(value))))


def scaled(value: int | str, total: int, *, rounds_up: bool) -> int:
    """Return a number, or a percentage of a total."""
    if isinstance(value, int):
        return value
    share = int(value.rstrip("%")) * total / 100
    return math.ceil(share) if rounds_up else math.floor(share)


def replicas_of(obj: JSONObject) -> int:
    """Return the desired number of replicas."""
    return int(obj["spec"].get("replicas", 1))


def phase_of(pod: JSONObject) -> str:
    """Return the phase of a pod."""
    return str(pod["status"].get("phase"))


def is_active(pod: JSONObject) -> bool:
    """Return whether a pod has neither ended nor been deleted."""
    return phase_of(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def find_condition(obj: JSONObject, kind: str) -> JSONObject:
    """Return a condition of an object, or an empty dict."""
    return next((one for one in obj["status"].get("conditions") or () if one["type"] == kind), {})


def set_condition(
    cluster: Cluster, obj: JSONObject, kind: str, status: str, reason: str, message: str, *, renews: bool = False
) -> None:
    """Set a condition of an object, without writing the object.

    A condition that is the same as before keeps its times, unless ``renews`` is true.
    """
    conditions, old = obj["status"].get("conditions") or (), find_condition(obj, kind)
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    if renews or not new.items() <= old.items():
        new |= dict.fromkeys(_TIMES.get(obj["kind"], ()), cluster.timestamp)
        is_same = old.get("status") == status
        new["lastTransitionTime"] = old["lastTransitionTime"] if is_same else cluster.timestamp
        obj["status"]["conditions"] = [*(one for one in conditions if one is not old), new]


def ready_since(pod: JSONObject) -> str | None:
    """Return the time at which a pod became ready, or None if it is not ready."""
    condition = find_condition(pod, "Ready")
    is_ready = condition.get("status") == "True"
    return (condition.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"]) if is_ready else None


def available(cluster: Cluster, owner: JSONObject, pods: Iterable[JSONObject]) -> list[JSONObject]:
    """Return the pods that have been ready for ``minReadySeconds``.  The owner is checked again for the others."""
    seconds, found = owner["spec"].get("minReadySeconds", 0), []
    for pod in pods:
        if (since := ready_since(pod)) is not None:
            if (wait := cluster.seconds_until(since, seconds)) > 0:
                cluster.check_later(wait, owner)
            else:
                found.append(pod)
    return found
