"""Server-side apply and managedFields: both servers respond to each case as kube-apiserver did when it was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.contract.apply_cases import CASES, RESULTS, run_case
from trioformer.client import Client

RECORDED: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
async def test_each_step_of_a_case_is_as_recorded(server_client: Client, namespace: str, case: str) -> None:
    assert await run_case(server_client, namespace, case) == RECORDED[case]
