"""Record what kube-controller-manager and kwok make of the flows of workloads: ``contract/controller_results.json``.

::

    python -m tests.e2e.record_controllers      # a control plane of the binaries in KUBEBUILDER_ASSETS
"""

from __future__ import annotations

import json
import re
from typing import Any

import trio

from tests.e2e.contract.controller_flows import FLOWS, RESULTS, run_flow
from tests.e2e.workloads import make_namespace
from trioformer import open_client
from trioformer.client import Client
from trioformer.testing import ControlPlane


async def record(client: Client, name: str, results: dict[str, Any]) -> None:
    results[name] = await run_flow(client, await make_namespace(client, "record"), name)


def written(results: dict[str, Any]) -> str:
    """Return the results as JSON with one object in a line."""
    lines = json.dumps(results, ensure_ascii=False, sort_keys=True)
    return re.sub(r'(\{"[a-z]*": \{|\{"addressType)', r"\n\1", lines) + "\n"


async def main() -> None:
    results: dict[str, Any] = {}
    async with (
        ControlPlane(controller_manager=True, nodes=["node-1"]) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
        trio.open_nursery() as nursery,
    ):
        for name in FLOWS:
            nursery.start_soon(record, client, name, results)
    await trio.Path(RESULTS).write_text(written(results), encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
