"""The command ``version``, which prints the versions of this tool and of the server."""

from __future__ import annotations

import argparse
from typing import Any

from ..._version import __version__
from .._arguments import Parser
from .._failures import UsageError
from .._session import Session

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``version``."""
    parser.add_switch("--client", help="Print only the version of this tool")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``version``."""
    if flags.arguments:
        raise UsageError(f"unexpected arguments: {' '.join(flags.arguments)}")
    session.print(f"client: {__version__}")
    if not flags.client:
        async with session.open_client() as client:
            found: Any = (await client.request("GET", "/version")).json()
        session.print(f"server: {found['gitVersion']}")
    return None
