"""``apply``: objects as files describe them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ...errors import TrioformerError
from .._arguments import Parser
from .._dry_run import Reporter, add_change_flags, query_of_change, strategy_of
from .._failures import CommandError, UsageError
from .._manifests import Document, add_file_flags, has_files, raise_all, read_documents, source_error
from .._session import Session
from ._apply_by_server import apply_by_server
from ._apply_one import apply_one
from ._apply_prune import PRUNED_KINDS, prune, prune_by_manager

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

CLIENT_SIDE: Final = "kubectl-client-side-apply"
"""The manager of fields that are applied without ``--server-side``, whoever applies them."""
SERVER_SIDE: Final = "kubectl"
"""The manager of fields that are applied with ``--server-side``."""
_VALIDATION: Final = {
    "strict": "Strict",
    "true": "Strict",
    "warn": "Warn",
    "ignore": "Ignore",
    "false": "Ignore",
}


def add_flags(parser: Parser) -> None:
    """Add the flags of ``apply``."""
    add_file_flags(parser, "that contain the configurations to apply")
    add_change_flags(parser, field_manager="")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_switch("--all", help="Prune all objects that were applied, and not those of a selector.")
    parser.add_switch("--server-side", help="If true, apply runs in the server instead of the client.")
    parser.add_switch("--force-conflicts", help="If true, server-side apply will force the changes against conflicts.")
    parser.add_switch("--prune", help="Delete objects that were applied, and do not appear in the files any more.")
    parser.add_argument(
        "--prune-allowlist",
        action="append",
        default=[],
        help=f"Prune these kinds, as group/version/kind, instead of: {', '.join(PRUNED_KINDS)}.",
    )
    parser.add_argument(
        "--validate",
        nargs="?",
        const="strict",
        default="strict",
        help="What becomes of unknown fields: strict, an error; warn, a warning; ignore.",
    )


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``apply``."""
    dry_run = _check(session, flags)
    reporter = Reporter.of(session, flags, dry_run, gathers=True)
    params = query_of_change(flags, dry_run, validation=_VALIDATION[flags.validate])
    if flags.server_side:
        params["force"] = "true" if flags.force_conflicts else "false"
    async with session.open_client() as client:
        documents, errors = await read_documents(session, flags, client, selector=flags.selector)
        if not documents and not errors:
            raise CommandError("no objects passed to apply")
        visited: set[str] = set()
        definitions: list[tuple[Document, dict[str, Any]]] = []
        for document in documents:
            is_definition = document.resource.kind == "CustomResourceDefinition"
            if definitions and not is_definition:
                await _wait_for_definitions(client, definitions)
                definitions = []
            try:
                if flags.server_side:
                    operation, obj = "serverside-applied", await apply_by_server(session, client, document, params)
                else:
                    operation, obj = await apply_one(session, client, document, params, dry_run=dry_run)
            except (TrioformerError, CommandError) as exc:
                errors.append(exc)
                continue
            visited.add(str(obj["metadata"].get("uid")))
            if is_definition and dry_run == "none":
                definitions.append((document, obj))
            reporter.report(document.label, operation, obj)
        raise_all(errors)
        reporter.finish()
        if flags.prune and flags.server_side:
            await prune_by_manager(flags, client, documents, reporter.report, is_dry_run=dry_run == "server")
        elif flags.prune:
            if flags.namespace and not flags.prune_allowlist:
                session.note(
                    "Warning: --namespace does not limit what is pruned of Namespaces and PersistentVolumes; "
                    "--prune-allowlist names the kinds"
                )
            await prune(flags, client, documents, visited, reporter.report, dry_run=dry_run)
        reporter.finish()
    return None


def _check(session: Session, flags: argparse.Namespace) -> str:
    """Check the flags, and return the strategy of the dry run."""
    if flags.arguments:
        raise UsageError(f"Unexpected args: [{' '.join(flags.arguments)}]")
    if not has_files(flags):
        raise CommandError("must specify one of -f and -k")
    dry_run = strategy_of(session, flags)
    flags.field_manager = flags.field_manager or (SERVER_SIDE if flags.server_side else CLIENT_SIDE)
    if flags.force_conflicts and not flags.server_side:
        raise CommandError("--force-conflicts only works with --server-side")
    if flags.server_side and dry_run == "client":
        raise CommandError("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)")
    if flags.all and flags.selector:
        raise CommandError("cannot set --all and --selector at the same time")
    if flags.prune and not flags.all and not flags.selector:
        raise CommandError(
            "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all "
            "flag. If you did not mean to prune all resources, specify a label selector"
        )
    if flags.prune and flags.server_side and (flags.all or flags.prune_allowlist):
        raise CommandError("--prune with --server-side needs a label selector, -l, and has no --prune-allowlist")
    if flags.validate not in _VALIDATION:
        raise CommandError(
            f'invalid - validate option "{flags.validate}"; must be one of: strict (or true), warn, ignore (or false)'
        )
    return dry_run


async def _wait_for_definitions(client: Client, definitions: list[tuple[Document, dict[str, Any]]]) -> None:
    """Wait until the server serves the kinds that were defined, since what follows may be of them."""
    from ...crds import wait_until_served  # noqa: PLC0415  # most files define no kinds
    from ...models import from_dict  # noqa: PLC0415
    from ...models.apiextensions_v1 import CustomResourceDefinition  # noqa: PLC0415

    for document, obj in definitions:
        try:
            await wait_until_served(client, from_dict(CustomResourceDefinition, obj))
        except TrioformerError as exc:
            raise source_error("applying", document.source, exc) from exc
