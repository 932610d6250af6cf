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
def _trioformer_trio_test(request: pytest.FixtureRequest) -> None:
    """Say what is missing to run a test on trio; without it there is "fixture 'nursery' not found", and the like."""
    if not request.config.pluginmanager.has_plugin("trio"):
        pytest.fail(
            "the fixtures of trioformer need pytest-trio; install it with `pip install 'trioformer[testing]'`",
            pytrace=False,
        )
    if request.node.get_closest_marker("trio") is None:
        pytest.fail(
            "the fixtures of trioformer are for async tests that pytest-trio runs: set trio_mode = true in pytest's "
            "configuration, or mark this test with @pytest.mark.trio",
            pytrace=False,
        )


@pytest.fixture
async def api_server(request: pytest.FixtureRequest, _trioformer_trio_test: None, nursery: trio.Nursery) -> APIServer:
    """An empty :class:`~trioformer.testing.APIServer` that runs until the test ends; its errors fail the test."""
    from trio.lowlevel import current_clock  # noqa: PLC0415  # only when the fixture is used
    from trio.testing import MockClock  # noqa: PLC0415

    from ._server import APIServer  # noqa: PLC0415

    clocks = {"autojump_clock", "mock_clock"}.intersection(request.fixturenames)
    if clocks and not isinstance(current_clock(), MockClock):  # the test would wait in real time
        pytest.fail(
            f"{clocks.pop()} has no effect: pytest-trio uses a clock that is an argument of the test function itself",
            pytrace=False,
        )
    server = APIServer()
    await nursery.start(server.run)
    return server


@pytest.fixture
async def k8s_client(api_server: APIServer) -> AsyncIterator[Client]:
    """A client of ``api_server``, closed when the test ends."""
    async with api_server.open_client() as opened:
        yield opened


@pytest.fixture
async def client(k8s_client: Client) -> Client:
    """The same as ``k8s_client``, under the name that it had; it is removed before the first release."""
    return k8s_client
