"""Take the version and the lists of built-in kinds from a real kube-apiserver: the table ``discovery.txt``.

::

    python -m tests.e2e.fetch_discovery [DIRECTORY]     # a control plane of the binaries in KUBEBUILDER_ASSETS

Each line has a path and its document.
"""

from __future__ import annotations

import os
from typing import Any, Final

import trio

from tests.e2e.tables import directory, lines_of
from trioformer import open_client
from trioformer.client import Client
from trioformer.testing import ControlPlane

BUILD: Final = {
    **dict.fromkeys(("gitCommit", "gitTreeState", "goVersion", "compiler"), ""),
    "buildDate": "1970-01-01T00:00:00Z",
    "platform": "linux/amd64",
}
"""The fields of the version that depend on how the server was built."""


async def fetch(client: Client) -> dict[str, Any]:
    """Return the version, marked as trioformer, the groups, and the resources of each version, by path."""
    version = (await client.request("GET", "/version")).json()
    version |= BUILD | {"gitVersion": f"{version['gitVersion'].partition('+')[0]}+trioformer"}
    groups = (await client.request("GET", "/apis")).json()
    served = [group for group in groups["groups"] if not group["name"].endswith(".example.com")]  # not those of tests
    versions = [version["groupVersion"] for group in served for version in group["versions"]]
    paths = ["api/v1", *(f"apis/{version}" for version in versions)]
    listed = {path: (await client.request("GET", f"/{path}")).json() for path in paths}
    return {"version": version, "apis": groups, **listed}


async def main() -> None:
    async with (
        ControlPlane(assets=os.environ.get("KUBEBUILDER_ASSETS")) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
    ):
        documents = await fetch(client)
    del documents["apis"]  # follows from the paths
    await trio.Path(directory() / "discovery.txt").write_text(lines_of(documents), encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
