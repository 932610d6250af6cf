"""The command ``events``, which lists events from the oldest to the newest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ...models import ResourceInfo
from .._arguments import Parser
from .._printing import TableWriter, age_of, parse_time, print_objects
from .._resources import Target, items_of, request_pages, select
from .._session import Session

__all__ = ["add_flags", "run"]

_EVENTS: Final = ResourceInfo(group="", version="v1", kind="Event", plural="events", namespaced=True)


def add_flags(parser: Parser) -> None:
    """Add the flags of ``events``."""
    parser.add_switch("-w", "--watch", help="Also print new events until interrupted")
    parser.add_switch("-A", "--all-namespaces", help="Use all namespaces")
    parser.add_argument("--for", dest="subject", default="", help="Print only the events of an object: TYPE/NAME")
    parser.add_argument("--type", default="", choices=("", "Normal", "Warning"), help="Print only events of this type")
    parser.add_argument(
        "-o", "--output", default="", choices=("", "json", "name", "yaml"), help="Output format: json, name or yaml"
    )


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``events``."""
    async with session.open_client() as client:
        namespace = None if flags.all_namespaces else session.namespace
        fields = {"type": flags.type}
        if flags.subject:
            subject = (await select(client, [flags.subject], namespace=session.namespace)).targets[0]
            info = subject.resource
            wanted = {"kind": info.kind, "apiVersion": info.api_version, "name": subject.name}
            fields |= {f"involvedObject.{key}": value for key, value in wanted.items()}
        selector = ",".join(f"{key}={value}" for key, value in fields.items() if value)
        target = Target(_EVENTS, namespace)
        table = _EventTable(session, has_namespace=flags.all_namespaces)
        if flags.watch:
            from ._watching import follow  # noqa: PLC0415  # imports informers

            def show(kind: str, event: Mapping[str, Any]) -> None:
                if kind == "DELETED":  # events expire after an hour
                    return
                if flags.output:
                    print_objects(session.out, flags.output, [event])
                else:
                    table.add([event])
                session.out.flush()

            await follow(client, target, show, field_selector=selector)
            return None
        params = {"fieldSelector": selector} if selector else {}
        pages = await request_pages(client, target, params, accept="application/json")
    events = sorted((each for page in pages for each in items_of(page, target)), key=_time)
    if flags.output:
        print_objects(session.out, flags.output, events, is_list=True)
    elif events:
        table.add(events)
    else:
        session.note("no events found" + (f" in namespace {namespace}" if namespace else ""))
    return None


class _EventTable:
    def __init__(self, session: Session, *, has_namespace: bool) -> None:
        self._writer = TableWriter(session.out)
        self._has_namespace = has_namespace
        self._add_row("NAMESPACE", ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"])

    def _add_row(self, namespace: object, cells: list[object]) -> None:
        self._writer.add([namespace, *cells] if self._has_namespace else cells)

    def add(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Print a line for each event."""
        for event in events:
            subject = event.get("involvedObject") or {}
            about = f"{subject.get('kind', '')}/{subject.get('name', '')}"
            cells = [_age(event), event.get("type"), event.get("reason"), about, event.get("message")]
            self._add_row(event["metadata"].get("namespace"), cells)
        self._writer.flush()


def _time(event: Mapping[str, Any]) -> datetime:
    series = event.get("series") or {}
    text = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return parse_time(text) or datetime.min.replace(tzinfo=UTC)


def _age(event: Mapping[str, Any]) -> str:
    """Return the age and count of an event, such as ``5m (x3 over 10m)``."""
    first = age_of(event.get("eventTime") or event.get("firstTimestamp"))
    if series := event.get("series"):
        return f"{age_of(series.get('lastObservedTime'))} (x{series.get('count', 0)} over {first})"
    count = event.get("count") or 0
    return f"{age_of(event.get('lastTimestamp'))} (x{count} over {first})" if count > 1 else first
