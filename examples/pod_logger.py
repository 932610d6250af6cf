"""Watch pods with a shared informer and log their events.

Run it against the cluster that kubectl uses, or with ``--embedded`` against a small
simulated cluster in this process::

    python examples/pod_logger.py --embedded

Each line begins with the time, as in Go's log. ``--no-time`` omits the time.
"""

from __future__ import annotations

import logging
import math

import trio
from command_line import (
    HINT,
    Arguments,
    connect,
    log_to_output,
    parser_of,
    seconds,
    start,
)

from trioformer import (
    ListOptions,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformerFactory,
    TrioformerError,
)
from trioformer.client import Client
from trioformer.models.core_v1 import Pod

logger = logging.getLogger("pod_logger")

RESPONSE_DEADLINE = 10.0
"""Seconds that the first request may take."""


class PodLogger(ResourceEventHandler[Pod]):
    """Logs one line for each event."""

    async def on_add(self, pod: Pod, *, is_initial: bool) -> None:
        logger.info("New Pod Added to Store: %s", pod.name)

    async def on_update(self, old: Pod, new: Pod) -> None:
        logger.info("%s Pod Updated to %s", old.name, new.name)

    async def on_delete(self, pod: Pod, *, is_stale: bool) -> None:
        logger.info("Pod Deleted from Store: %s", pod.name)


async def log_pods(
    client: Client, *, namespace: str | None, resync_period: float
) -> None:
    """Log the events of the pods until cancelled."""
    factory = SharedInformerFactory(
        client,
        namespace=namespace,
        resync_period=resync_period,
        options=ReflectorOptions(grace_period=0),
    )
    factory.informer(Pod).add_event_handler(PodLogger())
    await factory.run()


async def check_reachable(client: Client, namespace: str | None) -> None:
    """Request one pod, to report a wrong address or a missing permission immediately
    and in one line.
    """
    with trio.move_on_after(RESPONSE_DEADLINE) as scope:
        await client.api(Pod, namespace=namespace).list_page(ListOptions(limit=1))
    if scope.cancelled_caught:
        raise TrioformerError(
            f"{client.config.server} did not respond within {RESPONSE_DEADLINE:g} s"
        )


async def main(arguments: Arguments, stop: trio.Event) -> None:
    """Connect, and log events until ``stop`` is set or the time of ``--for`` has
    passed.
    """
    log_to_output(
        logger, "%(asctime)s %(message)s" if arguments.time else "%(message)s"
    )
    try:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = trio.current_time() + arguments.run_for
            nursery.start_soon(follow_pods, arguments)
            await stop.wait()  # a signal is the normal end of this program
            nursery.cancel_scope.cancel()
    except ExceptionGroup as failures:
        failures.add_note(HINT)
        raise


async def follow_pods(arguments: Arguments) -> None:
    """Log the events of the pods in the cluster of the arguments."""
    async with connect(arguments) as client:
        await check_reachable(client, arguments.namespace)
        await log_pods(
            client, namespace=arguments.namespace, resync_period=arguments.resync
        )


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument(
        "--resync",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="resync period; 0 for none",
    )
    parser.add_argument(
        "--for",
        type=seconds,
        default=math.inf,
        metavar="SECONDS",
        dest="run_for",
        help="default: until Ctrl-C",
    )
    parser.add_argument(
        "--no-time",
        action="store_false",
        dest="time",
        help="log lines without the time",
    )
    stop = trio.Event()
    start(main, parser, stop=stop)
