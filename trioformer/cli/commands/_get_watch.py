"""``get -w``: what there is, and then each change."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import NotFoundError
from .._failures import CommandError
from .._resources import TABLES, Selection, Target
from .._session import Session
from ..printing import Printer, ServerTable, TableWriter
from ._requests import as_table, items_of, options_for, query_of, request_pages
from ._watching import follow, follow_rows

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["watch"]


async def watch(
    session: Session, flags: argparse.Namespace, client: Client, selection: Selection, printer: Printer | None
) -> None:
    """Print the objects, and then each change, until cancelled.

    The objects are requested first, so that what the server refuses is an error, not something to wait for.
    """
    if len(selection.targets) != 1:
        raise CommandError("you may only specify a single resource type")
    target = selection.targets[0]
    if flags.sort_by:
        session.note("warning: --watch requested, --sort-by will be ignored for watch events received")
    show = _rows(session, flags, target) if printer is None else _objects(session, flags, printer)
    known: dict[tuple[str, str], str] = {}
    accept = TABLES if printer is None else "application/json"
    try:
        pages = await request_pages(client, target, query_of(flags, target, as_table=printer is None), accept=accept)
    except NotFoundError:
        if flags.ignore_not_found:
            return
        raise
    for page in pages:
        shown = _parts(page) if printer is None else items_of(page, target)
        for each in shown:
            key, version = _identity(each)
            known[key] = version
            if not flags.watch_only:
                show("ADDED", each)
    session.out.flush()

    def on_event(kind: str, each: Mapping[str, Any]) -> None:
        key, version = _identity(each)
        if kind == "ADDED" and known.pop(key, None) == version:
            return  # it was printed by the first request
        show(kind, each)
        session.out.flush()

    run = follow_rows if printer is None else follow
    await run(client, target, on_event, selector=flags.selector, field_selector=flags.field_selector)


def _rows(session: Session, flags: argparse.Namespace, target: Target) -> Any:
    writer = TableWriter(session.out)
    table = ServerTable(writer, options_for(flags, target, with_kind=False))

    def show(kind: str, part: Mapping[str, Any]) -> None:
        table.add(part, event=kind)
        writer.flush()

    return show


def _objects(session: Session, flags: argparse.Namespace, printer: Printer) -> Any:
    def show(kind: str, obj: Mapping[str, Any]) -> None:
        printer.print({"object": dict(obj), "type": kind} if flags.output_watch_events else obj)
        printer.finish()

    return show


def _parts(page: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a table for each row."""
    table = as_table(page)
    columns = table.get("columnDefinitions")
    return [{"columnDefinitions": columns, "rows": [row]} for row in table.get("rows") or []]


def _identity(each: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    obj = (each["rows"][0].get("object") or {}) if "rows" in each else each
    metadata = obj.get("metadata") or {}
    return (str(metadata.get("namespace", "")), str(metadata.get("name", ""))), str(metadata.get("resourceVersion", ""))
