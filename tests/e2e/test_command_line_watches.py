"""``get -w`` beside kubectl's: the same lines for the same changes, as a table and as objects."""

from __future__ import annotations

import io
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio
import trio.testing

from tests.e2e.kubectl_programs import Programs, config_of, difference_of, write_kubeconfig
from trioformer.cli._main import run_command
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer, serve_http

WATCHES: Final = [
    "get cm -w",
    "get cm -w --no-headers",
    "get cm -w --output-watch-events",
    "get cm -w --output-watch-events -o wide -L app",
    "get cm -w --show-labels",
    "get cm -A -w",
    "get cm -w -o name",
    "get cm -w -o yaml",
    "get cm -w -o json",
    "get cm -w -o json --output-watch-events",
    "get cm -w -o yaml --output-watch-events",
    "get cm -w -o custom-columns=NAME:.metadata.name,DATA:.data",
    "get cm -w -o jsonpath={.metadata.name}:{.data}",
    "get cm -w --field-selector metadata.name!=two",
    "get cm -w -l app=web",
]


class Output(io.StringIO):
    """Standard output that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._lot = trio.lowlevel.ParkingLot()
        self.seen = 0

    def write(self, text: str, /) -> int:
        """Add a text."""
        self._lot.unpark_all()
        return super().write(text)

    async def wait_until_longer(self) -> None:
        """Wait for more than was seen."""
        while len(self.getvalue()) <= self.seen:
            await self._lot.park()


def settings(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels={"app": "web"}), data=data)


async def test_watches_print_what_those_of_kubectl_print(assets: Path, tmp_path: Path) -> None:
    server = APIServer()
    server.create(settings("one", a="1"))
    server.create(settings("two"))
    outputs: dict[str, tuple[Output, Output]] = {each: (Output(), Output()) for each in WATCHES}
    everything = [output for pair in outputs.values() for output in pair]
    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(serve_http, server)
            config = write_kubeconfig(tmp_path / "config", config_of(url), "default")
            programs = Programs(assets / "kubectl", config)
            for invocation, (expected, actual) in outputs.items():
                arguments = shlex.split(invocation)
                nursery.start_soon(print_by_kubectl, programs, arguments, expected)
                nursery.start_soon(run_command, arguments, actual, io.StringIO(), programs.environ)
            changes: list[Callable[[], object]] = [
                lambda: None,
                lambda: server.create(settings("three", b="2")),
                lambda: server.patch(ConfigMap, "three", {"data": {"c": "3"}}),
                lambda: server.patch(ConfigMap, "one", {"metadata": {"labels": {"x": "y"}}}),
                lambda: server.delete(ConfigMap, "three"),
                lambda: server.create(settings("a-name-that-is-longer")),
            ]
            for change in changes:
                change()
                for output in everything:
                    await output.wait_until_longer()
                await trio.testing.wait_all_tasks_blocked(0.3)  # a text may come in parts
                for output in everything:
                    output.seen = len(output.getvalue())
            nursery.cancel_scope.cancel()
    found = {
        invocation: difference
        for invocation, (expected, actual) in outputs.items()
        if (difference := difference_of((0, expected.getvalue(), ""), (0, actual.getvalue(), "")))
    }
    assert found == {}


async def print_by_kubectl(programs: Programs, arguments: list[str], output: Output) -> None:
    """Run kubectl until cancelled."""
    process = await trio.lowlevel.open_process(
        [str(programs.kubectl), *arguments], stdout=subprocess.PIPE, env=programs.environ
    )
    assert process.stdout is not None
    try:
        async for data in process.stdout:
            output.write(data.decode())
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
