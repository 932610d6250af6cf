"""Asyncio programs with an embedded server, which runs in the guest of their loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio

from trioformer import aio
from trioformer.aio import _guest
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

T = TypeVar("T")


def server_with(*names: str) -> APIServer:
    """A server with ConfigMaps in the namespace default."""
    server = APIServer()
    for name in names:
        server.create(config_map(name))
    return server


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


@asynccontextmanager
async def client_of(server: APIServer) -> AsyncIterator[aio.Client]:
    """Run the server in the guest of the running loop, and open a client of it."""
    async with _guest.guest_of_loop() as guest:
        job, ended = guest.start(server.run)
        try:
            async with aio.open_client(server.config, http_transport=server.http_transport()) as client:
                yield client
        finally:
            job.cancel()
            await _guest.finish(ended)


def run(
    function: Callable[[], Coroutine[Any, Any, T]],
    *,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> T:
    """Run an asyncio program, and check that nothing remains of its doors, neither trio nor tasks."""

    async def main() -> T:
        async with asyncio.timeout(30):  # instead of a test that hangs
            result = await function()
        check_nothing_remains()
        return result

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


def check_nothing_remains() -> None:
    """Check that no guest and no other task of the running loop remain."""
    assert _guest._thread.guest is None
    assert not trio.lowlevel.in_trio_run()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def open_files() -> int:
    """Return the number of open files and sockets of this process."""
    return len(os.listdir("/proc/self/fd"))


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true, which tasks of trio or of the host cause."""
    while not condition():  # noqa: ASYNC110  # nothing says when
        await asyncio.sleep(0.001)
