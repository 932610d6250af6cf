"""Process pods with a work queue, as in client-go's workqueue example. Handlers add
keys, and workers process the current state.

A pod that is not running yet cannot be processed. It is retried five times with
increasing delays, and then dropped until its next event::

    python examples/workqueue_controller.py --embedded
    python examples/workqueue_controller.py --kubeconfig ~/.kube/config --workers 4

``trioformer.controller.Controller`` does the same with less code. See
``replica_counter.py``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import attrs
import trio
from command_line import Arguments, connect, parser_of, positive, start

from trioformer import (
    Client,
    HandlerRegistration,
    ResourceEventHandler,
    SharedInformer,
    SharedInformerFactory,
)
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod
from trioformer.workqueue import RateLimitingQueue, default_controller_rate_limiter

MAX_RETRIES = 5
PATIENCE = 10.0
"""Seconds in which the workers must finish their items at shutdown."""


class Item(NamedTuple):
    """An item of the queue. It contains the kind and the key of an object, so that one
    queue can serve several kinds.
    """

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class NotRunningError(Exception):
    """A pod that cannot be processed yet."""


@attrs.define
class Enqueuer(ResourceEventHandler[Pod]):
    """Adds the keys of changed pods to the queue. The workers read the current state
    of the pods.
    """

    queue: RateLimitingQueue[Item]

    async def on_add(self, pod: Pod, *, is_initial: bool) -> None:
        self.queue.add(Item("Pod", key_of(pod)))

    async def on_update(self, old: Pod, new: Pod) -> None:
        self.queue.add(Item("Pod", key_of(new)))

    async def on_delete(self, pod: Pod, *, is_stale: bool) -> None:
        self.queue.add(Item("Pod", key_of(pod)))


@attrs.define(eq=False)
class PodController:
    """Processes pods with several workers, but each pod with only one worker at a
    time.
    """

    pods: SharedInformer[Pod]
    queue: RateLimitingQueue[Item] = attrs.field(
        factory=lambda: RateLimitingQueue(
            default_controller_rate_limiter(), name="pods"
        )
    )

    async def sync(self, item: Item) -> None:
        """Process the current state of a pod. The method is idempotent."""
        namespace, _, name = item.key.partition("/")
        pod = self.pods.lister.get(name, namespace=namespace)
        if pod is None:
            print(f"{item} does not exist any more")
        elif pod.status.phase == "Pending":
            raise NotRunningError("it is pending")
        else:
            print(f"{item}: {pod.status.phase}")

    async def work(self, registration: HandlerRegistration[Pod]) -> None:
        """Process keys after the handler has synced, until the queue is shut down."""
        await registration.wait_until_synced()
        with suppress(trio.EndOfChannel):
            while True:
                # a normal end of the block resets the failures ...
                async with self.queue.take() as item:
                    await self.process(item)

    async def process(self, item: Item) -> None:
        """Process one key. After a failure, retry or drop it."""
        try:
            await self.sync(item)
        except Exception as error:  # noqa: BLE001  # any error concerns only this key
            retries = self.queue.num_requeues(item)
            if retries < MAX_RETRIES:
                print(f"{item}: {error}; retry {retries + 1}")
                self.queue.add_rate_limited(item)  # ... unless the key is added again
            else:
                print(f"{item}: {error}; dropped after {retries} retries")
                self.queue.forget(item)

    async def run(self, workers: int, stop: trio.Event) -> None:
        """Work until ``stop`` is set, and then drain the queue."""
        registration = self.pods.add_event_handler(Enqueuer(self.queue))
        async with trio.open_nursery() as nursery:
            for _ in range(workers):
                nursery.start_soon(self.work, registration)
            await stop.wait()
            with trio.move_on_after(PATIENCE):
                await self.queue.drain()
            nursery.cancel_scope.cancel()


async def serve(
    client: Client, workers: int, stop: trio.Event, *, namespace: str | None = None
) -> None:
    """Run the controller for the pods of one namespace or of all namespaces."""
    factory = SharedInformerFactory(client, namespace=namespace)
    controller = PodController(factory.informer(Pod))
    async with trio.open_nursery() as nursery:
        # not start(), so that a signal ends it even if the server does not respond
        nursery.start_soon(factory.run)
        await controller.run(workers, stop)
        nursery.cancel_scope.cancel()


async def main(arguments: Arguments, stop: trio.Event) -> None:
    """Connect to the cluster, and run the controller until ``stop`` is set."""
    async with connect(arguments) as client:
        await serve(client, arguments.workers, stop, namespace=arguments.namespace)


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument(
        "--workers",
        type=positive,
        default=2,
        metavar="NUMBER",
        help="how many pods at once; default: 2",
    )
    start(main, parser, stop=trio.Event())
