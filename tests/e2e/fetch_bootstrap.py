"""Take the objects of a new cluster from a real kube-apiserver: the tables in ``bootstrap``.

::

    python -m tests.e2e.fetch_bootstrap [DIRECTORY]     # a control plane of the binaries in KUBEBUILDER_ASSETS

Each kind has a file, in which each line has the key of an object and the object.  The embedded server replaces
``<revision>`` and ``<time>``.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

import trio

from tests.e2e.tables import directory
from trioformer import open_client
from trioformer.client import Client
from trioformer.testing import ControlPlane

PATHS = {
    "services": "/api/v1/services",
    "endpoints": "/api/v1/endpoints",
    "endpointslices.discovery.k8s.io": "/apis/discovery.k8s.io/v1/endpointslices",
    "priorityclasses.scheduling.k8s.io": "/apis/scheduling.k8s.io/v1/priorityclasses",
    **{
        f"{name}.rbac.authorization.k8s.io": f"/apis/rbac.authorization.k8s.io/v1/{name}"
        for name in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    },
    **{
        f"{name}.flowcontrol.apiserver.k8s.io": f"/apis/flowcontrol.apiserver.k8s.io/v1/{name}"
        for name in ("flowschemas", "prioritylevelconfigurations")
    },
    **{f"{name}.networking.k8s.io": f"/apis/networking.k8s.io/v1/{name}" for name in ("ipaddresses", "servicecidrs")},
}
LAST = "endpointslices.discovery.k8s.io"
"""The kind whose object kube-apiserver creates last."""
ADDRESS, PORT = "192.0.2.1", 6443
"""An address of the API server in the documentation's network, where no one listens."""


def line(resource: str, obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    key = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    metadata.pop("managedFields", None)
    metadata["uid"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{resource}/{key}"))
    metadata["resourceVersion"], metadata["creationTimestamp"] = "<revision>", "<time>"
    if "generation" in metadata:
        metadata["generation"] = 1
    for condition in obj.get("status", {}).get("conditions", ()):
        condition["lastTransitionTime"] = "<time>"
    for subset in obj.get("subsets", ()):
        subset["addresses"], subset["ports"][0]["port"] = [{"ip": ADDRESS}], PORT
    for endpoint in obj.get("endpoints", ()):
        endpoint["addresses"], obj["ports"][0]["port"] = [ADDRESS], PORT
    for port in obj.get("spec", {}).get("ports", ()) if resource == "services" else ():
        port["targetPort"] = PORT
    rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
    return f"{key} {json.dumps({'metadata': metadata, **rest}, separators=(',', ':'), ensure_ascii=False)}\n"


async def fetch(client: Client) -> dict[str, str]:
    """Return the lines of each kind, when the objects exist that kube-apiserver creates after it is ready."""
    while not await items(client, PATHS[LAST]):  # noqa: ASYNC110  # the state of a server
        await trio.sleep(0.1)
    return {
        resource: "".join(sorted(line(resource, obj) for obj in await items(client, path)))
        for resource, path in PATHS.items()
    }


async def items(client: Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await client.request("GET", path)).body)["items"]
    return found


async def main() -> None:
    folder = trio.Path(directory() / "bootstrap")
    await folder.mkdir(exist_ok=True)
    # kube-apiserver publishes no endpoints for a loopback address.
    flags = [
        f"--advertise-address={ADDRESS}",
        "--endpoint-reconciler-type=master-count",
        "--service-cluster-ip-range=10.0.0.0/16",  # as in the embedded server
    ]
    async with (
        ControlPlane(assets=os.environ.get("KUBEBUILDER_ASSETS"), api_server_flags=flags) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
    ):
        for resource, text in (await fetch(client)).items():
            await (folder / f"{resource}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
