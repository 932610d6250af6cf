"""The cells of Tables of built-in kinds are those that kube-apiserver showed for the same objects."""

from __future__ import annotations

import json

from tests.e2e.contract.shown_tables import RESULTS, shown_tables
from trioformer.testing import APIServer


async def test_the_cells_are_those_of_kube_apiserver(api_server: APIServer) -> None:
    async with api_server.open_client() as client:
        shown = await shown_tables(client, "default")
    assert shown == json.loads(RESULTS.read_text())
