"""The ``eviction`` subresource of pods, which deletes a pod only if its PodDisruptionBudget allows the deletion.

Only the status of a budget decides whether an eviction is allowed.  With ``controllers=True``, a
controller counts the pods.

Source: kubernetes ``pkg/registry/core/pod/storage/eviction.go``.
"""

from __future__ import annotations

from typing import Final

import attrs

from ...errors import SelectorError
from .._storage._clock import timestamp
from .._storage._deletion import DeleteOptions
from .._storage._go_types import metadata_of
from .._storage._kinds import ServedKind
from .._storage._registry import Registry
from .._storage._selection import selector_in
from .._storage._status import bad_request, status_error
from .._storage._storage import JSONObject, Stored
from .._storage._values import conditions_of, value_at

_BUDGETS: Final = ("policy", "v1", "poddisruptionbudgets")
_VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_AFTER: Final = 10


def evict(
    registry: Registry, served: ServedKind, namespace: str, name: str, eviction: JSONObject, *, dry_run: bool
) -> None:
    """Evict a pod, and count the disruption in the status of its budget.

    Raises:
        APIStatusError: The request is not valid (400, 404, 409 or 422), the budget does not allow the eviction (429),
            or several budgets select the pod (500).
    """
    if metadata_of(eviction).get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    given = value_at(eviction, "deleteOptions")
    options = DeleteOptions.parse(given if isinstance(given, dict) else {}, {})
    options = attrs.evolve(options, dry_run=dry_run or options.dry_run)
    pod = registry.get(served, namespace, name).decoded()
    metadata = pod["metadata"]
    is_over = value_at(pod, "status", "phase") in ("Pending", "Succeeded", "Failed")
    if not is_over and not metadata.get("deletionTimestamp"):
        _use_budget(registry, namespace, pod, dry_run=options.dry_run)
    registry.delete(served, namespace, name, options)


def _use_budget(registry: Registry, namespace: str, pod: JSONObject, *, dry_run: bool) -> None:
    """Check that the budget of a pod allows its eviction, and count the disruption in the status of the budget."""
    labels = pod["metadata"].get("labels") or {}
    served = registry.kinds.find(*_BUDGETS)
    if served is None:
        return
    stored = registry.storage.snapshot(served.resource, f"{namespace}/")
    budgets = [budget for budget in map(Stored.decoded, stored) if _selects(budget, labels)]
    if not budgets:
        return
    if len(budgets) > 1:
        problem = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise status_error(500, message=problem)
    (budget,) = budgets
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    desired, healthy, allowed = (
        _number(status, key) for key in ("desiredHealthy", "currentHealthy", "disruptionsAllowed")
    )
    if conditions_of(pod).get("Ready") != "True":
        always = value_at(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if always or 0 < desired <= healthy:
            return  # it is not counted as healthy
    why, retry_after = "", None
    if _number(status, "observedGeneration") < _number(budget["metadata"], "generation"):
        why, retry_after = "is still being processed by the server.", _RETRY_AFTER
    elif allowed <= 0 and healthy <= desired:
        why = f"needs {desired} healthy pods and has {healthy} currently"
    elif allowed <= 0:
        why = "does not allow evicting pods currently"
    if why:
        cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {name} {why}"}
        raise status_error(429, message=_VIOLATED, details={"causes": [cause]}, retry_after=retry_after)
    disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: timestamp(registry.clock)}
    changed = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    registry.update(
        served, namespace, name, lambda current: {**current, "status": changed}, part="status", dry_run=dry_run
    )


def _number(obj: JSONObject, key: str) -> int:
    value = obj.get(key)
    return value if isinstance(value, int) else 0


def _selects(budget: JSONObject, labels: dict[str, str]) -> bool:
    """Return True if a budget selects a pod with these labels.  A budget without a selector selects no pods."""
    selector = value_at(budget, "spec", "selector")
    if not isinstance(selector, dict):
        return False
    try:
        return selector_in(selector).matches(labels)
    except SelectorError:
        return False  # kube-apiserver would not have stored it
