"""What the examples share: their flags, the cluster that these name, and how they start and end.

An example has an async function ``main``, which gets the parsed arguments, and ends with::

    if __name__ == "__main__":
        start(main, parser_of(__doc__))
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import trio

from trioformer import Client, TrioformerError, open_client, run
from trioformer.testing import APIServer, open_simulated_cluster

RESPONSE_DEADLINE = 10.0
"""Seconds that the first request may take."""


def parser_of(documentation: str | None) -> ArgumentParser:
    """Return a parser with the flags that every example has; ``documentation`` is the module's."""
    summary, _, details = (documentation or "").partition("\n")
    parser = ArgumentParser(
        description=summary, epilog=details.replace("::\n", ":\n"), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--embedded", action="store_true", help="simulate a small cluster in this process")
    cluster.add_argument("--kubeconfig", metavar="PATH", help="default: as kubectl finds it, then in-cluster")
    cluster.add_argument("--context", metavar="NAME", help="the kubeconfig context to use")
    cluster.add_argument("--namespace", "-n", metavar="NAME", help="default: all namespaces")
    return parser


def start(
    main: Callable[..., Awaitable[int | None]], parser: ArgumentParser, *, stop: trio.Event | None = None
) -> NoReturn:
    """Parse the command line, run ``main(arguments)``, and exit; wrong usage exits with 2.

    With ``stop``, the function is ``main(arguments, stop)``, and the first signal sets the event instead of cancelling.
    """
    arguments = parser.parse_args()
    if arguments.embedded and (arguments.kubeconfig or arguments.context):
        parser.error("--embedded cannot be combined with --kubeconfig or --context")
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
    given = (arguments,) if stop is None else (arguments, stop)
    sys.exit(run(main, *given, stop=stop))


@asynccontextmanager
async def connect(
    arguments: Namespace,
    simulate: Callable[[APIServer], Awaitable[object]] | None = None,
    *,
    server: APIServer | None = None,
) -> AsyncIterator[Client]:
    """Open a client of the cluster that the arguments name; ``simulate`` acts on the ``server`` of ``--embedded``."""
    if arguments.embedded:
        async with open_simulated_cluster(simulate, server=server) as client:
            yield client
    else:
        async with open_client(kubeconfig=arguments.kubeconfig, context=arguments.context) as client:
            yield client


async def check_reachable(client: Client) -> None:
    """Request the server's version, so that a wrong address is reported immediately and in one line."""
    with trio.move_on_after(RESPONSE_DEADLINE) as scope:
        await client.version()
    if scope.cancelled_caught:
        raise TrioformerError(f"{client.config.server} did not respond within {RESPONSE_DEADLINE:g} s")


def seconds(text: str) -> float:
    """Parse a number of seconds for argparse."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def positive(text: str) -> int:
    """Parse a number of things, such as workers, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def file(text: str) -> Path:
    """Parse the name of an existing file for argparse."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path
