"""Publish pages with a work queue, with several workers, retries with increasing
delays, and a graceful shutdown.

To publish a page, the program writes a config map with this name. The page ``news:2``
fails twice first, and ``lost:99`` always fails::

    python examples/work_queue.py --embedded
    python examples/work_queue.py index news:2 lost:99
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import attrs
import trio
from command_line import (
    Arguments,
    connect,
    namespace_name,
    namespace_of,
    parser_of,
    seconds,
    start,
)

from trioformer import Api, ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.workqueue import RateLimitingQueue

MAX_RETRIES = 5


def page(text: str) -> str:
    """Parse a page and the number of its failures for argparse."""
    name, _, failures = text.partition(":")
    namespace_name(name)  # the names of config maps have the same form
    int(failures or 0)
    return text


@attrs.define
class Publisher:
    """Publishes the pages in its queue."""

    config_maps: Api[ConfigMap]
    queue: RateLimitingQueue[str] = attrs.field(
        factory=lambda: RateLimitingQueue(name="pages")
    )
    attempts: Counter[str] = attrs.field(factory=Counter[str])

    async def publish(self, page: str) -> None:
        """Publish one page. In your program, process the object of the key."""
        self.attempts[page] += 1
        await trio.sleep(0.01)
        name, _, failures = page.partition(":")
        if self.attempts[page] <= int(failures or 0):
            raise OSError("it is locked")
        wanted = ConfigMap(metadata=ObjectMeta(name=name), data={"page": name})
        await self.config_maps.apply(wanted, field_manager="publisher")

    async def handle(self, page: str) -> None:
        """Publish a page. After a failure, retry it up to five times, and then drop
        it.
        """
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

    async def serve(
        self, pages: list[str], *, seconds: float, patience: float = 5.0
    ) -> None:
        """Publish pages for a number of seconds, and then drain the queue."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(self.queue.process, self.handle, workers=3))
            for page in pages:
                self.queue.add(page)
            await trio.sleep(seconds)
            with trio.move_on_after(patience):
                await self.queue.drain()
            # cancels workers that are not finished in time
            nursery.cancel_scope.cancel()
        left = self.queue.remaining()
        for page in (*left.processing, *left.ready, *left.delayed, *left.unfinished):
            print(f"{page}: not processed")


async def main(arguments: Arguments) -> None:
    async with connect(arguments) as client:
        publisher = Publisher(
            client.api(ConfigMap, namespace=namespace_of(arguments, client))
        )
        await publisher.serve(arguments.pages, seconds=arguments.seconds)


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "pages",
        nargs="*",
        type=page,
        default=["index", "news:2", "lost:99"],
        help="what to publish",
    )
    parser.add_argument(
        "--for",
        type=seconds,
        default=1.0,
        metavar="SECONDS",
        dest="seconds",
        help="default: 1",
    )
    start(main, parser)
