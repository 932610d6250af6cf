"""``get``: objects as a table of the server, or whole."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from ...errors import NotFoundError, TrioformerError
from .._arguments import Parser, add_output_flags
from .._failures import CommandError, UsageError
from .._manifests import add_file_flags, has_files
from .._resources import TABLES, Selection, Target, add_selector_flags, select
from .._session import Session
from ..printing import Printer, ServerTable, TableWriter, make_printer
from ._chosen import choose_from_files
from ._requests import as_table, items_of, options_for, query_of, request_pages
from ._sorting import sort_by

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_CHUNK: Final = "500"


def add_flags(parser: Parser) -> None:
    """Add the flags of ``get``."""
    add_selector_flags(parser)
    add_output_flags(parser)
    add_file_flags(parser, "that name the resources to get")
    parser.add_switch("-w", "--watch", help="After listing/getting the requested object, watch for changes.")
    parser.add_switch("--watch-only", help="Watch for changes to the requested object(s), without listing first.")
    parser.add_switch("--output-watch-events", help="Output watch event objects when --watch or --watch-only is used.")
    parser.add_switch("--ignore-not-found", help="Treat an object that is not found as success.")
    parser.add_switch("--allow-missing-template-keys", default=True, help="Ignored: missing keys are empty.")
    parser.add_argument("--chunk-size", default=_CHUNK, help="Return large lists in chunks. 0 disables it.")
    parser.add_argument("--subresource", default="", help="Get the subresource of the requested object.")
    parser.add_argument("--raw", default="", help="Raw URI to request from the server.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``get``."""
    if flags.raw:
        return await _get_raw(session, flags)
    _check(session, flags)
    printer = make_printer(
        flags.output,
        session.out,
        template=flags.template,
        has_headers=not flags.no_headers,
        show_managed_fields=flags.show_managed_fields,
    )
    async with session.open_client() as client:
        selection = await choose_from_files(session, flags, client)
        selection = selection or await select(
            client,
            flags.arguments,
            namespace=None if flags.all_namespaces else session.namespace,
            selector=flags.selector,
            field_selector=flags.field_selector,
        )
        if flags.subresource and not selection.has_names:
            raise CommandError("subresource cannot be used when bulk resources are specified")
        if flags.watch or flags.watch_only:
            from ._get_watch import watch  # noqa: PLC0415  # the machinery of informers, which other uses do not need

            await watch(session, flags, client, selection, printer)
            return None
        if printer is None:
            await _print_tables(session, flags, client, selection)
        else:
            await _print_objects(flags, client, selection, printer)
    return None


def _check(session: Session, flags: argparse.Namespace) -> None:
    if not flags.arguments and not has_files(flags):
        session.note(
            'You must specify the type of resource to get. Use "trioformer api-resources" for a complete list of '
            "supported resources.\n"
        )
        raise UsageError(
            'Required resource not specified.\nUse "trioformer explain <resource>" for a detailed description of that '
            "resource (e.g. trioformer explain pods)."
        )
    if flags.show_labels and flags.output not in ("", "wide"):
        raise CommandError(f"--show-labels option cannot be used with {flags.output} printer")
    if flags.output_watch_events and not (flags.watch or flags.watch_only):
        raise CommandError("--output-watch-events option can only be used with --watch or --watch-only")
    if not flags.chunk_size.isdigit():
        raise UsageError(
            f'invalid argument "{flags.chunk_size}" for "--chunk-size" flag: strconv.ParseInt: parsing '
            f'"{flags.chunk_size}": invalid syntax',
            is_flag=True,
        )


async def _get_raw(session: Session, flags: argparse.Namespace) -> int | None:
    if flags.arguments:
        raise CommandError("arguments may not be passed when --raw is specified")
    if flags.watch or flags.watch_only or flags.selector:
        raise CommandError(
            "--raw may not be specified with other flags that filter the server request or alter the output"
        )
    if flags.output:
        raise CommandError("--raw and --output are mutually exclusive")
    path, _, query = flags.raw.partition("?")
    if not path.startswith("/"):
        raise CommandError(f"--raw must be a valid URL path: parse {json.dumps(path)}: invalid URI for request")
    from urllib.parse import parse_qs  # noqa: PLC0415  # only here

    params: dict[str, list[str]] = parse_qs(query, keep_blank_values=True)
    async with session.open_client() as client:
        try:
            async with client.stream("GET", path, params=params) as stream:
                async for chunk in stream:
                    session.print(chunk.decode(errors="replace"), end="")
        except ValueError as exc:
            raise CommandError(f"--raw must be a valid URL path: {exc}") from exc
    return None


async def _print_tables(session: Session, flags: argparse.Namespace, client: Client, selection: Selection) -> None:
    errors: list[Exception] = []
    tables: list[tuple[Target, dict[str, Any]]] = []
    for target in selection.targets:
        try:
            params = query_of(flags, target, as_table=True)
            pages = await request_pages(client, target, params, accept=TABLES, subresource=flags.subresource)
        except (TrioformerError, CommandError) as exc:
            if not (flags.ignore_not_found and isinstance(exc, NotFoundError)):
                errors.append(exc)
            continue
        tables += [(target, as_table(page)) for page in pages]
    tables = [(target, table) for target, table in tables if table.get("rows")]
    if flags.sort_by:
        tables = _sorted(tables, flags.sort_by)
    kinds = {target.resource.gvk for target, _ in tables}
    writer = TableWriter(session.out)
    last: Target | None = None
    printed: ServerTable | None = None
    for target, table in tables:
        if printed is None or last is None or target.resource != last.resource:
            writer.forget_widths()
            if not writer.is_empty and not flags.no_headers:
                session.print()
            printed = ServerTable(writer, options_for(flags, target, with_kind=len(kinds) > 1))
            last = target
        printed.add(table)
    writer.flush()
    if writer.is_empty and not flags.ignore_not_found and not errors:
        is_in_one = not flags.all_namespaces and all(target.resource.namespaced for target in selection.targets)
        where = f" in {session.namespace} namespace." if is_in_one else ""
        session.note(f"No resources found{where}")
    _raise(errors)


def _raise(errors: list[Exception]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("some objects were not found", errors)


def _sorted(tables: list[tuple[Target, dict[str, Any]]], path: str) -> list[tuple[Target, dict[str, Any]]]:
    rows = [(target, table, row) for target, table in tables for row in table["rows"]]
    found = sort_by(rows, path, lambda one: one[2].get("object") or {})
    return [
        (target, {"columnDefinitions": table.get("columnDefinitions"), "rows": [row]}) for target, table, row in found
    ]


async def _print_objects(flags: argparse.Namespace, client: Client, selection: Selection, printer: Printer) -> None:
    objects: list[dict[str, Any]] = []
    errors: list[Exception] = []
    for target in selection.targets:
        try:
            params = query_of(flags, target, as_table=False)
            pages = await request_pages(
                client, target, params, accept="application/json", subresource=flags.subresource
            )
        except (TrioformerError, CommandError) as exc:
            if flags.ignore_not_found and isinstance(exc, NotFoundError):
                continue
            if selection.is_single:
                raise
            errors.append(exc)
            continue
        for page in pages:
            objects += items_of(page, target)
    if not objects and flags.ignore_not_found:
        _raise(errors)
        return
    if flags.sort_by:
        objects = sort_by(objects, flags.sort_by, lambda obj: obj)
    if selection.is_single and len(objects) == 1:
        printer.print(objects[0])
    else:
        printer.print({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {"resourceVersion": ""}})
    printer.finish()
    _raise(errors)
