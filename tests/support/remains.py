"""What an operation leaves behind that was cancelled: tasks, file descriptors, suspended generators."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
import trio

from tests.support.scripted_http import AtStep
from trioformer.client import Client, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.testing import APIServer, serve_http

Where: TypeAlias = Literal["memory", "socket"]
OPEN_FILES = Path("/proc/self/fd")
_PATIENCE = 30
"""Seconds, of a real clock, in which the tasks of a server must have ended."""


def open_files() -> dict[str, str]:
    """Return the file descriptors of this process, with what they are."""
    found = {}
    for name in os.listdir(OPEN_FILES):
        try:
            found[name] = str((OPEN_FILES / name).readlink())
        except FileNotFoundError:  # that of the directory itself
            continue
    return found


@attrs.define(eq=False)
class _Ends(trio.abc.Instrument):
    """Notices when only so many tasks are left."""

    most: int
    event: trio.Event = attrs.field(factory=trio.Event)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        if trio.lowlevel.current_statistics().tasks_living <= self.most:
            self.event.set()


async def wait_for_tasks_to_end(most: int) -> None:
    """Wait until only so many tasks live."""
    instrument = _Ends(most)
    trio.lowlevel.add_instrument(instrument)
    try:
        if trio.lowlevel.current_statistics().tasks_living > most:
            with trio.fail_after(_PATIENCE):
                await instrument.event.wait()
    finally:
        trio.lowlevel.remove_instrument(instrument)


@asynccontextmanager
async def serving(where: Where, server: APIServer) -> AsyncIterator[Callable[[], AbstractAsyncContextManager[Client]]]:
    """Serve the embedded server, which runs, to clients in memory or on sockets; yields what opens these."""
    if where == "memory":
        yield server.open_client
        return
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        yield lambda: open_client(ClusterConfig(server=url))
        nursery.cancel_scope.cancel()


async def cancel_at_each_step(
    operation: Callable[[], Awaitable[object]], *, after_each: Callable[[], object] = lambda: None
) -> int:
    """Cancel an operation before each step of a task in turn, until it ends first; nothing may be left.

    Args:
        operation: What is cancelled; it closes all that it opens.
        after_each: Called when the tasks have ended.

    Returns:
        The number of steps.
    """
    tasks = trio.lowlevel.current_statistics().tasks_living
    await operation()  # what is made once, such as a plan for decoding a type
    await wait_for_tasks_to_end(tasks)
    files = open_files()
    after_each()
    for step in itertools.count(1):
        with trio.CancelScope() as scope, AtStep(step, scope.cancel):
            await operation()
        await wait_for_tasks_to_end(tasks)
        assert open_files() == files, f"left after {step} steps"
        after_each()
        if not scope.cancel_called:
            return step
    raise AssertionError
