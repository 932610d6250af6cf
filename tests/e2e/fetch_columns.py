"""Take the columns of Tables from a real kube-apiserver: the table ``columns.txt``.

::

    python -m tests.e2e.fetch_columns [DIRECTORY]     # a control plane of the binaries in KUBEBUILDER_ASSETS

Each line has a resource and the definitions of its columns.  The line without a resource is for kinds with only a name
and an age.
"""

from __future__ import annotations

import os
from typing import Any, Final

import trio

from tests.e2e.tables import directory, lines_of
from trioformer import open_client
from trioformer.client import Client
from trioformer.testing import ControlPlane

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"

CONTROLLERS: Final = "/api/v1/namespaces/default/replicationcontrollers"
CONTROLLER: Final = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"app": "web"},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
    },
}


async def fetch(client: Client) -> dict[str, Any]:
    """Return the definitions by resource."""
    columns: dict[str, Any] = {}
    for info in (await client.api_resources()).resources:
        if "list" in info.verbs:
            table = (await client.request("GET", info.path(), accept=TABLE)).json()
            name = f"{info.plural}.{info.group}" if info.group else info.plural
            definitions = table["columnDefinitions"]
            columns["" if [one["name"] for one in definitions] == ["Name", "Age"] else name] = definitions
    await client.request("POST", CONTROLLERS, body=CONTROLLER)
    scale = await client.request("GET", f"{CONTROLLERS}/web/scale", accept=TABLE)
    columns["scale.autoscaling"] = scale.json()["columnDefinitions"]
    return columns


async def main() -> None:
    async with (
        ControlPlane(assets=os.environ.get("KUBEBUILDER_ASSETS")) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
    ):
        columns = await fetch(client)
    text = lines_of(dict(sorted(columns.items())))
    await trio.Path(directory() / "columns.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
