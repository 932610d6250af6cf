"""Watch pods with a shared informer and log their events.

Run it against the cluster that kubectl uses, or with ``--embedded`` against a small simulated cluster in this process::

    python examples/pod_logger.py --embedded
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

import trio

from trioformer import (
    ListOptions,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformerFactory,
    TrioformerError,
    open_client,
    run,
)
from trioformer.client import Client
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, simulate_cluster

logger = logging.getLogger("pod_logger")

RESPONSE_DEADLINE = 10.0
"""Seconds that the first request may take."""


class Output(logging.StreamHandler[TextIO]):
    """Writes lines; ends the program when the pipe is closed (``pod_logger.py | head``)."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream.write(self.format(record) + "\n")
        self.flush()


class PodLogger(ResourceEventHandler[Pod]):
    """Logs one line for each event."""

    async def on_add(self, pod: Pod, *, is_initial: bool) -> None:
        logger.info("New Pod Added to Store: %s", pod.name)

    async def on_update(self, old: Pod, new: Pod) -> None:
        logger.info("%s Pod Updated to %s", old.name, new.name)

    async def on_delete(self, pod: Pod, *, is_stale: bool) -> None:
        logger.info("Pod Deleted from Store: %s", pod.name)


async def log_pods(client: Client, *, namespace: str | None, resync_period: float) -> None:
    """Log the events of the pods until cancelled."""
    factory = SharedInformerFactory(
        client, namespace=namespace, resync_period=resync_period, options=ReflectorOptions(grace_period=0)
    )
    factory.informer(Pod).add_event_handler(PodLogger())
    await factory.run()


async def check_reachable(client: Client, namespace: str | None) -> None:
    """Request one pod, so that a wrong address or a missing permission is reported immediately and in one line."""
    with trio.move_on_after(RESPONSE_DEADLINE) as scope:
        await client.api(Pod, namespace=namespace).list_page(ListOptions(limit=1))
    if scope.cancelled_caught:
        raise TrioformerError(f"{client.config.server} did not respond within {RESPONSE_DEADLINE:g} s")


@asynccontextmanager
async def cluster(arguments: argparse.Namespace, nursery: trio.Nursery) -> AsyncIterator[Client]:
    """Connect to the cluster of the arguments; the tasks of an embedded one belong to ``nursery``."""
    if arguments.embedded:
        server = APIServer()
        await nursery.start(server.run)
        await nursery.start(simulate_cluster, server)
        async with server.open_client() as client:
            yield client
    else:
        async with open_client(kubeconfig=arguments.kubeconfig, context=arguments.context) as client:
            await check_reachable(client, arguments.namespace)
            yield client


async def main(arguments: argparse.Namespace) -> None:
    """Connect, and log until cancelled or the end of ``--for``."""
    try:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = trio.current_time() + arguments.run_for
            async with cluster(arguments, nursery) as client:
                await log_pods(client, namespace=arguments.namespace, resync_period=arguments.resync)
    except ExceptionGroup as failures:
        failures.add_note("try --embedded for a cluster inside this process")
        raise


def seconds(text: str) -> float:
    """Parse a number of seconds for argparse."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(description="Log the events of the pods of a cluster.")
    parser.add_argument("--kubeconfig", metavar="PATH", help="default: as kubectl finds it, then in-cluster")
    parser.add_argument("--context", help="the kubeconfig context to use")
    parser.add_argument("--namespace", help="default: all namespaces")
    parser.add_argument("--resync", type=seconds, default=60.0, metavar="SECONDS", help="resync period; 0 for none")
    parser.add_argument(
        "--for", type=seconds, default=math.inf, metavar="SECONDS", dest="run_for", help="default: until Ctrl-C"
    )
    parser.add_argument("--embedded", action="store_true", help="simulate a small cluster in this process")
    arguments = parser.parse_args()
    if arguments.embedded and (arguments.kubeconfig or arguments.context):
        parser.error("--embedded cannot be combined with --kubeconfig or --context")
    return arguments


if __name__ == "__main__":
    options = parse_arguments()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
    logger.addHandler(Output(sys.stdout))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    code = run(main, options)
    sys.exit(0 if code in (130, 143) else code)  # a signal is how this program is meant to end
