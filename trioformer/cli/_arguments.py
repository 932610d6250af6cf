"""The parser for command line arguments, and the flags that all commands share."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final, NoReturn, final

from ._failures import UsageError

__all__ = ["Parser", "add_common_flags", "duration", "parse", "split_command"]

_VALUED: Final = {
    "--as": "Username to impersonate for the operation.",
    "--as-group": "Group to impersonate for the operation, this flag can be repeated to specify multiple groups.",
    "--certificate-authority": "Path to a cert file for the certificate authority",
    "--context": "The name of the kubeconfig context to use",
    "--kubeconfig": "Path to the kubeconfig file to use for CLI requests.",
    "--token": "Bearer token for authentication to the API server",
}
_SHORT: Final = {"-n": "--namespace", "-s": "--server", "-v": "--v"}
_REPEATED: Final = ("--as-group",)


@final
class Parser(argparse.ArgumentParser):
    """A parser for the arguments of one command."""

    def __init__(self, command: str) -> None:
        super().__init__(prog=command, add_help=False, allow_abbrev=False, exit_on_error=False)
        self.switches: set[str] = {"--help", "-h"}
        """The flags that do not take a value."""
        self.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
        self.add_argument("-h", "--help", action="store_true", dest="wants_help", help=argparse.SUPPRESS)

    def add_switch(self, *names: str, help: str, default: bool = False, dest: str | None = None) -> None:  # noqa: A002
        """Add a flag that does not take a value."""
        self.switches.update(names)
        kwargs: dict[str, Any] = {} if dest is None else {"dest": dest}
        self.add_argument(*names, action="store_true", default=default, help=help, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise a :class:`UsageError` instead of exiting."""
        raise UsageError(message)


def add_common_flags(parser: Parser) -> None:
    """Add the flags that all commands share."""
    group = parser.add_argument_group("common")
    group.add_argument("-n", "--namespace", help="If present, the namespace scope for this CLI request")
    group.add_argument("-s", "--server", help="The address and port of the Kubernetes API server")
    text = "Print the log of the library: 1 for less, 4 for more, 6 to 9 with the requests"
    group.add_argument("-v", "--v", type=int, default=0, dest="verbosity", help=text)
    for name, text in _VALUED.items():
        if name in _REPEATED:
            group.add_argument(name, action="append", default=[], help=text)
        else:
            group.add_argument(name, help=text)
    parser.switches.add("--insecure-skip-tls-verify")
    group.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="Do not verify the certificate of the server"
    )


def split_command(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Split the arguments into the leading flags, the words before the next flag, and the remaining arguments."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-") and arguments[index] != "--":
        name, equals, _ = arguments[index].partition("=")
        has_value = name in _VALUED or name in _SHORT or name in ("--namespace", "--server", "--v")
        index += 2 if has_value and not equals else 1
    end = index
    while end < len(arguments) and not arguments[end].startswith("-"):
        end += 1
    return arguments[:index], arguments[index:end], arguments[end:]


def parse(parser: Parser, arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments of a command, with flags in any position.

    The attribute ``arguments`` of the result contains the positional arguments.  The attribute ``after_dashes``
    contains the words after ``--``, or None if the arguments do not contain ``--``.

    Raises:
        UsageError: If a flag is unknown, or if the value of a flag is missing or not valid.
    """
    after: list[str] | None = None
    if "--" in arguments:
        index = arguments.index("--")
        arguments, after = arguments[:index], arguments[index + 1 :]
    try:
        flags = parser.parse_intermixed_args(arguments)
    except argparse.ArgumentError as exc:
        raise UsageError(str(exc)) from exc
    flags.after_dashes = after
    return flags


_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Convert a duration, such as ``1m30s``, to seconds.

    This function is passed as ``type=`` to ``add_argument()``.
    """
    parts = re.findall(r"([0-9]{1,9})([smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid duration; use for example 30s or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
