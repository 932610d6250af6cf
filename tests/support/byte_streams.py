"""An API server's bytes in memory: one list of realistic pods, one watch, cut as a socket and h11 would cut them.

``python tests/support/byte_streams.py`` measures, in one process, the CPU of an informer and of the barest loop over
the same bytes; ``python tests/support/byte_streams.py calls`` counts the function calls of both, which does not depend
on the load of the machine.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import json
import math
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeAlias

import httpx
import trio
import trio.testing

from trioformer import ClusterConfig, ResourceEventHandler, SharedInformerFactory, open_client
from trioformer.models.core_v1 import Pod

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

_found = importlib.util.spec_from_file_location("pods", BENCHMARKS / "servers" / "pods.py")
assert _found is not None
pods = importlib.util.module_from_spec(_found)
assert _found.loader is not None
_found.loader.exec_module(pods)

READ = 65_536
"""Bytes that httpcore reads at once."""
OPENING = b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",'
SERVER = ClusterConfig(server="http://server")

Meter: TypeAlias = Callable[[], AbstractContextManager[list[float]]]
"""Measures a block; the figure is in the list afterwards."""


class Recorded(httpx.AsyncBaseTransport):
    """Answers with a list of pods, and with a watch that tells of a change of one after the other, again and again.

    The watch begins when ``go`` is set, and is silent after its events.
    Streamed lists are refused, as by a server that has none.
    """

    def __init__(self, count: int, events: int) -> None:
        self.go = trio.Event()
        parts = list(pods.pods("large", count))
        self.items = [head + pods.version(number) + tail for number, (head, tail) in enumerate(parts)]
        versions = range(count, count + events)
        self.events = [
            OPENING + parts[number % count][0][1:] + pods.version(number) + parts[number % count][1] + b"}\n"
            for number in versions
        ]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        if "sendInitialEvents" in request.url.params:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}
            return httpx.Response(422, stream=_Body(_once(json.dumps(status).encode())))
        return httpx.Response(200, stream=_Body(self._watch() if "watch" in request.url.params else self._list()))

    async def _list(self) -> AsyncIterator[bytes]:
        metadata = b'"metadata":{"resourceVersion":"%s"}' % pods.version(len(self.items))
        body = b'{"kind":"PodList","apiVersion":"v1",%s,"items":[%s]}\n' % (metadata, b",".join(self.items))
        for begin in range(0, len(body), READ):
            await trio.lowlevel.checkpoint()
            yield body[begin : begin + READ]

    async def _watch(self) -> AsyncIterator[bytes]:
        await self.go.wait()
        for piece, is_read in pieces(self.events):
            if is_read:
                await trio.lowlevel.checkpoint()
            yield piece
        await trio.sleep_forever()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    await trio.lowlevel.checkpoint()
    yield data


class _Body(httpx.AsyncByteStream):
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk


def pieces(events: list[bytes]) -> Iterator[tuple[bytes, bool]]:
    """What h11 makes of an HTTP chunk for each event, cut at the end of each read; and whether it reads first."""
    room = 0
    for event in events:
        begin = 0
        while begin < len(event):
            is_read = room == 0
            room = room or READ
            piece = event[begin : begin + room]
            yield piece, is_read
            begin += len(piece)
            room -= len(piece)


class Counter(ResourceEventHandler[Pod]):
    """Counts updates; reads what the pipe itself knows of an object."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self.done = trio.Event()

    async def on_update(self, old: Pod, new: Pod) -> None:
        assert new.resource_version
        self._left -= 1
        if not self._left:
            self.done.set()


async def informer_cost(server: Recorded, meter: Meter) -> float:
    """What an informer with one handler takes, from the first event to the last."""
    async with open_client(SERVER, http_transport=server) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        informer = factory.informer(Pod)
        handler = Counter(len(server.events))
        registration = informer.add_event_handler(handler)
        await nursery.start(factory.run)
        await registration.wait_until_synced()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        with meter() as taken:
            server.go.set()
            await handler.done.wait()
        assert registration.statistics().buffer.coalesced == 0
        nursery.cancel_scope.cancel()
    return taken[0]


async def limit_cost(server: Recorded, meter: Meter) -> float:
    """What the barest loop over the same takes."""
    import drive_limit  # of the benchmarks, beside the modules that it imports

    async with httpx.AsyncClient(transport=server, base_url="http://server", timeout=None) as client:
        store: dict[str, object] = {}
        version = await drive_limit.read_list(client, store)
        gc.collect()
        with meter() as taken:
            server.go.set()
            await drive_limit.read_watch(client, version, store, len(server.events), None)
        return taken[0]


@contextmanager
def seconds() -> Iterator[list[float]]:
    """Measure the CPU that a block takes."""
    taken: list[float] = []
    began = time.process_time()
    yield taken
    taken.append(time.process_time() - began)


@contextmanager
def calls() -> Iterator[list[float]]:
    """Count the functions that a block calls, of Python and of C."""
    taken, count = [], itertools.count()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            next(count)

    sys.setprofile(note)
    try:
        yield taken
    finally:
        sys.setprofile(None)
    taken.append(float(next(count)))


def main(what: str = "seconds") -> None:
    """Print what an event costs either of them."""
    sys.path.append(str(BENCHMARKS / "drivers"))
    count, events, costs = 400, 4_000, {"informer": informer_cost, "limit": limit_cost}
    # Seconds in turns, so that a busy machine slows both, and the least of them: what disturbs a run only adds to it.
    rounds, meter = (7, seconds) if what == "seconds" else (1, calls)
    # Under a clock that stands still, readers take turns by number and not by time.
    clock = None if what == "seconds" else trio.testing.MockClock()
    taken = dict.fromkeys(costs, math.inf)
    for _ in range(rounds):
        for name, cost in costs.items():
            taken[name] = min(taken[name], trio.run(cost, Recorded(count, events), meter, clock=clock) / events)
    print(json.dumps(taken))


if __name__ == "__main__":
    main(*sys.argv[1:])
