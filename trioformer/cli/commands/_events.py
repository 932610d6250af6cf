"""``events``: what has happened, the oldest first."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from .._arguments import Parser
from .._clock import age_of, parse_time
from .._failures import CommandError
from .._resources import Target, find_resource
from .._session import Session
from ..printing import TableWriter, escape, make_printer

__all__ = ["add_flags", "event_age", "event_time", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``events``."""
    parser.add_switch("-w", "--watch", help="After listing the requested events, watch for more events.")
    parser.add_switch("-A", "--all-namespaces", help="If present, list the events across all namespaces.")
    parser.add_argument("--for", dest="subject", default="", help="Filter events to those of the specified resource.")
    parser.add_argument("--types", action="append", default=[], help="Output only events of given types.")
    parser.add_argument("--chunk-size", default="500", help="Return large lists in chunks.")
    parser.add_argument("-o", "--output", default="", help="Output format.")
    parser.add_argument("--template", default="", help="Template string, or path to a template file, for -o jsonpath")
    parser.add_switch("--no-headers", help="Don't print headers.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``events``."""
    types = {each.lower() for given in flags.types for each in given.split(",")}
    if not types <= {"normal", "warning"}:
        raise CommandError("valid --types are Normal or Warning")
    printer = make_printer(flags.output, session.out, template=flags.template)
    table = _EventTable(session, flags)
    async with session.open_client() as client:
        selector: dict[str, str] = {}
        if flags.subject:
            kind, slash, name = flags.subject.partition("/")
            if not slash:
                raise CommandError("--for must be in resource/name form")
            if "/" in name:
                raise CommandError("arguments in resource/name form may not have more than one slash")
            info = find_resource(await client.api_resources(), kind)
            wanted = {"kind": info.kind, "apiVersion": info.api_version, "name": name}
            selector = {f"involvedObject.{key}": value for key, value in wanted.items()}
        namespace = None if flags.all_namespaces else session.namespace
        text = ",".join(f"{key}={value}" for key, value in selector.items())

        def is_wanted(event: Mapping[str, Any]) -> bool:
            return not types or str(event.get("type", "")).lower() in types

        if flags.watch:
            from ._watching import follow  # noqa: PLC0415  # the machinery of informers

            def show(kind: str, event: Mapping[str, Any]) -> None:
                if kind == "DELETED" or not is_wanted(event):  # events are deleted after an hour
                    return
                if printer is None:
                    table.add(event)
                    table.flush()
                else:
                    printer.print(event)
                    printer.finish()
                session.out.flush()

            target = Target(find_resource(await client.api_resources(), "events.v1."), namespace)
            await follow(client, target, show, field_selector=text)
            return None
        path = "/api/v1/events" if namespace is None else f"/api/v1/namespaces/{namespace}/events"
        events = await _list(client, path, text)
    events = [event for event in events if is_wanted(event)]
    if not events:
        session.note("No events found." if namespace is None else f"No events found in {namespace} namespace.")
        return None
    events.sort(key=event_time)
    if printer is not None:
        printer.print({"apiVersion": "v1", "items": events, "kind": "EventList", "metadata": {}})
        printer.finish()
        return None
    for event in events:
        table.add(event)
    table.flush()
    return None


async def _list(client: Any, path: str, selector: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    token = ""
    while True:
        params = {"limit": "500", "fieldSelector": selector or None, "continue": token or None}
        page = (await client.request("GET", path, params=params)).json()
        events += [{"apiVersion": "v1", "kind": "Event", **item} for item in page.get("items") or []]
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return events


class _EventTable:
    def __init__(self, session: Session, flags: argparse.Namespace) -> None:
        self._writer = TableWriter(session.out)
        self._has_namespace = flags.all_namespaces
        self._needs_header = not flags.no_headers

    def add(self, event: Mapping[str, Any]) -> None:
        """Add the line of an event."""
        if self._needs_header:
            self._needs_header = False
            self._writer.add(
                [*(["NAMESPACE"] if self._has_namespace else []), "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
            )
        subject = event.get("involvedObject") or {}
        cells = [
            event_age(event),
            escape(str(event.get("type", ""))),
            escape(str(event.get("reason", ""))),
            f"{escape(str(subject.get('kind', '')))}/{escape(str(subject.get('name', '')))}",
            escape(str(event.get("message", "")).strip()),
        ]
        namespace = str((event.get("metadata") or {}).get("namespace", ""))
        self._writer.add([namespace, *cells] if self._has_namespace else cells)

    def flush(self) -> None:
        """Write the lines."""
        self._writer.flush()


def event_time(event: Mapping[str, Any]) -> datetime:
    """Return the time by which events are sorted."""
    series = event.get("series") or {}
    text = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return parse_time(text) or datetime.min.replace(tzinfo=UTC)


def event_age(event: Mapping[str, Any]) -> str:
    """Return when an event happened, and how often: ``5m (x3 over 10m)``."""
    first = age_of(event.get("eventTime") or event.get("firstTimestamp"))
    if series := event.get("series"):
        return f"{age_of(series.get('lastObservedTime'))} (x{series.get('count', 0)} over {first})"
    count = event.get("count") or 0
    return f"{age_of(event.get('lastTimestamp'))} (x{count} over {first})" if count > 1 else first
