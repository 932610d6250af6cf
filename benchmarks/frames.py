"""Count the files whose code runs for one watch event, and for one ``create``, over a socket.

::

    python benchmarks/frames.py

An embedded API server runs in a process of its own.
``sys.setprofile`` records every function that is entered, resumed or returned to: for an event from the read of the
socket to the `WatchEvent`, for a ``create`` from its call to its return, on a connection that is open.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any, final

import trio

from trioformer import Client, ObjectMeta, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap

PACKAGE = str(Path(sys.modules["trioformer"].__file__ or "").parent)
OTHERS = ("httpx", "httpcore", "h11")
CREATE = """
import sys, trio
from trioformer import ObjectMeta, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap

async def main():
    async with open_client(ClusterConfig(server=sys.argv[1])) as client:
        await client.api(ConfigMap, namespace="default").create(ConfigMap(metadata=ObjectMeta(name="watched")))

trio.run(main)
"""


@final
class Recorder:
    """Records files from :meth:`begin`, or from the next read of a socket, to :meth:`end`."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def begin(self) -> None:
        self.files.clear()
        sys.setprofile(self._record)

    def begin_at_read(self) -> None:
        sys.setprofile(self._wait_for_read)

    def end(self) -> set[str]:
        sys.setprofile(None)
        return set(self.files)

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "return"):
            self.files.add(frame.f_code.co_filename)

    def _wait_for_read(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "c_return" and getattr(function, "__name__", "") == "recv":
            self.begin()
            on_stack: FrameType | None = frame
            while on_stack is not None:  # to which it returns
                self.files.add(on_stack.f_code.co_filename)
                on_stack = on_stack.f_back


def shown(what: str, files: set[str]) -> None:
    ours = sorted(file.removeprefix(f"{PACKAGE}/") for file in files if file.startswith(PACKAGE))
    print(f"{what}: {len(ours)} files of trioformer")
    for file in ours:
        print(f"    {file}")
    for name in OTHERS:
        if theirs := sum(f"/{name}/" in file for file in files):
            print(f"    and {theirs} of {name}")


async def measure(client: Client) -> None:
    recorder, config_maps = Recorder(), client.api(ConfigMap, namespace="default")

    def named(name: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=name))

    async with config_maps.watch() as events:
        for number in range(3):  # the first ones import modules
            await config_maps.create(named(f"before-{number}"))
            await anext(events)
        config_map = named("recorded")
        recorder.begin()
        await config_maps.create(config_map)
        created = recorder.end()
        await anext(events)
        # Written by another process, so that this one only reads the event.
        writer = await trio.lowlevel.open_process([sys.executable, "-c", CREATE, sys.argv[1]])
        recorder.begin_at_read()
        await anext(events)
        watched = recorder.end()
        await writer.wait()
    shown("from the socket to the WatchEvent", watched)
    shown("create", created)


async def main() -> None:
    async with open_client(ClusterConfig(server=sys.argv[1])) as client:
        await measure(client)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        trio.run(main)
    else:
        serve = [sys.executable, "-m", "trioformer.testing", "serve", "--insecure-http", "--bind", "127.0.0.1:0"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            try:
                subprocess.run([sys.executable, __file__, url.rstrip(".;,")], check=True)
            finally:
                server.terminate()
