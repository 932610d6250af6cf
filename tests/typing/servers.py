"""The types of the embedded server, checked by mypy and pyright; never executed."""

from __future__ import annotations

from typing import assert_type

from trioformer.testing import APIServer
from trioformer.testing._state import APIServerSnapshot
from trioformer.webhooks import Webhooks


async def check_webhooks(server: APIServer) -> None:
    assert_type(await server.install_webhooks(Webhooks(), service="a", namespace="b"), None)
    await server.install_webhooks(server.asgi_app)


def check_snapshot(server: APIServer) -> None:
    snapshot = server.snapshot()
    assert_type(snapshot, APIServerSnapshot)
    assert_type(snapshot.revision, int)
