"""Parses arguments as kubectl does, and has the flags that all commands share.

The parser is argparse's, with what kubectl's does otherwise: flags stand anywhere, also before the command,
``--flag=false`` switches a flag off, nothing is abbreviated, and errors are in kubectl's words.
"""

from __future__ import annotations

import argparse
from typing import Any, Final, NoReturn, final

from ._failures import UsageError

__all__ = ["Parser", "add_common_flags", "parse", "split_command"]

_TRUE: Final = ("true", "True", "TRUE", "t", "T", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "F", "0")

_OFF: Final = "!"
"""Marks a flag that is switched off: ``--watch=false``."""

_VALUED: Final = {
    "--as": "Username to impersonate for the operation.",
    "--as-group": "Group to impersonate for the operation, this flag can be repeated to specify multiple groups.",
    "--as-uid": "UID to impersonate for the operation.",
    "--as-user-extra": "User extras to impersonate for the operation, this flag can be repeated.",
    "--cache-dir": "Accepted and ignored: there is no cache.",
    "--certificate-authority": "Path to a cert file for the certificate authority",
    "--client-certificate": "Path to a client certificate file for TLS",
    "--client-key": "Path to a client key file for TLS",
    "--cluster": "The name of the kubeconfig cluster to use",
    "--context": "The name of the kubeconfig context to use",
    "--kubeconfig": "Path to the kubeconfig file to use for CLI requests.",
    "--password": "Password for basic authentication to the API server",
    "--proxy-url": "URL of the proxy to the API server",
    "--request-timeout": "How long to wait for the response to a single request, such as 1s or 2m. 0 means no limit.",
    "--tls-server-name": "Server name to use for server certificate validation",
    "--token": "Bearer token for authentication to the API server",
    "--user": "The name of the kubeconfig user to use",
    "--username": "Username for basic authentication to the API server",
}
_SHORT: Final = {"-n": "--namespace", "-s": "--server", "-v": "--v"}
_REPEATED: Final = ("--as-group", "--as-user-extra")


@final
class Parser(argparse.ArgumentParser):
    """The parser of one command."""

    def __init__(self, command: str) -> None:
        super().__init__(prog=command, add_help=False, allow_abbrev=False, exit_on_error=False)
        self.switches: set[str] = {"--help", "-h"}
        """The flags without a value."""
        self.add_argument("-h", "--help", action="store_true", dest="wants_help", help=argparse.SUPPRESS)

    def add_switch(self, *names: str, help: str, default: bool = False, dest: str | None = None) -> None:  # noqa: A002
        """Add a flag without a value, which ``--flag=true`` and ``--flag=false`` set as well."""
        self.switches.update(names)
        kwargs: dict[str, Any] = {} if dest is None else {"dest": dest}
        self.add_argument(*names, action="store_true", default=default, help=help, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the arguments.

        Raises:
            UsageError: Always.
        """
        raise UsageError(message)


def add_common_flags(parser: Parser) -> None:
    """Add the flags that all commands have."""
    group = parser.add_argument_group("common")
    group.add_argument("-n", "--namespace", help="If present, the namespace scope for this CLI request")
    group.add_argument("-s", "--server", help="The address and port of the Kubernetes API server")
    group.add_argument("-v", "--v", default="0", dest="verbosity", help="number for the log level verbosity")
    for name, text in _VALUED.items():
        if name in _REPEATED:
            group.add_argument(name, action="append", default=[], help=text)
        else:
            group.add_argument(name, help=text)
    for name, text in (
        ("--insecure-skip-tls-verify", "If true, the server's certificate will not be checked for validity."),
        ("--disable-compression", "If true, opt-out of response compression for all requests to the server"),
        (
            "--warnings-as-errors",
            "Treat warnings received from the server as errors and exit with a non-zero exit code",
        ),
    ):
        parser.switches.add(name)
        group.add_argument(name, action="store_true", help=text)


def split_command(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Split arguments at the words that name a command.

    Returns:
        What stands before the first word, which are common flags; the words, up to the first flag; and the rest.
    """
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
    """Parse the arguments of a command.

    The arguments that are no flags are in ``flags.arguments``, and what follows ``--`` in ``flags.after_dashes``, which
    is None without ``--``.

    Raises:
        UsageError: A flag is unknown, or has no value or a wrong one.
    """
    after: list[str] | None = None
    if "--" in arguments:
        index = arguments.index("--")
        arguments, after = arguments[:index], arguments[index + 1 :]
    options, words = _sort(parser, arguments)
    off: set[str] = set()
    for option in options:
        name = option.removeprefix(_OFF)
        if name in parser.switches:
            (off.add if option.startswith(_OFF) else off.discard)(parser._option_string_actions[name].dest)
    options = [option for option in options if not option.startswith(_OFF)]
    try:
        flags, unknown = parser.parse_known_args(options)
    except argparse.ArgumentError as exc:
        raise UsageError(_explained(exc)) from exc
    assert not unknown, unknown
    for dest in off:
        setattr(flags, dest, False)
    flags.arguments = words
    flags.after_dashes = after
    return flags


def _sort(parser: Parser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """Separate flags with their values from the other arguments, in the form that argparse understands alone."""
    known = parser._option_string_actions
    options: list[str] = []
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
        elif argument.startswith("--"):
            name, equals, value = argument.partition("=")
            if name not in known:
                raise UsageError(f"unknown flag: {name}", is_flag=True)
            if name in parser.switches:
                options.append(_switch(parser, name, value) if equals else name)
            elif equals:
                options.append(argument)
            else:
                options.append(f"{name}={_value(rest, name, f'flag needs an argument: {name}')}")
        else:
            _sort_short(parser, argument, rest, options)
    return options, words


def _switch(parser: Parser, name: str, value: str) -> str:
    """Return the option for ``--watch=true`` or ``-w=false``."""
    if value not in (*_TRUE, *_FALSE):
        problem = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise UsageError(f'invalid argument "{value}" for "{_both(parser, name)}" flag: {problem}', is_flag=True)
    return f"{_OFF}{name}" if value in _FALSE else name


def _sort_short(parser: Parser, argument: str, rest: Any, options: list[str]) -> None:
    """Take ``-A``, ``-it``, ``-nkube-system``, ``-o=yaml`` or ``-o yaml``."""
    known = parser._option_string_actions
    letters = argument[1:]
    while letters:
        name = f"-{letters[0]}"
        if name not in known:
            raise UsageError(f"unknown shorthand flag: '{letters[0]}' in {argument}", is_flag=True)
        letters = letters[1:]
        if name in parser.switches:
            if letters.startswith("="):
                options.append(_switch(parser, name, letters[1:]))
                return
            options.append(name)
            continue
        whole = next(each for each in known[name].option_strings if each.startswith("--"))
        value = (
            letters.removeprefix("=")
            if letters
            else _value(rest, name, f"flag needs an argument: '{name[1]}' in {argument}")
        )
        options.append(f"{whole}={value}")
        return


def _value(rest: Any, _: str, problem: str) -> str:
    for value in rest:
        return str(value)
    raise UsageError(problem, is_flag=True)


def _both(parser: Parser, name: str) -> str:
    return ", ".join(sorted(parser._option_string_actions[name].option_strings, key=len))


def _explained(error: argparse.ArgumentError) -> str:
    name = (error.argument_name or "").replace("/", ", ")
    return f"{error.message} for {name}" if name else error.message
