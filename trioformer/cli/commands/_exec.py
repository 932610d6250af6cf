"""The command ``exec``, which executes a command in a container (kubectl ``pkg/cmd/exec``)."""

from __future__ import annotations

import argparse

from ...pods import exec_in_pod
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._session import Session
from ._interactive import add_process_flags, connect, has_terminal
from ._pods import choose_container, find_container, find_pod, has_ended, pods_api

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``exec``."""
    add_process_flags(parser)


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``exec``."""
    command = flags.after_dashes
    if command is None and len(flags.arguments) > 1:
        raise UsageError("the command must follow --, for example `trioformer exec web-0 -- ls`")
    if not any(flags.arguments):
        raise CommandError("a pod or TYPE/NAME is required")
    if not command:
        raise CommandError("a command after -- is required")
    if len(flags.arguments) > 1:
        raise CommandError(f"expected one pod before --, got {len(flags.arguments)}: {' '.join(flags.arguments)}")
    async with session.open_client() as client:
        pod = await find_pod(client, session, flags.arguments[:1], patience=flags.pod_running_timeout, verb="attach to")
        if phase := has_ended(pod):
            raise CommandError(f"cannot exec into a container in a completed pod; current phase is {phase}")
        if flags.container:
            container = find_container(pod, flags.container)
        else:
            container = choose_container(pod, "", None if flags.quiet else session.note)
        metadata = pod["metadata"]
        tty = has_terminal(session, stdin=flags.stdin, tty=flags.tty, quiet=flags.quiet)
        async with exec_in_pod(
            pods_api(client, metadata["namespace"]),
            metadata["name"],
            command,
            container=container["name"],
            stdin=flags.stdin,
            tty=tty,
        ) as process:
            code = await connect(session, process)
    if code:
        raise CommandError(f"command terminated with exit code {code}", code=code, is_bare=True)
    return None
