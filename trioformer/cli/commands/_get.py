"""The command ``get``, which prints objects or the server's table, and follows changes with ``-w``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import TrioformerError
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._printing import FORMATS, ServerTable, TableWriter, print_objects
from .._resources import (
    TABLES,
    Selection,
    Target,
    add_selector_flags,
    as_table,
    group_kind,
    items_of,
    request_pages,
    select,
)
from .._session import Session

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``get``."""
    add_selector_flags(parser)
    parser.add_argument(
        "-o", "--output", default="", choices=("", *FORMATS), help="Output format: json, name, wide or yaml"
    )
    parser.add_switch("-w", "--watch", help="Also print each change until interrupted")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``get``."""
    if not flags.arguments:
        raise UsageError("a resource type is required, for example `trioformer get pods`")
    async with session.open_client() as client:
        selection = await select(
            client,
            flags.arguments,
            namespace=None if flags.all_namespaces else session.namespace,
            selector=flags.selector,
            field_selector=flags.field_selector,
        )
        if flags.watch:
            await _watch(session, flags, client, selection)
            return None
        is_table = flags.output in ("", "wide")
        found, errors = await _request(flags, client, selection, TABLES if is_table else "application/json")
        if is_table:
            _print_tables(session, flags, selection, found, has_failed=bool(errors))
        else:
            objects = [each for target, page in found for each in items_of(page, target)]
            if objects or not errors:
                print_objects(session.out, flags.output, objects, is_list=not selection.is_single)
    if errors:
        raise ExceptionGroup("some objects could not be read", errors)
    return None


def _query(flags: argparse.Namespace) -> dict[str, str]:
    query = {"labelSelector": flags.selector, "fieldSelector": flags.field_selector}
    return {name: value for name, value in query.items() if value}


async def _request(
    flags: argparse.Namespace, client: Client, selection: Selection, accept: str
) -> tuple[list[tuple[Target, dict[str, Any]]], list[Exception]]:
    """Request all targets, and return the responses and the errors.

    The errors are printed after the objects that were found.
    """
    found: list[tuple[Target, dict[str, Any]]] = []
    errors: list[Exception] = []
    for target in selection.targets:
        try:
            pages = await request_pages(client, target, _query(flags), accept=accept)
        except (TrioformerError, CommandError) as exc:
            errors.append(exc)
        else:
            found += [(target, page) for page in pages]
    return found, errors


def _print_tables(
    session: Session,
    flags: argparse.Namespace,
    selection: Selection,
    found: list[tuple[Target, dict[str, Any]]],
    *,
    has_failed: bool,
) -> None:
    tables = [(target, table) for target, page in found if (table := as_table(page)).get("rows")]
    kinds = list(dict.fromkeys(target.resource for target, _ in tables))
    for kind in kinds:
        if kind is not kinds[0]:
            session.print()
        writer = TableWriter(session.out)
        prefix = f"{group_kind(kind)}/" if len(kinds) > 1 else ""
        printed = ServerTable(writer, flags.output == "wide", flags.all_namespaces and kind.namespaced, prefix)
        for target, table in tables:
            if target.resource == kind:
                printed.add(table)
        writer.flush()
    if not tables and not has_failed:
        is_in_one = not flags.all_namespaces and all(target.resource.namespaced for target in selection.targets)
        session.note("no resources found" + (f" in namespace {session.namespace}" if is_in_one else ""))


async def _watch(session: Session, flags: argparse.Namespace, client: Client, selection: Selection) -> None:
    """Print the objects, and then print each change until cancelled.

    The first request does not use an informer, because an informer would retry errors instead of reporting them
    immediately.
    """
    from ._watching import follow, follow_rows  # noqa: PLC0415  # imports informers

    if len(selection.targets) != 1:
        raise CommandError("only one resource can be watched")
    target = selection.targets[0]
    is_table = flags.output in ("", "wide")
    writer = TableWriter(session.out)
    table = ServerTable(writer, flags.output == "wide", flags.all_namespaces and target.resource.namespaced)
    known: dict[tuple[str, str], str] = {}
    found, errors = await _request(flags, client, selection, TABLES if is_table else "application/json")
    if errors:
        raise errors[0]
    for _, page in found:
        if is_table:
            table.add(as_table(page))
            shown = [row.get("object") or {} for row in as_table(page).get("rows") or []]
        else:
            shown = items_of(page, target)
            print_objects(session.out, flags.output, shown)
        known.update(map(_identity, shown))
    writer.flush()
    session.out.flush()

    def on_event(kind: str, each: Mapping[str, Any]) -> None:
        key, version = _identity(each["rows"][0]["object"] if is_table else each)
        if kind == "ADDED" and known.pop(key, None) == version:
            return  # already printed
        if is_table:
            table.add(each)
            writer.flush()
        else:
            print_objects(session.out, flags.output, [each])
        session.out.flush()

    run = follow_rows if is_table else follow
    await run(client, target, on_event, selector=flags.selector, field_selector=flags.field_selector)


def _identity(obj: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    metadata = obj.get("metadata") or {}
    return (str(metadata.get("namespace", "")), str(metadata.get("name", ""))), str(metadata.get("resourceVersion", ""))
