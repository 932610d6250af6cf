"""Disruption budgets that an eviction asks; e2e/contract/test_pod_subresources.py has what kube-apiserver says, too."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from trioformer.client import Client
from trioformer.errors import StatusError, TooManyRequestsError
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

SELECTOR = {"matchLabels": {"app": "web"}}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def create(api_server: APIServer, *budgets: dict[str, Any], status: dict[str, Any] = READY) -> None:
    metadata = {"name": "web-0", "namespace": "default", "labels": {"app": "web"}}
    api_server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})
    for number, budget in enumerate(budgets):
        metadata = {"name": f"b{number}", "namespace": "default"}
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        api_server.create({**kind, "metadata": metadata, **budget})


@pytest.mark.parametrize(
    ("selector", "status"),
    [
        (None, READY),
        ({"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}, READY),
        ({"matchLabels": {"app": "other"}}, READY),
    ],
)
async def test_a_budget_for_other_pods_is_not_asked(
    api_server: APIServer, client: Client, selector: dict[str, Any] | None, status: dict[str, Any]
) -> None:
    create(api_server, {"spec": {"selector": selector} if selector else {}}, status=status)
    await client.api(Pod, "default").evict("web-0")
    assert api_server.list(Pod) == []


async def test_two_budgets_for_one_pod_are_an_error(api_server: APIServer, client: Client) -> None:
    create(api_server, {"spec": {"selector": SELECTOR}}, {"spec": {"selector": SELECTOR}})
    with pytest.raises(StatusError, match="more than one PodDisruptionBudget"):
        await client.api(Pod, "default").evict("web-0")


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, "is still being processed by the server"),
        ({"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1}, "needs 1 healthy pods and has 1"),
        ({"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 2}, "does not allow evicting pods currently"),
    ],
)
async def test_a_budget_that_does_not_allow_it_says_why(
    autojump_clock: MockClock, api_server: APIServer, client: Client, status: dict[str, Any], why: str
) -> None:
    create(api_server, {"spec": {"selector": SELECTOR}, "status": status})
    with pytest.raises(TooManyRequestsError) as caught:
        await client.api(Pod, "default").evict("web-0")
    assert why in str(caught.value.details)
    assert len(api_server.list(Pod)) == 1
