"""``api-versions``: the versions of API groups that the server serves."""

from __future__ import annotations

import argparse

from .._arguments import Parser
from .._failures import UsageError
from .._session import Session

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """This command has no flags of its own."""


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``api-versions``."""
    if flags.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(flags.arguments)}]")
    async with session.open_client() as client:
        core = (await client.request("GET", "/api")).json()
        groups = (await client.request("GET", "/apis")).json()
    versions = list(core.get("versions") or []) if isinstance(core, dict) else []
    if isinstance(groups, dict):
        for group in groups.get("groups") or []:
            versions += [str(each["groupVersion"]) for each in group.get("versions") or []]
    for version in sorted(versions):
        session.print(version)
    return None
