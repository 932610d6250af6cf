"""Runs commands of the tool on an embedded server."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

import attrs
import httpx
import trio

from trioformer import Client, open_client
from trioformer.cli._main import run_command
from trioformer.testing import APIServer


def opener_of(transport: httpx.AsyncBaseTransport) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """Return what opens clients with a transport."""
    return partial(open_client, http_transport=transport)


@attrs.frozen
class Result:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str


async def run(server: APIServer, *arguments: str, environ: Mapping[str, str] | None = None) -> Result:
    """Run a command on a server in memory."""
    out, err = io.StringIO(), io.StringIO()
    given = ["--server", server.config.server, *arguments]
    code = await run_command(given, out, err, environ or {}, opener_of(server.http_transport()))
    return Result(code, out.getvalue(), err.getvalue())


async def run_alone(*arguments: str, environ: Mapping[str, str] | None = None) -> Result:
    """Run a command that needs no server."""
    out, err = io.StringIO(), io.StringIO()
    code = await run_command(list(arguments), out, err, environ or {})
    return Result(code, out.getvalue(), err.getvalue())


class Output(io.StringIO):
    """An output of a command that runs in the background."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = trio.Event()

    def write(self, text: str, /) -> int:
        count = super().write(text)
        self.changed.set()
        self.changed = trio.Event()
        return count

    async def wait_for(self, count: int) -> list[str]:
        """Wait until there are so many lines, and return all of them."""
        while len(lines := self.getvalue().splitlines()) < count:
            await self.changed.wait()
        return lines
