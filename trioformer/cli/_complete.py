"""Word completion on the command line, for the scripts that ``trioformer completion`` prints.

The shell runs ``trioformer __complete SHELL …`` whenever the user presses Tab. The first line of the output is an
instruction for the shell: ``files`` to complete file names, ``nospace`` to omit the trailing space, or an empty line.
Each further line contains a candidate.  In zsh, a tab and a description may follow the candidate. If an error occurs,
the output contains no candidates and no message, because a message would garble the command line.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias, final

import attrs
import trio

from .._text import one_line
from ..errors import TrioformerError
from ._arguments import Parser, add_common_flags, parse, split_command
from ._commands import COMMANDS, Command, find_command
from ._failures import CommandError, UsageError
from ._session import Session

if TYPE_CHECKING:
    from ..client import Client
    from . import _complete_names

__all__ = ["COMPLETE", "complete"]

COMPLETE: Final = "__complete"
"""The hidden command that the shell runs."""
_PATIENCE: Final = 5.0
"""The time to wait for the cluster, in seconds."""
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)

Candidates: TypeAlias = Mapping[str, str]
"""The candidates, each with a description, which may be empty."""


@final
@attrs.frozen
class _Result:
    candidates: Candidates = attrs.field(factory=dict)
    takes_files: bool = False


_FILES: Final = _Result(takes_files=True)
_NOTHING: Final = _Result()
_COMMANDS: Final = _Result({each.name: each.summary for each in COMMANDS})

_FILE_FLAGS: Final = frozenset({"kubeconfig", "certificate_authority"})
_SHELLS: Final = ("bash", "zsh")


async def complete(
    arguments: Sequence[str],
    out: TextIO,
    environ: Mapping[str, str],
    opener: Callable[..., AbstractAsyncContextManager[Client]] | None,
) -> int:
    """Print the candidates for the last word of a command line.

    Args:
        arguments: The name of the shell and the command line.  In bash, the second argument contains the characters
            that separate words, and the third argument is the whole line.  In zsh, each word is a separate argument.
        out: The stream to print the candidates to.
        environ: The environment variables.
        opener: A function that opens a client.  If None, ``open_client()`` is used.
    """
    shell, *rest = arguments or [""]
    if shell == "bash" and len(rest) == 2:
        breaks, line = rest
        words = _words_of(line)
    else:
        breaks, words = "", rest if shell == "zsh" else []
    if not words:
        return 1
    result = _NOTHING
    with trio.move_on_after(_PATIENCE):
        try:
            result = await _result(words, environ, opener)
        except (TrioformerError, CommandError, UsageError, BaseExceptionGroup):
            result = _NOTHING
    last = words[-1]
    # A shell would treat a line end as another candidate, and a terminal would execute other control characters.
    found = {
        text: one_line(about)
        for text, about in result.candidates.items()
        if text.startswith(last) and text == one_line(text)
    }
    # bash treats the text after "=" or ":" as a separate word, and replaces only that.
    cut = max((last.rfind(each) + 1 for each in breaks if each in "=:"), default=0)
    has_space = not any(text.endswith(("=", "/", ":")) for text in found)
    print("files" if result.takes_files else "" if has_space else "nospace", file=out)
    for text, about in found.items():
        print(_quoted(text[cut:]) if shell == "bash" else f"{text}\t{about}" if about else text, file=out)
    return 0


def _quoted(text: str) -> str:
    """Escape special characters for bash, as ``printf %q`` does.  zsh does not require this."""
    return re.sub(r"[^\w@%+=:,./-]", r"\\\g<0>", text)


def _words_of(line: str) -> list[str]:
    """Split a command line as a shell does, and return the words after the program's name.

    The last word is empty if the line ends with a space.
    """
    for closing in ("", "'", '"'):  # a quote in the last word may not be closed yet
        try:
            words = shlex.split(f"{line}{closing}")
        except ValueError:
            continue
        if not closing and (not line or (line[-1].isspace() and not line.endswith("\\ "))):
            words.append("")
        while words and _ASSIGNMENT.fullmatch(words[0]):
            del words[0]
        return words[1:]
    return []


async def _result(
    words: Sequence[str],
    environ: Mapping[str, str],
    opener: Callable[..., AbstractAsyncContextManager[Client]] | None,
) -> _Result:
    *given, last = words
    if "--" in given:
        return _FILES
    before, names, rest = split_command(given)
    if names[:1] == ["help"]:
        return _COMMANDS
    command, count = find_command(names)
    if command is None and not rest:
        parser = _parser(None)
        if (flag := _open_flag(parser, given)) is None and not last.startswith("-"):
            return _COMMANDS if not names else _NOTHING
        given = before
    elif command is None:
        return _NOTHING
    else:
        parser = _parser(command)
        flag = _open_flag(parser, given)
        given = [*before, *names[count:], *rest]
    name, equals, _ = last.partition("=")
    prefix = ""
    if flag is None and last.startswith("--") and equals and name in parser._option_string_actions:
        flag, prefix, last = parser._option_string_actions[name].dest, f"{name}=", last.removeprefix(f"{name}=")
    elif flag is not None:
        given = given[:-1]
    elif last.startswith("-"):
        return _Result(_flags(parser))
    try:
        flags = parse(parser, given)
    except UsageError:
        return _NOTHING
    flags.last = last
    asking = _Asking(command, flags, Session(flags, io.StringIO(), io.StringIO(), environ, opener))
    result = await (asking.argument() if flag is None else asking.value(flag, _choices(parser, flag)))
    return _Result({f"{prefix}{text}": about for text, about in result.candidates.items()}, result.takes_files)


def _parser(command: Command | None) -> Parser:
    parser = Parser("trioformer")
    add_common_flags(parser)
    if command is not None:
        command.load().add_flags(parser)
    return parser


def _open_flag(parser: Parser, given: Sequence[str]) -> str | None:
    """Return the ``dest`` of the last flag if the flag still requires a value, or None otherwise."""
    last = given[-1] if given else ""
    known = parser._option_string_actions
    if last.startswith("--"):
        action = known.get(last)
        return None if action is None or last in parser.switches or action.nargs == "?" else action.dest
    if last.startswith("-"):
        for index, letter in enumerate(last[1:], 2):
            action = known.get(f"-{letter}")
            if action is None:
                return None
            if f"-{letter}" not in parser.switches:
                return action.dest if index == len(last) else None
    return None


def _choices(parser: Parser, flag: str) -> Sequence[str]:
    return next((tuple(each.choices) for each in parser._actions if each.dest == flag and each.choices), ())


def _flags(parser: Parser) -> Candidates:
    actions = parser._actions
    return {
        name: (action.help or "") if action.help != argparse.SUPPRESS else ""
        for action in sorted(actions, key=lambda each: each.dest)
        for name in action.option_strings
        if name.startswith("--")
    }


@final
@attrs.frozen
class _Asking:
    """The part of the command line that precedes the word to complete."""

    _command: Command | None
    _flags: argparse.Namespace
    _session: Session

    async def value(self, flag: str, choices: Sequence[str]) -> _Result:
        """Return candidates for the value of a flag."""
        if flag in _FILE_FLAGS:
            return _FILES
        if choices:
            return _Result(dict.fromkeys(filter(None, choices), ""))
        from . import _complete_names as names  # noqa: PLC0415  # commands and flags need no cluster

        if flag == "context":
            return _Result(names.contexts(self._session))
        if flag == "namespace":
            return await self._ask(names.namespaces)
        if flag == "container":
            return await self._ask(names.containers)
        return _NOTHING

    async def argument(self) -> _Result:
        """Return candidates for a positional argument."""
        given = self._flags.arguments
        name = self._command.name if self._command is not None else ""
        if name == "completion":
            return _Result(dict.fromkeys(_SHELLS, "")) if not given else _NOTHING
        from . import _complete_names as names  # noqa: PLC0415  # as above

        if name == "cp":
            return _Result((await self._ask(names.pods_to_copy)).candidates, takes_files=True)
        if name == "get":
            return await self._ask(names.kinds_and_objects)
        asks = {
            "exec": names.pods,
            "logs": names.pods,
            "port-forward": names.pods,
            "watch": names.kinds,
        }
        return await self._ask(asks[name]) if name in asks and not given else _NOTHING

    async def _ask(self, ask: _complete_names.Ask) -> _Result:
        async with self._session.open_client() as client:
            return _Result(await ask(client, self._session, self._flags))
