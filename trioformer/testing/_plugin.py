"""Fixtures for pytest-trio: an embedded API server that runs for the duration of a test, and its client.

pytest loads this plugin through its entry point in every environment that has trioformer installed, so it imports
nothing of trioformer until a fixture is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import trio

    from ..client import Client
    from ._server import APIServer


@pytest.fixture
async def api_server(nursery: trio.Nursery) -> APIServer:
    """An empty :class:`~trioformer.testing.APIServer` that runs until the test ends; its errors fail the test."""
    from ._server import APIServer  # noqa: PLC0415  # only when the fixture is used

    server = APIServer()
    await nursery.start(server.run)
    return server


@pytest.fixture
async def client(api_server: APIServer) -> AsyncIterator[Client]:
    """A client of ``api_server``, closed when the test ends."""
    async with api_server.open_client() as opened:
        yield opened
