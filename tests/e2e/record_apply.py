"""Record what kube-apiserver responds to the cases of server-side apply: ``contract/apply_results.json``.

::

    python -m tests.e2e.record_apply                        # a control plane of the binaries in KUBEBUILDER_ASSETS
    python -m tests.e2e.record_apply --kubeconfig FILE      # a server that runs already
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import trio

from tests.e2e.contract.apply_cases import CASES, RESULTS, run_case
from tests.e2e.workloads import make_namespace
from trioformer import open_client
from trioformer.testing import ControlPlane


async def record(kubeconfig: Path) -> str:
    parts = []
    async with open_client(kubeconfig=kubeconfig) as client:
        for name in CASES:
            results = await run_case(client, await make_namespace(client, "record"), name)
            lines = ",\n".join(json.dumps(result, ensure_ascii=False) for result in results)
            parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, help="of a running API server; default: start one")
    parser.add_argument("--assets", type=Path, default=os.environ.get("KUBEBUILDER_ASSETS"), help="its programs")
    arguments = parser.parse_args()
    if arguments.kubeconfig is not None:
        results = await record(arguments.kubeconfig)
    else:
        async with ControlPlane(assets=arguments.assets) as control_plane:
            results = await record(control_plane.kubeconfig)
    await trio.Path(RESULTS).write_text(results, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
