from __future__ import annotations

import pytest

from tests.testing.controllers.workloads import pods, status, workload
from trioformer.testing import APIServer


def budget(**spec: object) -> dict[str, object]:
    given = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": given}


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 1}, 1, 3),
        ({"minAvailable": "60%"}, 3, 1),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "30%"}, 2, 2),
        ({"minAvailable": 9}, 9, 0),
    ],
)
def test_a_budget_counts_its_pods(spec: dict[str, object], desired: int, allowed: int) -> None:
    server = APIServer(controllers=True)
    server.create(workload("Deployment", "web", replicas=4))
    server.create(budget(**spec))
    found = status(server, "poddisruptionbudgets", "b")
    counted = [found[key] for key in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")]
    assert counted == [4, desired, allowed, 4]
    assert found["conditions"][0]["reason"] == ("SufficientPods" if allowed else "InsufficientPods")


def test_a_budget_follows_its_pods() -> None:
    server = APIServer(controllers=True)
    server.create(budget(maxUnavailable=1))
    assert status(server, "poddisruptionbudgets", "b")["disruptionsAllowed"] == 0
    server.create(workload("Deployment", "web", replicas=2))
    assert status(server, "poddisruptionbudgets", "b")["disruptionsAllowed"] == 1
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    server.patch("pods", pods(server)[0]["metadata"]["name"], {"status": unready})
    assert status(server, "poddisruptionbudgets", "b")["disruptionsAllowed"] == 0
