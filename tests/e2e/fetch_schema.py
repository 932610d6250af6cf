"""Take the schema of the models from a real kube-apiserver: ``trioformer/models/_schema.json``.

::

    python tests/e2e/fetch_schema.py                        # a control plane of the binaries in KUBEBUILDER_ASSETS
    python tests/e2e/fetch_schema.py --kubeconfig FILE      # a running server with all beta versions, and no CRDs

After it, ``python -m trioformer.models._generate write`` writes the modules.
It stands here and not beside the generator because it needs the transport, which stands above the models.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import trio

import trioformer.models
from trioformer.kubeconfig import load_config
from trioformer.models._generate import reduce
from trioformer.models._internal import decode
from trioformer.testing import ControlPlane
from trioformer.transport._internal import Transport, open_transport

# Beta versions are served only on request, and a few of them only if their features are enabled.
BETA = ("--runtime-config=api/beta=true", "--feature-gates=AllBeta=true")
SCHEMA = Path(trioformer.models.__file__).with_name("_schema.json")
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def get(transport: Transport, path: str, accept: str = "application/json") -> Any:
    response = await transport.request("GET", path, accept=accept)
    if response.code != 200:
        raise SystemExit(f"error: GET {path} gave {response.code}: {response.body[:200]!r}")
    return decode(response.body)


async def fetch(kubeconfig: Path) -> str:
    async with open_transport(load_config(kubeconfig=kubeconfig)) as transport:
        discovery = [await get(transport, path, DISCOVERY) for path in ("/api", "/apis")]
        paths = (await get(transport, "/openapi/v3"))["paths"]
        served = {
            f"apis/{group['metadata']['name']}/{version['version']}" if group["metadata"] else "api/v1"
            for document in discovery
            for group in document["items"]
            for version in group["versions"]
        }
        openapi = [await get(transport, f"/openapi/v3/{path}") for path in sorted(served & paths.keys())]
    return reduce(openapi, discovery).dumps()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, help="of a running API server; default: start one")
    parser.add_argument("--assets", type=Path, default=os.environ.get("KUBEBUILDER_ASSETS"), help="its programs")
    arguments = parser.parse_args()
    if arguments.kubeconfig is not None:
        schema = await fetch(arguments.kubeconfig)
    else:
        async with ControlPlane(assets=arguments.assets, api_server_flags=BETA) as control_plane:
            schema = await fetch(control_plane.kubeconfig)
    await trio.Path(SCHEMA).write_text(schema, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
