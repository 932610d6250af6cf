"""Finds the command, runs it, and reports what went wrong."""

from __future__ import annotations

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
    """Run the command line tool, and return its exit code.

    Args:
        arguments: The arguments; None for those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    open_standard_streams()
    with _hangups_as_terminations():
        return _run.run(_run_and_flush, given)


@contextmanager
def _hangups_as_terminations() -> Iterator[None]:
    """End in order also when the terminal is closed: nothing of what ``cp`` writes for a while is left."""
    if not hasattr(signal, "SIGHUP"):  # Windows
        yield
        return
    before = signal.getsignal(signal.SIGHUP)
    if before is not signal.SIG_DFL or signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:  # such as by nohup
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
    # Processes of Windows have codes of 32 bits; a shell sees the last 8, as after kubectl, and a failure stays one.
    return code & 0xFF or int(code != 0)


async def run_command(
    arguments: Sequence[str],
    out: TextIO | None = None,
    err: TextIO | None = None,
    environ: Mapping[str, str] | None = None,
    opener: Callable[..., AbstractAsyncContextManager[Client]] | None = None,
) -> int:
    """Run one command, and return its exit code; what a user can cause is reported, not raised.

    Args:
        arguments: The arguments of the tool.
        out: Its standard output; None for that of the process.
        err: Its standard error; None for that of the process.
        environ: The environment variables; None for those of the process.
        opener: Opens a client instead of ``open_client()``, such as one of an embedded server.
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
        session.note(f"error: an argument is not UTF-8: {os.fsencode(wrong[0])!r}")
        return 1
    if session.warnings and flags.warnings_as_errors:
        many = "warnings" if session.warnings > 1 else "warning"
        session.note(f"error: {session.warnings} {many} received")
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
    """Whether an argument is not UTF-8; Python makes surrogates of the bytes, and the API accepts none."""
    return any("\udc80" <= character <= "\udcff" for character in argument)


def _report_usage(error: UsageError, command: Command, err: TextIO) -> int:
    err.write(f"error: {error}\n")
    name = f"{PROGRAM} {command.name}"
    err.write(f"See '{name} --help' for usage.\n" if error.is_flag else f"See '{name} -h' for help and examples\n")
    return 1


def _without_command(words: list[str], given: list[str], out: TextIO, err: TextIO) -> int:
    wants_help = any(each in ("-h", "--help", "help") for each in [*words, *given])
    words = [word for word in words if word != "help"]
    if wants_help and words and (command := find_command(words)[0]) is not None:
        parser = Parser(f"{PROGRAM} {command.name}")
        command.load().add_flags(parser)
        _print_help(command, parser, out)
        return 0
    if not words and not wants_help:
        parser = Parser(PROGRAM)
        add_common_flags(parser)
        try:
            parse(parser, given)
        except UsageError as exc:
            err.write(f"error: {exc}\nSee '{PROGRAM} --help' for usage.\n")
            return 1
    if words:
        err.write(f'error: unknown command "{words[0]}" for "{PROGRAM}"\n')
        if similar := _similar(words):
            err.write(f"\nDid you mean this?\n\t{similar}\n")
        return 1
    out.write(
        f"{PROGRAM} talks to a Kubernetes cluster, with the commands, the flags and the output of kubectl.\n\n"
        f"Commands:\n{_listed(COMMANDS)}\n"
        f"Usage:\n  {PROGRAM} [flags] COMMAND [arguments]\n\n"
        f'Use "{PROGRAM} COMMAND --help" for more information about a given command.\n'
    )
    return 0


def _listed(commands: Sequence[Command]) -> str:
    width = max(len(each.name) for each in commands) + 3
    return "".join(f"  {each.name:{width}}{each.summary}\n" for each in commands)


def _similar(words: list[str]) -> str:
    import difflib  # noqa: PLC0415  # only after a mistake

    names = [each.name for each in COMMANDS]
    found = difflib.get_close_matches(words[0], names, n=1)
    return found[0] if found else ""


def _print_help(command: Command, parser: Parser, out: TextIO) -> None:
    out.write(f"{command.summary}.\n\nUsage:\n  {PROGRAM} {command.name}")
    out.write(f" {command.usage}\n" if command.usage else "\n")
    texts = []
    for action in parser._actions:
        if action.help and action.help != "==SUPPRESS==" and action.option_strings:
            names = ", ".join(sorted(action.option_strings, key=len))
            texts.append((names if names in parser.switches or action.nargs == 0 else f"{names}=…", action.help))
    if texts:
        out.write("\nOptions:\n")
        for names, text in sorted(texts, key=lambda one: one[0].lstrip("-")):
            out.write(f"    {names}\n        {text}\n")


def _set_up_logging(verbosity: str) -> None:
    try:
        level = int(verbosity)
    except ValueError:
        raise UsageError(
            f'invalid argument "{verbosity}" for "-v, --v" flag: strconv.ParseInt: parsing "{verbosity}": '
            "invalid syntax"
        ) from None
    logger = logging.getLogger("trioformer")
    if level > 0:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logger.setLevel(logging.DEBUG if level >= 4 else logging.INFO)
        # kubectl does not log who may read a kubeconfig, and each command would repeat it.
        logging.getLogger("trioformer.kubeconfig.permissions").setLevel(logging.CRITICAL)
    elif not logging.getLogger().handlers:
        logger.setLevel(logging.CRITICAL)
