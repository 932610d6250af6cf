"""Owned objects, conditions, and the readiness of pods."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from typing import Any, Final

from ...models._internal import dumps
from .._storage._selection import selector_in
from .._storage._storage import JSONObject
from ._cluster import Cluster

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def controller_of(obj: JSONObject) -> JSONObject:
    """Return the owner reference of an object's controller, or an empty dict."""
    return next((owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("controller")), {})


def claim(cluster: Cluster, kind: str, owner: JSONObject, dependents: str) -> list[JSONObject]:
    """Return the objects that an owner controls, and adopt or release objects as its selector requires."""
    metadata, claimed = owner["metadata"], []
    selector = owner["spec"].get("selector") or {}
    for obj in cluster.list(dependents, metadata["namespace"]) if any(selector.values()) else ():
        controller, given = controller_of(obj).get("uid"), obj["metadata"]
        is_matching = selector_in(selector).matches(given.get("labels") or {})
        if controller == metadata["uid"] and not is_matching and "deletionTimestamp" not in metadata:
            given["ownerReferences"] = [one for one in given["ownerReferences"] if one["uid"] != controller]
            cluster.write(dependents, obj)
        elif controller is None and is_matching and not {"deletionTimestamp"} & {*metadata, *given}:
            given["ownerReferences"] = [*(given.get("ownerReferences") or ()), cluster.owner_reference(kind, owner)]
            cluster.write(dependents, obj)
            claimed.append(obj)
        elif controller == metadata["uid"]:
            claimed.append(obj)
    return claimed


def pods_in(cluster: Cluster, namespace: str, selector: JSONObject) -> list[JSONObject]:
    """Return the pods that a selector selects."""
    matches = selector_in(selector).matches
    return [pod for pod in cluster.list("Pod", namespace) if matches(pod["metadata"].get("labels") or {})]


def pod_of(cluster: Cluster, kind: str, owner: JSONObject, template: JSONObject) -> JSONObject:
    """Return a new pod of an owner with a template."""
    given, owners = template.get("metadata") or {}, [cluster.owner_reference(kind, owner)]
    metadata = {key: given.get(key) for key in ("labels", "annotations", "finalizers")}
    names = {"generateName": owner["metadata"]["name"] + "-", "ownerReferences": owners}
    return {"metadata": {**metadata, **names}, "spec": {**(template.get("spec") or {})}}


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


def find_condition(conditions: Iterable[JSONObject] | None, kind: str) -> JSONObject:
    """Return a condition, or an empty dict."""
    return next((one for one in conditions or () if one["type"] == kind), {})


def with_condition(conditions: Iterable[JSONObject] | None, new: JSONObject) -> list[JSONObject]:
    """Return conditions in which a new one replaces the condition of its type."""
    return [*(one for one in conditions or () if one["type"] != new["type"]), new]


def ready_since(pod: JSONObject) -> str | None:
    """Return the time at which a pod became ready, or None if it is not ready."""
    condition = find_condition(pod["status"].get("conditions"), "Ready")
    is_ready = condition.get("status") == "True"
    return condition.get("lastTransitionTime", pod["metadata"]["creationTimestamp"]) if is_ready else None


def available(cluster: Cluster, kind: str, owner: JSONObject, pods: Iterable[JSONObject]) -> list[JSONObject]:
    """Return the pods that have been ready for ``minReadySeconds``.  The owner is checked again for the others."""
    seconds, found = owner["spec"].get("minReadySeconds", 0), []
    for pod in pods:
        if (since := ready_since(pod)) is not None:
            if (wait := cluster.seconds_until(since, seconds)) > 0:
                cluster.check_later(wait, kind, owner)
            else:
                found.append(pod)
    return found


def deletion_rank(pod: JSONObject) -> tuple[Any, ...]:
    """Return a key that is the lower, the sooner a pod should be deleted."""
    since = ready_since(pod)
    cost = (pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0")
    return bool(pod["spec"].get("nodeName")), phase_of(pod) == "Running", since is not None, int(cost)


def to_delete(pods: list[JSONObject], count: int) -> list[JSONObject]:
    """Return the pods to delete: the least useful first, and among equals, the newest first."""
    newest_first = pods[::-1]
    newest_first.sort(key=deletion_rank)
    return newest_first[: max(count, 0)]


def counts(**numbers: int) -> JSONObject:
    """Return the numbers of a status, without those that are omitted if they are 0."""
    return {key: number for key, number in numbers.items() if number or key in ("replicas", "terminatingReplicas")}
