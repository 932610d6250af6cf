"""A link with a bandwidth and a delay in front of a port of this machine, for as long as standard input is open.

::

    python benchmarks/servers/link.py --target 6443 --megabits 50 --round-trip 0.02

Says ``{"port": …}`` when it listens.
Each direction of each connection has the whole bandwidth, like a link with one user: a piece of data leaves when those
before it have left, and arrives half a round trip later.
What waits to leave is limited to a quarter of a second, or 256 KiB; then the sender waits.
A shaper in the kernel would need the rights of an administrator.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from functools import partial

import trio

PIECE = 16 * 1024
"""Bytes that are received at once; at 50 Mbit/s they take 2.6 ms."""


class Direction:
    """One direction of a connection."""

    def __init__(self, bytes_a_second: float, delay: float) -> None:
        self._bytes_a_second = bytes_a_second
        self._delay = delay
        self._free_at = -math.inf
        waiting = max(256 * 1024, bytes_a_second * (0.25 + delay))
        self._room = int(waiting / PIECE) if waiting < math.inf else 64

    async def run(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        """Pass on what arrives, until the end."""
        send, receive = trio.open_memory_channel[tuple[float, bytes]](self._room)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver, receive, target)
            async with send:
                while data := bytes(await source.receive_some(PIECE)):
                    self._free_at = max(self._free_at, trio.current_time()) + len(data) / self._bytes_a_second
                    await send.send((self._free_at + self._delay, data))

    async def _deliver(self, pieces: trio.MemoryReceiveChannel[tuple[float, bytes]], target: trio.SocketStream) -> None:
        async for arrives_at, data in pieces:
            if arrives_at > trio.current_time():
                await trio.sleep_until(arrives_at)
            await target.send_all(data)
        await target.send_eof()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A slow link in front of a port of this machine.")
    parser.add_argument("--target", type=int, required=True)
    parser.add_argument("--megabits", type=float, required=True)
    parser.add_argument("--round-trip", type=float, required=True)
    options = parser.parse_args()

    async def serve(near: trio.SocketStream) -> None:
        far = await trio.open_tcp_stream("127.0.0.1", options.target)
        try:
            async with near, far, trio.open_nursery() as nursery:
                for source, target in ((near, far), (far, near)):
                    direction = Direction(options.megabits * 125_000, options.round_trip / 2)
                    nursery.start_soon(direction.run, source, target)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # one of both has closed the connection

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        print(json.dumps({"port": listener.socket.getsockname()[1]}), flush=True)
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
