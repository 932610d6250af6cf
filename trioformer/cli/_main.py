"""Run a command, and report its errors."""

from __future__ import annotations

import difflib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, TextIO, cast

from .. import _run
from ..errors import TrioformerError
from ._arguments import Parser, add_common_flags, parse, split_command
from ._commands import COMMANDS, Command, find_command
from ._failures import CommandError, UsageError, describe_failure, failures_in
from ._session import Session
from ._streams import Output, open_standard_streams

if TYPE_CHECKING:
    from ..client import Client

__all__ = ["main", "run_command"]

PROGRAM = "trioformer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line tool with the given arguments or those of the process, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    open_standard_streams()
    with _hangups_as_terminations():
        return _run.run(_run_and_flush, given)


@contextmanager
def _hangups_as_terminations() -> Iterator[None]:
    """Treat SIGHUP as SIGTERM, so that ``cp`` deletes its temporary files when the terminal is closed."""
    if not hasattr(signal, "SIGHUP"):  # Windows
        yield
        return
    before = signal.getsignal(signal.SIGHUP)
    if before is not signal.SIG_DFL or signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:  # for example by nohup
        yield
        return
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


async def _run_and_flush(arguments: Sequence[str]) -> int:
    out = Output(sys.stdout)
    out.end_on_signals()
    try:
        code = await run_command(arguments, cast("TextIO", out))
        out.flush()
    except CommandError as exc:  # the output cannot be written
        sys.stderr.write(f"{describe_failure(exc, '')}\n")
        return 1
    # Exit codes have 32 bits on Windows.  A shell sees only the last 8 bits, but a failure must not become 0.
    return code & 0xFF or int(code != 0)


async def run_command(
    arguments: Sequence[str],
    out: TextIO | None = None,
    err: TextIO | None = None,
    environ: Mapping[str, str] | None = None,
    opener: Callable[..., AbstractAsyncContextManager[Client]] | None = None,
) -> int:
    """Run one command, print expected errors, and return the exit code.

    Args:
        arguments: The arguments of the tool.
        out: The standard output.  If None, the standard output of the process is used.
        err: The standard error.  If None, the standard error of the process is used.
        environ: The environment variables.  If None, the environment of the process is used.
        opener: A function that opens a client, for example for an embedded server.  If None, ``open_client()`` is used.
    """
    out = cast("TextIO", sys.stdout) if out is None else out
    err = cast("TextIO", sys.stderr) if err is None else err
    if list(arguments[:1]) == ["__complete"]:
        from ._complete import complete  # noqa: PLC0415  # only for shells

        return await complete(arguments[1:], out, os.environ if environ is None else environ, opener)
    before, words, rest = split_command(list(arguments))
    command, count = find_command(words)
    if command is None:
        return _without_command(words, [*before, *rest], out, err)
    parser = Parser(f"{PROGRAM} {command.name}")
    add_common_flags(parser)
    module = command.load()
    module.add_flags(parser)
    try:
        flags = parse(parser, [*before, *words[count:], *rest])
        if flags.wants_help and not command.connects:
            return _without_command(["help", command.name], [], out, err)
        if flags.wants_help:
            _print_help(command, parser, out)
            return 0
        _set_up_logging(flags.verbosity)
    except UsageError as exc:
        return _report_usage(exc, command, err)
    flags.command = command.name
    session = Session(flags, out, err, os.environ if environ is None else environ, opener)
    try:
        await session.load_stream()
        code = await module.run(session, flags) or 0
    except UsageError as exc:
        return _report_usage(exc, command, err)
    except (TrioformerError, CommandError, BaseExceptionGroup) as exc:
        return _report(exc, session, command)
    except ValueError:
        if not (wrong := list(filter(_is_bytes, arguments))):
            raise
        session.note(f"error: an argument is not valid UTF-8: {os.fsencode(wrong[0])!r}")
        return 1
    return code


def _report(error: BaseException, session: Session, command: Command) -> int:
    lines: list[str] = []
    code = 1
    for each in failures_in(error):
        if not isinstance(each, TrioformerError | CommandError):
            raise error
        lines.append(describe_failure(each, session.server))
        code = each.code if isinstance(each, CommandError) and each.code != 1 else code
    for line in dict.fromkeys(lines):
        session.note(line)
    return code


def _is_bytes(argument: str) -> bool:
    """Return whether an argument is not valid UTF-8.

    Python decodes invalid bytes as surrogates, which the API server does not accept.
    """
    return any("\udc80" <= character <= "\udcff" for character in argument)


def _report_usage(error: UsageError, command: Command, err: TextIO) -> int:
    err.write(f"error: {error}\nSee '{PROGRAM} {command.name} --help'.\n")
    return 1


def _without_command(words: list[str], given: list[str], out: TextIO, err: TextIO) -> int:
    """Print the help, or report that the command is unknown or missing."""
    if words[:1] == ["help"]:
        words = words[1:]
    command, _ = find_command(words)
    if command is not None:
        parser = Parser(f"{PROGRAM} {command.name}")
        command.load().add_flags(parser)
        _print_help(command, parser, out)
        return 0
    if words:
        similar = difflib.get_close_matches(words[0], [each.name for each in COMMANDS], n=1)
        hint = f"; did you mean {similar[0]}?" if similar else ""
        err.write(f"error: unknown command {words[0]!r} for {PROGRAM}{hint}\n")
        return 1
    if given and not {"-h", "--help"} & set(given):
        err.write(f"error: no command given; see '{PROGRAM} help'\n")
        return 1
    width = max(len(each.name) for each in COMMANDS) + 3
    listed = "".join(f"  {each.name:{width}}{each.summary}\n" for each in COMMANDS)
    out.write(
        f"{PROGRAM} shows a Kubernetes cluster as informers see it, and works with its pods.\n\n"
        f"Commands:\n{listed}\n"
        f"Usage:\n  {PROGRAM} [flags] COMMAND [arguments]\n\n"
        f"See '{PROGRAM} COMMAND --help' for the flags of a command.\n"
    )
    return 0


def _print_help(command: Command, parser: Parser, out: TextIO) -> None:
    parser.usage = f"{PROGRAM} {command.name} {command.usage}".rstrip()
    parser.description = f"{command.summary}."
    out.write(parser.format_help())


def _set_up_logging(level: int) -> None:
    logger = logging.getLogger("trioformer")
    if level > 0:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logger.setLevel(logging.DEBUG if level >= 4 else logging.INFO)
    elif not logging.getLogger().handlers:
        logger.setLevel(logging.CRITICAL)
