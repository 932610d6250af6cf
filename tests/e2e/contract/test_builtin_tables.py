"""The Tables of built-in kinds on an embedded and a real server."""

from __future__ import annotations

import json

from tests.e2e.contract.shown_tables import RESULTS, shown_tables, table
from trioformer.client import Client


async def test_the_columns_of_all_kinds_are_equal(both_clients: tuple[Client, Client]) -> None:
    embedded, real = both_clients
    for info in (await embedded.api_resources()).resources:
        is_served = info.plural != "componentstatuses" and "AdmissionPolicy" not in info.kind
        if "list" in info.verbs and is_served:
            expected = (await table(real, info.path()))["columnDefinitions"]
            assert (await table(embedded, info.path()))["columnDefinitions"] == expected, info


async def test_the_recorded_cells_are_those_of_a_server(server_client: Client, namespace: str) -> None:
    shown = await shown_tables(server_client, namespace)
    assert shown == json.loads(RESULTS.read_text())
