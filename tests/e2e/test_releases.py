"""An embedded server follows the release whose tables it has."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

import trio

from tests.e2e import fetch_columns, fetch_discovery, fetch_openapi
from tests.e2e.contract.shown_tables import table
from tests.e2e.tables import lines_of
from trioformer import open_client
from trioformer.testing import APIServer, ControlPlane
from trioformer.testing._storage._release import INSTALLED


async def test_a_server_with_the_tables_of_a_release_serves_its_documents(assets: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(INSTALLED.directory, tmp_path / "tables"))
    async with (
        ControlPlane(assets=assets) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as real,
        trio.open_nursery() as nursery,
    ):
        discovery = await fetch_discovery.fetch(real)
        columns = await fetch_columns.fetch(real)
        openapi = await fetch_openapi.fetch(real)  # last, because it creates custom kinds
        listed = {path: document for path, document in discovery.items() if path != "apis"}
        (directory / "discovery.txt").write_text(lines_of(listed))
        (directory / "columns.txt").write_text(lines_of(columns))
        (directory / "openapi.xz").write_bytes(lzma.compress(lines_of(openapi).encode(), preset=0))
        server = APIServer(tables=directory)
        await nursery.start(server.run)
        async with server.open_client() as embedded:
            assert await fetch_discovery.fetch(embedded) == discovery
            paths = (await embedded.request("GET", "/openapi/v3")).json()["paths"]
            assert paths.keys() == {path for path in openapi if path != "v2" and ".example.com/" not in path}
            for path in paths:
                assert (await embedded.request("GET", f"/openapi/v3/{path}")).json() == openapi[path]
            compared = 0
            for info in (await real.api_resources()).resources:
                if "list" in info.verbs and server._kinds.find(info.group, info.version, info.plural):
                    shown = await table(embedded, info.path())
                    assert shown["columnDefinitions"] == (await table(real, info.path()))["columnDefinitions"], info
                    compared += 1
            assert compared > 50
        nursery.cancel_scope.cancel()
