"""Record what a release of kube-apiserver responds to the contract suite: ``contract/suite_results.json.xz``.

::

    python -m tests.e2e.record_suite DIRECTORY ...      # the directories of the programs of each release
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import trio

from tests.e2e.contract.suite_cases import Run, discover, flows
from tests.e2e.workloads import make_namespace
from trioformer import open_client
from trioformer.testing import ControlPlane

RESULTS = Path(__file__).parent / "contract" / "suite_results.json.xz"


async def record(assets: str) -> tuple[str, dict[str, Any]]:
    async with ControlPlane(assets=assets) as server, open_client(kubeconfig=server.kubeconfig) as client:
        version: Any = (await client.request("GET", "/version")).json()
        discovery = await discover(client)
        answers = {
            flow.kind: await Run(client, await make_namespace(client, "suite")).run(flow) for flow in flows(discovery)
        }
        return f"{version['major']}.{version['minor']}", {"discovery": discovery, "answers": answers}


async def main() -> None:
    results = dict([await record(assets) for assets in sys.argv[1:]])
    text = json.dumps(results, ensure_ascii=False, indent=0, sort_keys=True)
    await trio.Path(RESULTS).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    trio.run(main)
