"""The bytes of an API server in memory: one list of realistic pods and one watch, in the chunks of a socket and h11.

``python tests/support/byte_streams.py`` measures, in one process, the CPU of an informer and of a minimal loop over
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

from trioformer import (
    ClusterConfig,
    Notification,
    ResourceEventHandler,
    SharedInformerFactory,
    Updated,
    open_client,
)
from trioformer.controller import Controller, Request
from trioformer.models.core_v1 import Pod

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

_found = importlib.util.spec_from_file_location("pods", BENCHMARKS / "servers" / "pods.py")
assert _found is not None
pods = importlib.util.module_from_spec(_found)
assert _found.loader is not None
_found.loader.exec_module(pods)

READ = 65_536
"""Bytes that a connection reads in one call."""
OPENING = b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",'
SERVER = ClusterConfig(server="http://server")

Meter: TypeAlias = Callable[[], AbstractContextManager[list[float]]]
"""Measures a block, and then appends the result to the list."""


class Recorded(httpx.AsyncBaseTransport):
    """Responds with a list of pods, and with a watch that sends a change of each pod in turn, repeatedly.

    The watch starts when ``go`` is set, and is silent after its events.
    Watch-lists are rejected, as by a server that does not support them.
    """

    def __init__(self, count: int, events: int) -> None:
        self.go = trio.Event()
        made = pods.encoded_pods("large", count)
        self.items = [item.replace(pods.VERSION, pods.version(number)) for number, item in enumerate(made)]
        self.events = [
            OPENING + made[number % count][1:].replace(pods.VERSION, pods.version(number)) + b"}\n"
            for number in range(count, count + events)
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
    """Yield the data that h11 returns for a chunk per event, cut at each end of a read, and whether it reads first."""
    left = 0
    for event in events:
        begin = 0
        while begin < len(event):
            is_read = left == 0
            left = left or READ
            piece = event[begin : begin + left]
            yield piece, is_read
            begin += len(piece)
            left -= len(piece)


class Counter(ResourceEventHandler[Pod]):
    """Counts updates; reads only fields that the cache itself reads."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self.done = trio.Event()

    async def on_update(self, old: Pod, new: Pod) -> None:
        assert new.resource_version
        self._left -= 1
        if not self._left:
            self.done.set()


async def informer_cost(server: Recorded, meter: Meter) -> float:
    """Measure an informer with one handler, from the first event to the last."""
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


async def controller_cost(server: Recorded, meter: Meter) -> float:
    """Measure an informer with one controller, whose only worker is busy: its functions and the queue remain."""
    done, left = trio.Event(), len(server.events)

    def count(event: Notification[Pod]) -> bool:
        nonlocal left
        if isinstance(event, Updated):
            left -= 1
            if not left:
                done.set()
        return True

    async def never_return(_: Request) -> None:
        await trio.sleep_forever()

    async with open_client(SERVER, http_transport=server) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        controller = Controller("pods", never_return)
        controller.watch(factory.informer(Pod), predicates=[count])
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        with meter() as taken:
            server.go.set()
            await done.wait()
        nursery.cancel_scope.cancel()
    return taken[0]


async def limit_cost(server: Recorded, meter: Meter) -> float:
    """Measure a minimal loop over the same bytes."""
    import drive_limit  # one of the benchmarks, in the directory of the modules that it imports

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
    """Measure the CPU time of a block."""
    taken: list[float] = []
    began = time.process_time()
    yield taken
    taken.append(time.process_time() - began)


@contextmanager
def calls() -> Iterator[list[float]]:
    """Count the calls of Python and C functions in a block."""
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
    """Print the cost of an event for both."""
    sys.path.append(str(BENCHMARKS / "drivers"))
    count, events, costs = 400, 4_000, {"informer": informer_cost, "controller": controller_cost, "limit": limit_cost}
    # Both are measured in turn, so that a busy machine slows both, and the minimum counts: disturbances only add time.
    rounds, meter = (7, seconds) if what == "seconds" else (1, calls)
    # With a clock that stands still, the time slices depend on the number of items only; the order of tasks, which trio
    # draws for each batch, is the same in each run.
    clock = None if what == "seconds" else trio.testing.MockClock()
    if what == "calls":
        trio._core._run._r.seed(0)
    taken = dict.fromkeys(costs, math.inf)
    for _ in range(rounds):
        for name, cost in costs.items():
            taken[name] = min(taken[name], trio.run(cost, Recorded(count, events), meter, clock=clock) / events)
    print(json.dumps(taken))


if __name__ == "__main__":
    main(*sys.argv[1:])
