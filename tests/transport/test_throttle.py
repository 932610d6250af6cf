"""Requests that wait for their turn: ``qps`` and ``burst``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from trioformer import Client, open_client
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer


async def send(client: Client, times: list[float]) -> None:
    await client.version()
    times.append(trio.current_time())


async def sent_at_once(client: Client, number: int) -> list[float]:
    """Send so many requests at once; returns how long each took."""
    begin = trio.current_time()
    times: list[float] = []
    async with trio.open_nursery() as nursery:
        for _ in range(number):
            nursery.start_soon(send, client, times)
    return [round(time - begin, 6) for time in times]


async def test_without_a_limit_no_request_waits(autojump_clock: trio.testing.MockClock, client: Client) -> None:
    assert await sent_at_once(client, 200) == [0] * 200


async def test_after_the_burst_requests_come_at_their_rate(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with open_client(api_server.config, http_transport=api_server.http_transport(), qps=4, burst=3) as client:
        assert await sent_at_once(client, 6) == [0, 0, 0, 0.25, 0.5, 0.75]
        await trio.sleep(0.5)  # two tokens
        assert await sent_at_once(client, 3) == [0, 0, 0.25]
        await trio.sleep(1_000)  # three: the bucket holds no more
        assert await sent_at_once(client, 5) == [0, 0, 0, 0.25, 0.5]


async def test_client_gos_burst_is_ten(autojump_clock: trio.testing.MockClock, api_server: APIServer) -> None:
    async with open_client(api_server.config, http_transport=api_server.http_transport(), qps=5) as client:
        assert await sent_at_once(client, 12) == [*[0] * 10, 0.2, 0.4]


async def test_lists_wait_and_watches_do_not(autojump_clock: trio.testing.MockClock, api_server: APIServer) -> None:
    async with open_client(api_server.config, http_transport=api_server.http_transport(), qps=0.1, burst=1) as client:
        pods = client.api(Pod)
        listed = await pods.list()
        for _ in range(5):
            async with pods.watch(resource_version=listed.resource_version):
                pass
        assert trio.current_time() == 0
        await pods.list()
        assert trio.current_time() == 10


async def test_a_cancelled_request_takes_no_token_and_the_next_one_has_its_place(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with open_client(api_server.config, http_transport=api_server.http_transport(), qps=1, burst=1) as client:
        await client.version()
        times: list[float] = []
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope(deadline=trio.current_time() + 0.5)
            nursery.start_soon(partial(cancelled_send, client, times, scope))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(send, client, times)
        assert times == [1]


async def cancelled_send(client: Client, times: list[float], scope: trio.CancelScope) -> None:
    with scope:
        await send(client, times)


async def test_the_wait_is_over_in_the_order_of_coming(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with open_client(api_server.config, http_transport=api_server.http_transport(), qps=1, burst=1) as client:
        done: list[int] = []

        async def numbered(number: int) -> None:
            await client.version()
            done.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(numbered, number)
                await trio.testing.wait_all_tasks_blocked()
        assert done == [0, 1, 2, 3, 4]
        assert trio.current_time() == 4


@pytest.mark.parametrize(
    "limit", [{"qps": 0}, {"qps": -1}, {"qps": math.inf}, {"qps": math.nan}, {"qps": 1, "burst": 0}]
)
async def test_a_limit_that_lets_nothing_or_everything_through_is_refused(api_server: APIServer, limit: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        async with open_client(api_server.config, http_transport=api_server.http_transport(), **limit):
            pass
