"""Take the OpenAPI documents from a real kube-apiserver: the tables ``openapi.xz`` and ``openapi_v2.xz``.

::

    python -m tests.e2e.fetch_openapi [DIRECTORY]     # a control plane of the binaries in KUBEBUILDER_ASSETS

Each line of ``openapi.xz`` has a path and its document.  ``openapi_v2.xz`` is the document of OpenAPI v2 in protobuf.
The documents of two custom kinds, one with and one without a namespace, are
the examples from which the embedded server makes those of other custom kinds.
"""

from __future__ import annotations

import lzma
import os
from typing import Any, Final

import trio

from tests.e2e.tables import directory, lines_of
from trioformer import open_client
from trioformer.client import Client
from trioformer.testing import ControlPlane

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
VERSION: Final = "v7"
"""A version that no built-in kind has."""
GROUPS: Final = {"namespaced.example.com": "Namespaced", "cluster.example.com": "Cluster"}


def definition(group: str, scope: str) -> dict[str, Any]:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": scale},
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"kind": "Gadget", "plural": "gadgets"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


async def fetch(client: Client) -> dict[str, Any]:
    """Return the documents by path, those of OpenAPI v3 and ``v2``."""
    for group, scope in GROUPS.items():
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await client.request("POST", path, body=definition(group, scope))
    while True:
        paths = (await client.request("GET", "/openapi/v3")).json()["paths"]
        if all(f"apis/{group}/{VERSION}" in paths for group in GROUPS):
            break
        await trio.sleep(0.5)  # kube-apiserver does not say when it has updated its documents
    documents = {
        path: (await client.request("GET", f"/openapi/v3/{path}")).json()
        for path in sorted(paths)
        if not (path.startswith("apis/") and path.endswith(".example.com"))
    }
    v2 = (await client.request("GET", "/openapi/v2")).json()
    for name in ("paths", "definitions"):
        v2[name] = {key: value for key, value in v2[name].items() if "example" not in key}
    return {**documents, "v2": v2}


async def main() -> None:
    async with (
        ControlPlane(assets=os.environ.get("KUBEBUILDER_ASSETS")) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
    ):
        older = (await client.request("GET", "/openapi/v2", accept=PROTOBUF)).body
        documents = await fetch(client)
    content = lzma.compress(lines_of(documents).encode(), preset=9)
    await trio.Path(directory() / "openapi.xz").write_bytes(content)
    await trio.Path(directory() / "openapi_v2.xz").write_bytes(lzma.compress(older, preset=9))
    print(f"{len(documents)} documents, {len(content)} bytes")


if __name__ == "__main__":
    trio.run(main)
