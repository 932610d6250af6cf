"""The cells of Tables of built-in kinds are those that kube-apiserver showed for the same objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.contract.shown_tables import RESULTS, shown_tables, table
from trioformer.testing import APIServer


async def test_the_cells_are_those_of_kube_apiserver(api_server: APIServer) -> None:
    async with api_server.open_client() as client:
        shown = await shown_tables(client, "default")
    assert shown == json.loads(RESULTS.read_text())


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
