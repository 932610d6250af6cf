"""``config current-context``: the name of the current context."""

from __future__ import annotations

import argparse

from .._arguments import Parser
from .._failures import CommandError
from .._kubeconfig import read_kubeconfig
from .._session import Session

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """This command has no flags of its own."""


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``config current-context``."""
    name = flags.context or read_kubeconfig(session)["current-context"]
    if not name:
        raise CommandError("current-context is not set")
    session.print(str(name))
    return None
