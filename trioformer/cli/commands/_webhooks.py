"""The command ``webhooks``, which prints the objects that tell kube-apiserver to call webhooks."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from ...crds import crd_of
from ...manifests import dump_manifests
from ...webhooks import Webhooks
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._session import Session

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``webhooks``."""
    parser.add_argument("--service", help="The name of the Service of the webhooks, in the namespace of --namespace")
    parser.add_argument("--port", type=int, default=443, help="The port of the Service")
    parser.add_argument("--ca-file", type=Path, help="A PEM file with the certificates that kube-apiserver trusts")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``webhooks manifests``."""
    if flags.arguments[:1] != ["manifests"] or len(flags.arguments) != 2:
        raise UsageError("write `webhooks manifests MODULE:VARIABLE`")
    if not flags.service or not flags.namespace:
        raise UsageError("--service and --namespace are required: kube-apiserver calls the webhooks there")
    webhooks = _webhooks_at(flags.arguments[1])
    service, namespace, port = flags.service, flags.namespace, flags.port
    try:
        ca = flags.ca_file.read_bytes() if flags.ca_file else None
        admission = webhooks.configurations(service=service, namespace=namespace, port=port, ca=ca)
    except OSError as exc:
        raise CommandError(f"{flags.ca_file} cannot be read: {exc.strerror}") from exc
    except ValueError as exc:
        raise CommandError(f"--{exc}".replace("--ca: ", f"{flags.ca_file}: ", 1)) from exc
    definitions = [
        crd_of(
            *spokes, hub, conversion=webhooks.conversion(hub, service=service, namespace=namespace, port=port, ca=ca)
        )
        for hub, spokes in webhooks.convert.items()
    ]
    session.print(dump_manifests([*definitions, *admission]), end="")
    return None


def _webhooks_at(text: str) -> Webhooks:
    """Import a declaration. As with ``python -m``, modules are also searched for in the current directory."""
    name, _, variable = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(name)
    except (ImportError, ValueError) as exc:
        raise CommandError(f"{name or 'the module'} cannot be imported: {exc}") from exc
    found = getattr(module, variable, None)
    if not isinstance(found, Webhooks):
        raise CommandError(f"{text}: there are no Webhooks with this name; write MODULE:VARIABLE")
    return found
