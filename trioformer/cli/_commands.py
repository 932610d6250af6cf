"""The table of the commands."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, Protocol, cast, final

import attrs

if TYPE_CHECKING:
    import argparse

    from ._arguments import Parser
    from ._session import Session


class CommandModule(Protocol):
    """What a module of a command has."""

    def add_flags(self, parser: Parser) -> None:
        """Add the flags and arguments of the command."""
        ...

    async def run(self, session: Session, flags: argparse.Namespace) -> int | None:
        """Run the command, and return the exit code; None is 0."""
        ...


@final
@attrs.frozen
class Command:
    """One command."""

    name: str
    """The words that call it, such as ``get`` or ``auth can-i``."""
    module: str
    """Its module in ``commands/``."""
    summary: str
    """What it does, for the list of the commands."""
    usage: str = ""
    """Its arguments, such as ``POD [-c CONTAINER] -- COMMAND [args...]``."""
    error_code: int = 1
    """The exit code of errors that have no other one."""

    def load(self) -> CommandModule:
        """Import its module."""
        return cast("CommandModule", importlib.import_module(f".commands.{self.module}", __package__))


COMMANDS: Final = (
    Command(
        "get",
        "_get",
        "Display one or many resources",
        "(TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...) [flags]",
    ),
    Command("describe", "_describe", "Show details of a specific resource", "(TYPE [NAME] | TYPE/NAME) [flags]"),
    Command("apply", "_apply", "Apply a configuration to a resource by file name or stdin", "-f FILENAME [flags]"),
    Command("create", "_create", "Create a resource from a file or from stdin", "-f FILENAME [flags]"),
    Command("delete", "_delete", "Delete resources", "([-f FILENAME] | TYPE [(NAME | -l label | --all)]) [flags]"),
    Command(
        "diff", "_diff", "Diff the live version against a would-be applied version", "-f FILENAME [flags]", error_code=2
    ),
    Command("watch", "_watch", "Show a live table of an informer's cache, with its health", "TYPE [flags]"),
    Command("events", "_events", "List events", "[(-o|--output=)json|yaml|...] [--for TYPE/NAME] [--watch]"),
    Command(
        "port-forward",
        "_port_forward",
        "Forward one or more local ports to a pod",
        "TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
    ),
    Command("explain", "_explain", "Get documentation for a resource", "TYPE[.fieldSpec] [--recursive]"),
    Command("top node", "_top", "Display resource usage of nodes", "[NAME | -l label]"),
    Command("top pod", "_top", "Display resource usage of pods", "[NAME | -l label]"),
    Command(
        "logs",
        "_logs",
        "Print the logs for a container in a pod",
        "[-f] [-p] (POD | TYPE/NAME | -l label) [-c CONTAINER]",
    ),
    Command(
        "exec", "_exec", "Execute a command in a container", "(POD | TYPE/NAME) [-c CONTAINER] -- COMMAND [args...]"
    ),
    Command("attach", "_attach", "Attach to a running container", "(POD | TYPE/NAME) [-c CONTAINER]"),
    Command(
        "cp",
        "_cp",
        "Copy files and directories to and from containers",
        "([NAMESPACE/]POD:PATH PATH | PATH [NAMESPACE/]POD:PATH)",
    ),
    Command(
        "wait",
        "_wait",
        "Wait for a specific condition on one or many resources",
        "(TYPE NAME | TYPE/NAME | TYPE (-l label | --all)) --for=create|delete|condition=…|jsonpath=…",
    ),
    Command("scale", "_scale", "Set a new size for a deployment, and the like", "--replicas=COUNT (TYPE NAME)"),
    Command("rollout status", "_rollout_status", "Show the status of the rollout", "(TYPE NAME | TYPE/NAME)"),
    Command("rollout restart", "_rollout_restart", "Restart a resource", "(TYPE [NAME] | TYPE/NAME ...)"),
    Command("label", "_label", "Update the labels on a resource", "(-f FILENAME | TYPE NAME) KEY=VALUE ... KEY-"),
    Command(
        "annotate", "_label", "Update the annotations on a resource", "(-f FILENAME | TYPE NAME) KEY=VALUE ... KEY-"
    ),
    Command("api-resources", "_api_resources", "Print the supported API resources on the server", "[flags]"),
    Command(
        "api-versions",
        "_api_versions",
        'Print the supported API versions on the server, in the form of "group/version"',
    ),
    Command(
        "auth can-i",
        "_auth_can_i",
        "Check whether an action is allowed",
        "VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
    ),
    Command("auth whoami", "_auth_whoami", "Experimental: Check self subject attributes"),
    Command("config view", "_config_view", "Display merged kubeconfig settings or a specified kubeconfig file"),
    Command("config current-context", "_config_current_context", "Display the current-context"),
    Command("config get-contexts", "_config_get_contexts", "Describe one or many contexts", "[NAME]"),
    Command("completion", "_completion", "Output shell completion code for bash or zsh", "SHELL"),
    Command("doctor", "_doctor", "Check what connects this machine with the cluster, a line for each check"),
    Command("version", "_version", "Print the client and server version information"),
)
"""All commands, in the order in which ``trioformer help`` lists them."""


def find_command(words: list[str]) -> tuple[Command | None, int]:
    """Return the command that the words begin with, and how many they are; None for a group of commands alone."""
    for count in (2, 1):
        name = " ".join(words[:count])
        for command in COMMANDS:
            if len(words) >= count and name in (command.name, _ALIASES.get(name)):
                return command, count
        if name in _ALIASES:
            return next(each for each in COMMANDS if each.name == _ALIASES[name]), count
    return None, 0


def commands_of(group: str) -> list[Command]:
    """Return the commands of a group, such as ``auth``."""
    return [each for each in COMMANDS if each.name.startswith(f"{group} ")]


_ALIASES: Final = {"top pods": "top pod", "top po": "top pod", "top nodes": "top node", "top no": "top node"}
