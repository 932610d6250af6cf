"""Take the lists of built-in kinds from a real kube-apiserver: ``trioformer/testing/_serving/discovery.txt``.

::

    python -m tests.e2e.fetch_discovery     # a control plane of the binaries in KUBEBUILDER_ASSETS

Each line has a path and its document.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import trio

import trioformer
from trioformer import open_client
from trioformer.client import Client
from trioformer.testing import ControlPlane

FILE: Final = Path(trioformer.__file__).parent / "testing" / "_serving" / "discovery.txt"


async def fetch(client: Client) -> dict[str, Any]:
    """Return the groups, and the resources of each version, by path."""
    groups = (await client.request("GET", "/apis")).json()
    versions = [version["groupVersion"] for group in groups["groups"] for version in group["versions"]]
    paths = ["api/v1", *(f"apis/{version}" for version in versions)]
    return {"apis": groups, **{path: (await client.request("GET", f"/{path}")).json() for path in paths}}


async def main() -> None:
    async with (
        ControlPlane(assets=os.environ.get("KUBEBUILDER_ASSETS")) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
    ):
        documents = await fetch(client)
    lines = [f"{path} {json.dumps(one, separators=(',', ':'))}\n" for path, one in documents.items()]
    await trio.Path(FILE).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
