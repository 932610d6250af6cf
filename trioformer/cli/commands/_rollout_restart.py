"""``rollout restart``: new pods, by an annotation of the template (kubectl ``pkg/polymorphichelpers``)."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...errors import TrioformerError
from .._arguments import Parser
from .._failures import CommandError
from .._session import Session
from ._objects import Found, add_result_flags, make_reporter, raise_all, read_objects

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_ANNOTATION: Final = "kubectl.kubernetes.io/restartedAt"
_KINDS: Final = ("DaemonSet", "Deployment", "StatefulSet")


def add_flags(parser: Parser) -> None:
    """Add the flags of ``rollout restart``."""
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_argument("--field-manager", default="kubectl-rollout", help="Name of the manager of the changed field.")
    add_result_flags(parser)


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``rollout restart``."""
    report = make_reporter(session, flags, "restarted")
    if not flags.arguments:
        raise CommandError("required resource not specified")
    async with session.open_client() as client:
        found, errors = await read_objects(client, session, flags.arguments, selector=flags.selector, selects_all=True)
        if not found and not errors:
            session.note(f"No resources found in {session.namespace} namespace.")
        for each in found:
            try:
                report(await _restart(client, each, flags.field_manager))
            except CommandError as exc:
                errors.append(exc)
            except TrioformerError as exc:
                errors.append(CommandError(f"failed to patch: {getattr(exc, 'status_message', exc)}"))
    raise_all(errors)
    return None


async def _restart(client: Client, found: Found, manager: str) -> Found:
    target = found.target
    spec = found.object.get("spec") or {}
    if target.resource.group != "apps" or target.resource.kind not in _KINDS:
        raise CommandError(_about(found, "restarting is not supported"))
    if spec.get("paused"):
        raise CommandError(_about(found, "can't restart paused deployment (run rollout resume first)"))
    now = datetime.now().astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")
    template: Any = (spec.get("template") or {}).get("metadata") or {}
    if (template.get("annotations") or {}).get(_ANNOTATION) == now:
        raise CommandError(
            f"failed to create patch for {target.name}: if restart has already been triggered within the past second, "
            "please wait before attempting to trigger another"
        )
    patch = {"spec": {"template": {"metadata": {"annotations": {_ANNOTATION: now}}}}}
    response = await client.request(
        "PATCH",
        target.path(),
        params={"fieldManager": manager},
        body=patch,
        content_type="application/merge-patch+json",
    )
    changed = response.json()
    assert isinstance(changed, dict)
    return attrs.evolve(found, object=changed)


def _about(found: Found, problem: str) -> str:
    return f'{found.target.resource} "{found.target.name}" {problem}'
