"""The cells of Tables of built-in kinds are those that kube-apiserver showed for the same objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.contract.shown_tables import RESULTS, shown_tables, table
from trioformer.testing import APIServer
from trioformer.testing._serving._kind_cells import read_cells
from trioformer.testing._serving._tables import _builtin_columns
from trioformer.testing._storage._release import INSTALLED


async def test_the_cells_are_those_of_kube_apiserver(api_server: APIServer) -> None:
    async with api_server.open_client() as client:
        shown = await shown_tables(client, "default")
    assert shown == json.loads(RESULTS.read_text())


def test_each_cell_has_a_column() -> None:
    shown = {name: {one.definition["name"] for one in columns} for name, columns in _builtin_columns(INSTALLED).items()}
    shown["*"] = set().union(*shown.values())
    assert [
        (name, cell) for name, cells in read_cells(INSTALLED).items() for cell in cells if cell not in shown[name]
    ] == []


@pytest.mark.parametrize(
    ("conditions", "certificate", "shown"),
    [([], "", "Pending"), (["Denied"], "", "Denied"), (["Approved", "Failed"], "YQ==", "Approved,Failed,Issued")],
)
async def test_a_certificate_request_shows_its_state(
    api_server: APIServer, conditions: list[str], certificate: str, shown: str
) -> None:
    status: dict[str, Any] = {"conditions": [{"type": one, "status": "True"} for one in conditions]}
    spec = {"request": "YQ==", "signerName": "example.com/a", "expirationSeconds": 7200, "usages": []}
    api_server.create(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "a"},
            "spec": spec,
            "status": {**status, "certificate": certificate},
        }
    )
    async with api_server.open_client() as client:
        found = await table(client, "/apis/certificates.k8s.io/v1/certificatesigningrequests/a")
    names = [one["name"] for one in found["columnDefinitions"]]
    cells = dict(zip(names, found["rows"][0]["cells"], strict=True))
    assert (cells["SignerName"], cells["RequestedDuration"], cells["Condition"]) == ("example.com/a", "120m", shown)


async def cells_of(api_server: APIServer, path: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Store an object without validation, and return its cells by the name of the column."""
    api_server.create({"metadata": {"name": "a"}, **obj})
    async with api_server.open_client() as client:
        found = await table(client, f"{path}/a")
    names = [one["name"] for one in found["columnDefinitions"]]
    return dict(zip(names, found["rows"][0]["cells"], strict=True))


async def test_an_autoscaler_shows_the_current_and_the_wanted_values(api_server: APIServer) -> None:
    def metric(kind: str, part: str, **values: Any) -> dict[str, Any]:
        name, source = kind[:1].lower() + kind[1:], {"name": "cpu", part: values}
        return {"type": kind, name: source}

    metrics = [metric("Resource", "target", averageUtilization=50), metric("External", "target", value="7")]
    current = [metric("Resource", "current", averageUtilization=20)]
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "metrics": metrics}
    obj = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    cells = await cells_of(api_server, path, {**obj, "status": {"currentMetrics": current}})
    assert cells["Reference"] == "Deployment/web"
    assert cells["Targets"] == "cpu: 20%/50%, <unknown>/7"


async def test_other_kinds_show_what_follows_from_several_fields(api_server: APIServer) -> None:
    addresses = [{"ip": f"192.0.2.{number}"} for number in range(1, 5)]
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "subsets": [{"addresses": addresses}]}
    cells = await cells_of(api_server, "/api/v1/namespaces/default/endpoints", endpoints)
    assert cells["Endpoints"] == "192.0.2.1,192.0.2.2,192.0.2.3 + 1 more..."
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1}
    cells = await cells_of(api_server, "/apis/apps/v1/namespaces/default/controllerrevisions", revision)
    assert (cells["Controller"], cells["Revision"]) == ("<none>", 1)
