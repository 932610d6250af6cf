"""Workloads: the controllers make of each flow what kube-controller-manager made of it when it was recorded."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.e2e.contract.controller_flows import FLOWS, RESULTS, run_flow
from tests.e2e.workloads import make_namespace
from trioformer.client import Client

RECORDED: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FLOWS)
def test_each_step_of_a_flow_is_as_recorded(
    run_in_cluster: Callable[[Callable[[Client], Awaitable[Any]]], Any], name: str
) -> None:
    async def run(client: Client) -> Any:
        return await run_flow(client, await make_namespace(client, "flow"), name)

    assert run_in_cluster(run) == RECORDED[name]
