"""Decide whether an object is ready, as ``kubectl rollout status`` and kstatus do.

Sources: ``pkg/polymorphichelpers/rollout_status.go`` in kubectl for Deployments, DaemonSets and StatefulSets, and
``sigs.k8s.io/cli-utils/pkg/kstatus`` for all other kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast, final

import attrs

from ..models import KubernetesObject, resource_of, to_dict

ReadyState: TypeAlias = Literal["ready", "waiting", "failed"]
"""The state of an object.  ``failed`` means that the object will not become ready unless it is changed."""

_JSON: TypeAlias = Mapping[str, Any]


@final
@attrs.frozen
class Readiness:
    """The readiness of an object."""

    state: ReadyState
    """The state of the object."""
    message: str
    """The reason for the state, such as the missing or failed part."""

    def __bool__(self) -> bool:
        return self.state == "ready"


def readiness_of(obj: KubernetesObject) -> Readiness:
    """Return the readiness of an object, which depends on its kind.

    - Deployments, DaemonSets and StatefulSets are ready when their rollout is complete.  With the strategy
      ``OnDelete``, they are ready when all pods are ready, regardless of their revision.  A Deployment has failed if
      it has exceeded its progress deadline.
    - ReplicaSets and ReplicationControllers are ready when all replicas are available.
    - Jobs are ready when they are complete, and have failed when their condition ``Failed`` is true.  A suspended Job
      is ready, because nothing else will happen.
    - Pods are ready when they are ready or have succeeded.
    - Namespaces are ready when they are active.
    - CustomResourceDefinitions are ready when they are established, and have failed if another definition has the same
      names.
    - APIServices are ready when they are available.
    - All other objects are ready when their condition ``Ready`` or ``Available`` is true.  Objects that have neither
      condition are ready unless their status is from an older generation.  An object whose condition ``Stalled`` is
      true has failed.

    An object of any kind that is being deleted is not ready.
    """
    whole = cast("_JSON", to_dict(obj))
    gvk = resource_of(type(obj)).gvk
    if _map(whole, "metadata").get("deletionTimestamp"):
        return Readiness("waiting", "it is being deleted")
    rule = _RULES.get((gvk.group, gvk.kind), _other)
    return rule(whole, _map(whole, "spec"), _map(whole, "status"))


def _deployment(whole: _JSON, spec: _JSON, status: _JSON) -> Readiness:
    if not _is_observed(whole, status):
        return _waiting_for_generation()
    progressing = _condition(status, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Readiness("failed", "it has exceeded its progress deadline")
    wanted, updated = _number(spec, "replicas", 1), _number(status, "updatedReplicas")
    if updated < wanted:
        return Readiness("waiting", f"{updated} of {wanted} replicas are updated")
    if (old := _number(status, "replicas") - updated) > 0:
        return Readiness("waiting", f"{old} old {_replicas(old)} will be terminated")
    if (available := _number(status, "availableReplicas")) < updated:
        return Readiness("waiting", f"{available} of {updated} updated replicas are available")
    return Readiness("ready", "its rollout is complete")


def _daemon_set(whole: _JSON, spec: _JSON, status: _JSON) -> Readiness:
    if not _is_observed(whole, status):
        return _waiting_for_generation()
    wanted = _number(status, "desiredNumberScheduled")
    updated = _number(status, "updatedNumberScheduled")
    if _map(spec, "updateStrategy").get("type") != "OnDelete" and updated < wanted:
        return Readiness("waiting", f"{updated} of {wanted} pods are updated")
    if (available := _number(status, "numberAvailable")) < wanted:
        return Readiness("waiting", f"{available} of {wanted} pods are available")
    return Readiness("ready", "its rollout is complete")


def _stateful_set(whole: _JSON, spec: _JSON, status: _JSON) -> Readiness:
    if not status.get("observedGeneration") or not _is_observed(whole, status):
        return _waiting_for_generation()
    wanted, ready = _number(spec, "replicas", 1), _number(status, "readyReplicas")
    if ready < wanted:
        return Readiness("waiting", f"{ready} of {wanted} pods are ready")
    strategy = _map(spec, "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return Readiness("ready", "all pods are ready; each pod is updated when it is deleted")
    updated = _number(status, "updatedReplicas")
    if partition := _number(_map(strategy, "rollingUpdate"), "partition"):
        if updated < wanted - partition:
            return Readiness("waiting", f"{updated} of {wanted - partition} pods above the partition are updated")
        return Readiness("ready", "its partitioned rollout is complete")
    if status.get("updateRevision") != status.get("currentRevision"):
        return Readiness("waiting", f"{updated} of {wanted} pods are updated")
    return Readiness("ready", "its rollout is complete")


def _replica_set(whole: _JSON, spec: _JSON, status: _JSON) -> Readiness:
    if not _is_observed(whole, status):
        return _waiting_for_generation()
    failure = _condition(status, "ReplicaFailure")
    wanted, available = _number(spec, "replicas", 1), _number(status, "availableReplicas")
    if available < wanted:
        reason = f": {failure.get('message', '')}" if failure.get("status") == "True" else ""
        return Readiness("waiting", f"{available} of {wanted} replicas are available{reason}")
    if (more := _number(status, "replicas") - wanted) > 0:
        return Readiness("waiting", f"{more} old {_replicas(more)} will be terminated")
    return Readiness("ready", "all replicas are available")


def _job(_: _JSON, spec: _JSON, status: _JSON) -> Readiness:
    failed = _condition(status, "Failed")
    if failed.get("status") == "True":
        return Readiness("failed", f"it has failed: {_reason(failed)}")
    if _condition(status, "Complete").get("status") == "True":
        return Readiness("ready", "it is complete")
    if spec.get("suspend") is True:
        return Readiness("ready", "it is suspended")
    done = _number(status, "succeeded")
    wanted = _number(spec, "completions", 1)
    return Readiness("waiting", f"{done} of {wanted} completions, {_number(status, 'active')} pods active")


def _pod(_: _JSON, _spec: _JSON, status: _JSON) -> Readiness:
    phase = status.get("phase")
    if phase == "Succeeded":
        return Readiness("ready", "it has succeeded")
    if phase == "Failed":
        return Readiness("failed", f"it has failed: {_reason(status)}")
    return _by_condition(status, "Ready")


def _namespace(_: _JSON, _spec: _JSON, status: _JSON) -> Readiness:
    if status.get("phase") == "Terminating":
        return Readiness("waiting", "it is being deleted")
    return Readiness("ready", "it exists")


def _crd(_: _JSON, _spec: _JSON, status: _JSON) -> Readiness:
    names = _condition(status, "NamesAccepted")
    if names.get("status") == "False":
        return Readiness("failed", f"its names are not accepted: {_reason(names)}")
    return _by_condition(status, "Established")


def _api_service(_: _JSON, _spec: _JSON, status: _JSON) -> Readiness:
    return _by_condition(status, "Available")


def _other(whole: _JSON, _: _JSON, status: _JSON) -> Readiness:
    if not _is_observed(whole, status):
        return _waiting_for_generation()
    stalled = _condition(status, "Stalled")
    if stalled.get("status") == "True":
        return Readiness("failed", f"it is stalled: {_reason(stalled)}")
    for condition in ("Ready", "Available"):
        if found := _condition(status, condition):
            observed = found.get("observedGeneration")
            generation = _map(whole, "metadata").get("generation")
            if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
                return _waiting_for_generation()
            return _by_condition(status, condition)
    if _condition(status, "Reconciling").get("status") == "True":
        return Readiness("waiting", "it is being reconciled")
    return Readiness("ready", "it exists")


_Rule: TypeAlias = Callable[[_JSON, _JSON, _JSON], Readiness]
_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "ReplicationController"): _replica_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "Namespace"): _namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
    ("apiregistration.k8s.io", "APIService"): _api_service,
}


def _waiting_for_generation() -> Readiness:
    return Readiness("waiting", "its controller has not observed the newest generation yet")


def _by_condition(status: _JSON, name: str) -> Readiness:
    found = _condition(status, name)
    if found.get("status") == "True":
        return Readiness("ready", f"its condition {name} is true")
    if not found:
        return Readiness("waiting", f"it has no condition {name} yet")
    return Readiness("waiting", f"its condition {name} is {found.get('status')}: {_reason(found)}")


def _condition(status: _JSON, name: str) -> _JSON:
    conditions = status.get("conditions")
    entries = conditions if isinstance(conditions, list) else []
    return next((one for one in entries if isinstance(one, Mapping) and one.get("type") == name), {})


def _reason(found: _JSON) -> str:
    texts = (found.get("reason"), found.get("message"))
    return ": ".join(text for text in texts if isinstance(text, str) and text) or "without a reason"


def _is_observed(whole: _JSON, status: _JSON) -> bool:
    """Return whether the status is from the newest generation or has no generation."""
    generation, observed = _map(whole, "metadata").get("generation"), status.get("observedGeneration")
    if not isinstance(generation, int):
        return True
    if isinstance(observed, int):
        return observed >= generation
    return (_group(whole), whole.get("kind")) not in _OBSERVING


_OBSERVING: Final = frozenset(
    {
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("", "ReplicationController"),
    }
)
"""The kinds whose controllers always write the observed generation."""


def _group(whole: _JSON) -> str:
    api_version = whole.get("apiVersion")
    return api_version.rpartition("/")[0] if isinstance(api_version, str) else ""


def _map(value: _JSON, key: str) -> _JSON:
    found = value.get(key)
    return cast("_JSON", found) if isinstance(found, Mapping) else {}


def _number(value: _JSON, key: str, default: int = 0) -> int:
    found = value.get(key)
    return found if isinstance(found, int) else default


def _replicas(count: int) -> str:
    return "replica" if count == 1 else "replicas"
