"""Publish pages with a work queue: several workers, retries with growing delays, and a graceful shutdown.

A page is a name; ``news:2`` fails twice before it is published, and ``lost:99`` always fails::

    python examples/work_queue.py index news:2 lost:99
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial

import attrs
import trio

from trioformer import run
from trioformer.workqueue import RateLimitingQueue

MAX_RETRIES = 5


@attrs.define
class Publisher:
    """Publishes the pages in its queue."""

    queue: RateLimitingQueue[str] = attrs.field(factory=lambda: RateLimitingQueue(name="pages"))
    attempts: Counter[str] = attrs.field(factory=Counter)

    async def publish(self, page: str) -> None:
        """Publish one page; in your program, process the object of the key."""
        self.attempts[page] += 1
        await trio.sleep(0.01)
        _, _, failures = page.partition(":")
        if self.attempts[page] <= int(failures or 0):
            raise OSError("it is locked")

    async def handle(self, page: str) -> None:
        """Publish a page; retry up to five times, then drop it."""
        try:
            await self.publish(page)
        except OSError as error:
            if self.queue.num_requeues(page) < MAX_RETRIES:
                print(f"{page}: {error}, retrying")
                self.queue.add_rate_limited(page)
            else:
                print(f"{page}: {error}, dropped")
                self.queue.forget(page)
        else:
            print(f"{page}: published")

    async def serve(self, pages: list[str], *, seconds: float, patience: float = 5.0) -> None:
        """Publish pages for so many seconds; then drain the queue."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(self.queue.process, self.handle, workers=3))
            for page in pages:
                self.queue.add(page)
            await trio.sleep(seconds)
            with trio.move_on_after(patience):
                await self.queue.drain()
            nursery.cancel_scope.cancel()  # cancels workers that are not finished in time
        left = self.queue.remaining()
        for page in (*left.processing, *left.ready, *left.delayed, *left.unfinished):
            print(f"{page}: not processed")


def main() -> None:
    parser = argparse.ArgumentParser(description="Publish pages with a work queue.")
    parser.add_argument("pages", nargs="*", default=["index", "news:2", "lost:99"], help="what to publish")
    parser.add_argument("--for", type=float, default=1.0, dest="seconds", help="how long to run; default: 1")
    options = parser.parse_args()
    sys.exit(run(partial(Publisher().serve, options.pages, seconds=options.seconds)))


if __name__ == "__main__":
    main()
