"""The table of commands."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, Protocol, cast, final

import attrs

if TYPE_CHECKING:
    import argparse

    from ._arguments import Parser
    from ._session import Session


class CommandModule(Protocol):
    """The interface of a module that implements a command."""

    def add_flags(self, parser: Parser) -> None:
        """Add the flags and arguments of the command."""

    async def run(self, session: Session, flags: argparse.Namespace) -> int | None:
        """Run the command, and return the exit code.  None means 0."""


@final
@attrs.frozen
class Command:
    """A command of the tool."""

    name: str
    """The name of the command, such as ``get``."""
    module: str
    """The name of the module in ``commands/``."""
    summary: str
    """The description in the list of commands."""
    usage: str = ""
    """The arguments for the help, such as ``POD [-c CONTAINER] -- COMMAND [args...]``."""
    connects: bool = True
    """Whether the command connects to a cluster.  Otherwise, its help does not list the flags for the connection."""

    def load(self) -> CommandModule:
        """Import the module of the command."""
        return cast("CommandModule", importlib.import_module(f".commands.{self.module}", __package__))


COMMANDS: Final = (
    Command(
        "get",
        "_get",
        "Display one or many resources",
        "(TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...) [flags]",
    ),
    Command("watch", "_watch", "Show a live table of an informer's cache, with its health", "TYPE [flags]"),
    Command("events", "_events", "List events", "[(-o|--output=)json|yaml|...] [--for TYPE/NAME] [--watch]"),
    Command(
        "port-forward",
        "_port_forward",
        "Forward one or more local ports to a pod",
        "TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
    ),
    Command(
        "logs",
        "_logs",
        "Print the logs for a container in a pod",
        "[-f] [-p] (POD | TYPE/NAME | -l label) [-c CONTAINER]",
    ),
    Command(
        "run", "_run", "Execute a command in each running pod of a selector", "-l label [flags] -- COMMAND [args...]"
    ),
    Command(
        "exec", "_exec", "Execute a command in a container", "(POD | TYPE/NAME) [-c CONTAINER] -- COMMAND [args...]"
    ),
    Command(
        "cp",
        "_cp",
        "Copy files and directories to and from containers",
        "([NAMESPACE/]POD:PATH PATH | PATH [NAMESPACE/]POD:PATH)",
    ),
    Command(
        "webhooks",
        "_webhooks",
        "Print the objects that tell the API server to call webhooks",
        "manifests MODULE:VARIABLE --service NAME --namespace NAMESPACE [flags]",
    ),
    Command("completion", "_completion", "Output shell completion code for bash or zsh", "SHELL", connects=False),
    Command("doctor", "_doctor", "Check the connection to the cluster, and print a line for each check"),
    Command(
        "init",
        "_init",
        "Write the project of an operator",
        "NAME --kind KIND [--group GROUP] [--webhook]",
        connects=False,
    ),
    Command("version", "_version", "Print the client and server version information"),
)
"""All commands, in the order in which ``trioformer help`` lists them."""


def find_command(words: list[str]) -> tuple[Command | None, int]:
    """Return the command at the beginning of the words, or None, and the number of words in the command's name."""
    found = next((each for each in COMMANDS if words[:1] == [each.name]), None)
    return found, int(found is not None)
