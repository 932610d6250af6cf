"""The Tables of some objects of built-in kinds, for the tests of Tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from trioformer.client import Client

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
OBJECTS: Final = list(yaml.safe_load_all(Path(__file__).with_name("table_objects.yaml").read_text()))
RESULTS: Final = Path(__file__).with_name("table_results.json")
"""What kube-apiserver showed."""
OMITTED: Final = ("Age", "Created At", "Duration", "Last Seen", "First Seen", "Cluster-IP")
"""The columns with times and with addresses that differ between clusters."""


async def table(client: Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.request("GET", path, accept=TABLE)).json()
    return found


async def shown_tables(client: Client, namespace: str) -> dict[str, list[list[Any]]]:
    """Create the objects, and return the name and cell of each column.  Objects without a namespace are deleted."""
    shown: dict[str, list[list[Any]]] = {}
    resources = {(one.api_version, one.kind): one for one in (await client.api_resources()).resources}
    for given in OBJECTS:
        obj = dict(given)
        info = resources[obj["apiVersion"], obj["kind"]]
        where = namespace if info.namespaced else None
        if info.kind == "Event":
            obj["involvedObject"] = {**obj["involvedObject"], "namespace": namespace}
        status = obj.pop("status", None)
        await client.request("POST", info.path(namespace=where), body=obj)
        path = info.path(namespace=where, name=obj["metadata"]["name"])
        if status is not None:
            patch = {"body": {"status": status}, "content_type": "application/merge-patch+json"}
            await client.request("PATCH", f"{path}/status", **patch)
        found = await table(client, path)
        names = [one["name"] for one in found["columnDefinitions"]]
        if where is None:
            await client.request("DELETE", path)
        pairs = zip(names, found["rows"][0]["cells"], strict=True)
        shown[f"{obj['kind']} {obj['metadata']['name']}"] = [[*pair] for pair in pairs if pair[0] not in OMITTED]
    return shown
