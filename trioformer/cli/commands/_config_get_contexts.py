"""``config get-contexts``: the contexts of the kubeconfig."""

from __future__ import annotations

import argparse

from .._arguments import Parser
from .._failures import CommandError
from .._kubeconfig import read_kubeconfig
from .._session import Session
from ..printing import TableWriter

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``config get-contexts``."""
    parser.add_argument("-o", "--output", default="", help="Output format. One of: (name).")
    parser.add_switch("--no-headers", help="Don't print headers.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``config get-contexts``."""
    if flags.output not in ("", "name"):
        raise CommandError(
            f"--output {flags.output} is not available in trioformer config get-contexts; resetting to default output "
            "format"
        )
    config = read_kubeconfig(session)
    contexts = {each["name"]: each.get("context") or {} for each in config["contexts"] or []}
    missing = [name for name in flags.arguments if name not in contexts]
    names = sorted(name for name in (flags.arguments or contexts) if name in contexts)
    if flags.output == "name":
        for name in names:
            session.print(name)
    else:
        writer = TableWriter(session.out)
        if not flags.no_headers:
            writer.add(["CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"])
        for name in names:
            context = contexts[name]
            cells = [str(context.get(key) or "") for key in ("cluster", "user", "namespace")]
            writer.add(["*" if name == config["current-context"] else " ", name, *cells])
        writer.flush()
    if missing:
        raise CommandError("\n".join(f"context {name} not found" for name in missing))
    return None
