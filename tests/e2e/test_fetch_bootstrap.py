"""The tables of a new cluster's objects are complete."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from tests.e2e import fetch_bootstrap
from trioformer.testing import APIServer

KINDS = ("services", "endpoints", "endpointslices")
"""Those whose objects kube-apiserver creates, in this order, after it is ready."""


async def test_the_objects_that_a_ready_server_still_creates_are_fetched(autojump_clock: MockClock) -> None:
    server = APIServer()
    objects: dict[str, Any] = {kind: server.get(kind, "kubernetes", namespace="default") for kind in KINDS}
    for kind in KINDS:
        server.delete(kind, "kubernetes", namespace="default")

    async def create() -> None:
        for obj in objects.values():
            await trio.sleep(1)
            metadata = {name: obj["metadata"][name] for name in ("name", "namespace", "labels")}
            server.create({**obj, "metadata": metadata})

    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            nursery.start_soon(create)
            tables = await fetch_bootstrap.fetch(client)
        nursery.cancel_scope.cancel()
    for table in ("services", "endpoints", fetch_bootstrap.LAST):
        assert tables[table].startswith("default/kubernetes {"), table
