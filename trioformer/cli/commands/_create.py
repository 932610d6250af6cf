"""``create -f``: objects of files, which must not exist."""

from __future__ import annotations

import argparse
from typing import Any, cast

from ...errors import TrioformerError
from .._arguments import Parser
from .._dry_run import Reporter, add_change_flags, query_of_change, strategy_of
from .._failures import CommandError
from .._manifests import add_file_flags, has_files, raise_all, read_documents, source_error
from .._merging import annotated
from .._resources import group_kind
from .._session import Session

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``create``."""
    add_file_flags(parser, "to use to create the resource")
    add_change_flags(parser, field_manager="kubectl-create")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_switch("--save-config", help="If true, save the configuration in the annotation that apply uses.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``create``."""
    if flags.arguments:
        raise CommandError(f'"create {flags.arguments[0]}" is not supported: only files can be created, with -f')
    if not has_files(flags):
        raise CommandError("must specify one of -f and -k")
    dry_run = strategy_of(session, flags)
    reporter = Reporter.of(session, flags, dry_run)
    params = query_of_change(flags, dry_run, validation="Strict")
    async with session.open_client() as client:
        documents, errors = await read_documents(
            session, flags, client, selector=flags.selector, may_generate_names=True
        )
        if not documents and not errors:
            raise CommandError("no objects passed to create")
        for document in documents:
            obj: dict[str, Any] = annotated(document.object) if flags.save_config else document.object
            if dry_run != "client":
                path = document.path(is_collection=True)
                try:
                    response = await client.request("POST", path, params=params, body=obj)
                except TrioformerError as exc:
                    errors.append(source_error("creating", document.source, exc))
                    continue
                obj = cast("dict[str, Any]", response.json())
            name = obj["metadata"].get("name") or ""
            reporter.report(f"{group_kind(document.resource)}/{name}", "created", obj)
        reporter.finish()
        raise_all(errors)
    return None
