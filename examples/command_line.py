"""Helpers for the examples: common flags, the connection to the cluster, and the start
and end of a program.

An example has an async function ``main`` with the parsed arguments as its parameter.
Its last lines are::

    if __name__ == "__main__":
        start(main, parser_of(__doc__))
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from pathlib import Path
from typing import NoReturn, TextIO, TypeAlias, cast

import trio

from trioformer import Client, ConfigError, TrioformerError, open_client, run
from trioformer.manager import HTTPOptions
from trioformer.testing import APIServer, open_simulated_cluster

Arguments: TypeAlias = Namespace
"""The parsed command line; a Namespace of argparse, and not one of Kubernetes."""

HINT = "try --embedded for a cluster inside this process"
RESPONSE_DEADLINE = 10.0
"""Seconds that the first request may take."""


class Parser(ArgumentParser):
    """An argument parser that prints an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see --help)\n")


class StandardOutput:
    """Standard output with a flush after each line, so that each line is visible
    immediately, even in a pipe.

    If writing fails, for example because a pipe is closed or the disk is full,
    ``has_ended`` is set and no error is raised. An error in a handler or a reconcile
    would only be retried.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.has_ended = trio.Event()
        self.problem: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text, and flush it if it ends with a newline."""
        with self._ending():
            self.stream.write(text)
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Flush the buffered text."""
        with self._ending():
            self.stream.flush()

    @contextmanager
    def _ending(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            self.problem = error
            self.has_ended.set()

    def fileno(self) -> int:
        """Return the file descriptor of the stream."""
        return self.stream.fileno()

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    async def run(
        self, main: Callable[..., Awaitable[int | None]], *given: object
    ) -> int | None:
        """Run a program until it ends, or until its output can no longer be written."""

        async def fail_at_its_end() -> None:
            await self.has_ended.wait()
            if self.problem is None or isinstance(self.problem, BrokenPipeError):
                raise BrokenPipeError
            raise TrioformerError(
                f"cannot write to standard output: {self.problem.strerror}"
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_at_its_end)
            code = await main(*given)
            nursery.cancel_scope.cancel()
        return code


def parser_of(
    documentation: str | None,
    *,
    is_namespaced: bool = False,
    default_namespace: str | None = None,
    serves_http: bool = False,
) -> ArgumentParser:
    """Return a parser with the common flags of the examples.

    ``documentation`` is the docstring of the example. If ``is_namespaced`` is true,
    the example works in the namespace that :func:`namespace_of` returns. With a
    ``default_namespace``, it works in this namespace by default. Otherwise, it works
    in all namespaces.  If ``serves_http`` is true, a flag sets the address for metrics
    and health checks.
    """
    summary, _, details = (documentation or "").partition("\n\n")
    parser = Parser(
        description=summary,
        epilog=details.replace("::\n", ":\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument(
        "--embedded",
        action="store_true",
        help="simulate a small cluster in this process",
    )
    cluster.add_argument(
        "--kubeconfig",
        metavar="PATH",
        help="default: as kubectl finds it, then in-cluster",
    )
    cluster.add_argument(
        "--context", metavar="NAME", help="the kubeconfig context to use"
    )
    usual = "that of the context" if is_namespaced else "all namespaces"
    cluster.add_argument(
        *("--namespace", "-n"),
        type=namespace_name,
        default=default_namespace,
        metavar="NAME",
        help=f"default: {default_namespace or usual}",
    )
    if serves_http:
        parser.add_argument(
            "--http",
            type=address,
            metavar="HOST:PORT",
            help="serve metrics and health there",
        )
    return parser


def start(
    main: Callable[..., Awaitable[int | None]],
    parser: ArgumentParser,
    *,
    stop: trio.Event | None = None,
    required: Sequence[str] = (),
    check: Callable[[Namespace], object] | None = None,
) -> NoReturn:
    """Parse the command line, run ``main(arguments)``, and exit. After a usage error,
    the exit code is 2.

    ``required`` names the arguments that are required unless ``--embedded`` is passed.
    With ``stop``, ``main(arguments, stop)`` is called, and the first signal sets the
    event instead of cancelling ``main``. ``check`` is called with the arguments, and
    raises a ``ValueError`` if they cannot be combined.
    """
    arguments = parser.parse_args()
    if arguments.embedded and (arguments.kubeconfig or arguments.context):
        parser.error("--embedded cannot be combined with --kubeconfig or --context")
    missing = [
        name for name in required if getattr(arguments, name.strip("-").lower()) is None
    ]
    if missing and not arguments.embedded:
        parser.error(
            "without --embedded the following arguments are required: "
            + ", ".join(missing)
        )
    if check is not None:
        try:
            check(arguments)
        except ValueError as error:
            parser.error(str(error))
    logging.basicConfig(
        level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr
    )
    given = (arguments,) if stop is None else (arguments, stop)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        # sys.stdout is None if it is closed
        output = StandardOutput(sys.stdout or nowhere)
        with redirect_stdout(cast("TextIO", output)):
            code = run(output.run, hinting, main, *given, stop=stop)
        # at its exit, Python would flush the rest and report the error again
        if output.problem is not None:
            os.dup2(nowhere.fileno(), output.fileno())
    sys.exit(code)


async def hinting(
    main: Callable[..., Awaitable[int | None]], *given: object
) -> int | None:
    """Run a program. If no cluster is configured, add a hint to the error."""
    try:
        return await main(*given)
    except (ConfigError, ExceptionGroup) as error:
        group = (
            error if isinstance(error, ExceptionGroup) else ExceptionGroup("", [error])
        )
        if group.subgroup(has_no_cluster) and HINT not in getattr(
            error, "__notes__", ()
        ):
            error.add_note(HINT)
        raise


def has_no_cluster(error: Exception) -> bool:
    """Return whether neither a kubeconfig nor a service account was found."""
    return isinstance(error, ConfigError) and str(error).startswith(
        "no cluster configuration found"
    )


@asynccontextmanager
async def connect(
    arguments: Arguments,
    simulate: Callable[[APIServer], Awaitable[object]] | None = None,
    *,
    server: APIServer | None = None,
) -> AsyncGenerator[Client, None]:
    """Open a client for the cluster in the arguments. With ``--embedded``,
    ``simulate`` changes the objects of the embedded server, which collects garbage.
    """
    if arguments.embedded:
        server = APIServer(garbage_collector=True) if server is None else server
        async with open_simulated_cluster(simulate, server=server) as client:
            yield client
    else:
        async with open_client(
            kubeconfig=arguments.kubeconfig, context=arguments.context
        ) as client:
            yield client


def namespace_of(arguments: Arguments, client: Client) -> str:
    """Return the namespace from the arguments, otherwise from the context, otherwise
    ``default``.
    """
    return str(arguments.namespace or client.config.namespace or "default")


async def check_reachable(client: Client) -> None:
    """Request the version of the server, to report a wrong address immediately and in
    one line.
    """
    with trio.move_on_after(RESPONSE_DEADLINE) as scope:
        await client.version()
    if scope.cancelled_caught:
        raise TrioformerError(
            f"{client.config.server} did not respond within {RESPONSE_DEADLINE:g} s"
        )


def namespace_name(text: str) -> str:
    """Parse the name of a namespace for argparse."""
    if re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name: it may have a-z, 0-9 and, inside, hyphens"
        )
    return text


def api_version(text: str) -> str:
    """Parse a version of an API, such as ``v1`` or ``apps/v1``, for argparse."""
    if (
        re.fullmatch(
            r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?", text
        )
        is None
    ):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a version, such as v1, or group/version, such as apps/v1"
        )
    return text


def address(text: str) -> str:
    """Parse an address to listen on for argparse."""
    try:
        return HTTPOptions(text).bind
    except ValueError as error:  # argparse would omit the reason
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """Parse a number of seconds for argparse."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def positive(text: str) -> int:
    """Parse a positive number, such as the number of workers, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def path(text: str) -> Path:
    """Parse the path of an existing file or directory for argparse."""
    if not os.path.exists(text):  # never raises an error
        raise argparse.ArgumentTypeError(f"there is no file or directory {text}")
    return Path(text)


def file(text: str) -> Path:
    """Parse the path of an existing file for argparse."""
    if not os.path.isfile(text):
        if os.path.exists(text):  # such as /dev/null, whose changes cannot be followed
            raise argparse.ArgumentTypeError(
                f"{text} is "
                + ("a directory" if os.path.isdir(text) else "no regular file")
            )
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)


class Output(logging.StreamHandler[TextIO]):
    """A log handler that writes to standard output, and ends the program when the pipe
    is closed (``… | head``).
    """

    def emit(self, record: logging.LogRecord) -> None:
        self.stream.write(self.format(record) + "\n")
        self.flush()


def log_to_output(logger: logging.Logger, form: str = "%(message)s") -> None:
    """Write a logger's messages from level INFO on to standard output, with times in
    Go's format (``2020/10/17 15:13:10``).
    """
    handler = Output(sys.stdout)
    handler.setFormatter(logging.Formatter(form, datefmt="%Y/%m/%d %H:%M:%S"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
