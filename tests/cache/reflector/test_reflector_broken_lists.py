"""How often a server is listed whose lists break inside their responses; beside client-go's figures.

``benchmarks/broken_lists`` has measured these with client-go v0.36.3 and plain lists.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector import QUIET, Sink
from trioformer.cache import ApiListWatch, Reflector
from trioformer.client import open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod


@attrs.define(eq=False)
class Breaking(httpx.AsyncBaseTransport):
    """Sends a part of each list, and breaks the connection after some seconds."""

    after: float
    lists: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.lists += request.url.path.endswith("/pods")
        return httpx.Response(200, content=self._body())

    async def _body(self) -> AsyncIterator[bytes]:
        yield b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":['
        await trio.sleep(self.after)
        raise httpx.ReadError("reset by peer")


@pytest.mark.parametrize(("after", "of_client_go"), [(5.0, 83), (12.0, 72), (55.0, 32)])
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_lists_that_break_are_requested_no_more_often_than_by_client_go(
    after: float, of_client_go: int, seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    server = Breaking(after)
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client:
        with trio.move_on_after(1_800):
            await Reflector(ApiListWatch(client.api(Pod)), Sink(), QUIET, rng=random.Random(seed)).run()
    assert 15 < server.lists <= of_client_go
