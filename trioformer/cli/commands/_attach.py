"""``attach``: the input and output of the process that a container runs (kubectl ``pkg/cmd/attach``)."""

from __future__ import annotations

import argparse

from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._session import Session
from .._values import duration_value
from ._interactive import add_process_flags, connect, has_terminal, refused_as_by_kubectl
from ._pods import choose_container, container_of, find_pod, has_ended, pods_api

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``attach``."""
    add_process_flags(parser)


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``attach``."""
    names = flags.arguments + (flags.after_dashes or [])
    if not names:
        raise CommandError("at least 1 argument is required for attach")
    if len(names) > 2:
        raise CommandError(
            f"expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw {len(names)}: [{' '.join(names)}]"
        )
    patience = duration_value(flags.pod_running_timeout, "--pod-running-timeout")
    if patience <= 0:
        raise UsageError("--pod-running-timeout must be higher than zero")
    async with session.open_client() as client:
        pod = await find_pod(client, session, names, patience=patience, verb="attach to")
        metadata = pod["metadata"]
        if phase := has_ended(pod):
            raise CommandError(f"cannot attach a container in a completed pod; current phase is {phase}")
        try:
            container = choose_container(pod, flags.container, None if flags.quiet else session.note)
        except CommandError as exc:
            raise CommandError(f"cannot attach to the container: {exc}") from exc
        name = container["name"]
        if flags.tty and not container.get("tty") and not flags.quiet:
            session.note(f"error: Unable to use a TTY - container {name} did not allocate one")
        # What such a container writes is one stream, so the request must be for a terminal, too.
        tty = has_terminal(session, stdin=flags.stdin, tty=bool(container.get("tty")), quiet=flags.quiet)
        if not flags.quiet:
            session.note(
                "All commands and output from this session will be recorded in container logs, including credentials "
                "and sensitive information passed through the command prompt.\n"
                "If you don't see a command prompt, try pressing enter."
            )
        with refused_as_by_kubectl():
            async with pods_api(client, metadata["namespace"]).attach(
                metadata["name"], container=name, stdin=flags.stdin, tty=tty
            ) as process:
                code = await connect(session, process)
    if code:
        raise CommandError(f"command terminated with exit code {code}", code=code, is_bare=True)
    if tty and not flags.quiet:
        session.print(_reattach(pod, name))
    return None


def _reattach(pod: dict[str, object], name: str) -> str:
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    command = f"'trioformer attach {metadata['name']} -c {name} -n {metadata['namespace']} -i -t'"
    spec = pod.get("spec")
    usual = (
        {"spec": {key: value for key, value in spec.items() if key != "ephemeralContainers"}}
        if isinstance(spec, dict)
        else {}
    )
    if container_of(usual, name) is None:
        return (
            "Session ended, the ephemeral container will not be restarted but may be reattached using "
            f"{command} if it is still running"
        )
    return f"Session ended, resume using {command} command"
