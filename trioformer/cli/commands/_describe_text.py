"""Writes descriptions: columns aligned as Go's ``text/tabwriter`` does, labels, annotations and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from email.utils import format_datetime
from typing import Any, Final, final

from .._clock import parse_time
from ..printing import escape, sprint
from ._events import event_age, event_time

__all__ = [
    "Description",
    "as_int",
    "at",
    "boolean",
    "controller_of",
    "pairs_text",
    "rfc1123",
    "selector_text",
    "set_or_not",
]

_PADDING: Final = 2
_LONGEST: Final = 140
"""Characters of an annotation on the line of its key."""
_NEVER: Final = "Mon, 01 Jan 0001 00:00:00 +0000"
_HIDDEN: Final = "kubectl.kubernetes.io/last-applied-configuration"


def at(obj: object, *path: str) -> Any:
    """Return the value at a path of nested objects; None if the path does not exist."""
    for name in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(name)
    return obj


def as_int(value: object) -> int:
    """Return a number; 0 without one."""
    return value if isinstance(value, int) else 0


def rfc1123(text: object) -> str:
    """Return a timestamp as kubectl prints it, in local time: ``Mon, 02 Jan 2006 15:04:05 +0000``."""
    then = parse_time(text)
    return _NEVER if then is None else format_datetime(then.astimezone())


def set_or_not(value: object) -> str:
    """Return the text of a value that may be missing: ``true``, ``7``, ``<unset>``."""
    return "<unset>" if value is None else sprint(value)


def boolean(value: object) -> str:
    """Return the text of a boolean that may be missing: ``True``, ``False``, ``<unset>``."""
    return "<unset>" if value is None else str(bool(value))


def pairs_text(labels: object) -> str:
    """Return labels on one line, in order, such as ``a=1,b=2``."""
    found = labels if isinstance(labels, Mapping) else {}
    return ",".join(f"{key}={found[key]}" for key in sorted(found)) or "<none>"


def controller_of(obj: Mapping[str, Any]) -> str:
    """Return the controller of an object, such as ``ReplicaSet/web-1``; empty without one."""
    for owner in at(obj, "metadata", "ownerReferences") or []:
        if owner.get("controller"):
            return f"{owner.get('kind')}/{owner.get('name')}"
    return ""


def selector_text(selector: object, empty: str = "<none>") -> str:
    """Return the text of a label selector, such as ``app=web,tier in (a,b)``; ``empty`` without a term."""
    if not isinstance(selector, Mapping):
        return empty
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or []:
        key, operator = each.get("key", ""), each.get("operator")
        values = f"({','.join(sorted(each.get('values') or []))})"
        texts = {"In": f"{key} in {values}", "NotIn": f"{key} notin {values}", "Exists": key, "DoesNotExist": f"!{key}"}
        parts.append((key, texts.get(operator, key)))
    return ",".join(text for _, text in sorted(parts)) or empty


@final
class Description:
    """The lines of a description; a tab ends a cell."""

    def __init__(self) -> None:
        self._done = ""
        self._text = ""

    def line(self, level: int, text: str) -> None:
        """Add a line, or several."""
        self._text += "  " * level + escape(text) + "\n"

    def field(self, name: str, value: object, level: int = 0) -> None:
        """Add a line of a name and a value."""
        self.line(level, f"{name}:\t{value}")

    def many(self, name: str, values: Sequence[str], level: int = 0) -> None:
        """Add a line for each value, the first with the name; ``<none>`` without one."""
        for index, value in enumerate(values or ["<none>"]):
            self.line(0, f"{'  ' * level}{name}:\t{value}" if index == 0 else f"\t{value}")

    def optional(self, name: str, value: object, level: int = 0) -> None:
        """Add a line of a name and a value, if there is one."""
        if value is not None:
            self.field(name, sprint(value), level)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], level: int = 1) -> None:
        """Add rows below the names of their columns."""
        self.line(level, "\t".join(columns))
        self.line(level, "\t".join("-" * len(column) for column in columns))
        for row in rows:
            self.line(level, "\t".join("" if cell is None else str(cell) for cell in row))

    def labels(self, name: str, labels: object, level: int = 0) -> None:
        """Add labels in order."""
        found = labels if isinstance(labels, Mapping) else {}
        self.many(name, [f"{key}={found[key]}" for key in sorted(found)], level)

    def annotations(self, annotations: object, level: int = 0) -> None:
        """Add annotations in order; long ones below their keys, and not what ``kubectl apply`` remembers."""
        found = annotations if isinstance(annotations, Mapping) else {}
        texts: list[str] = []
        for key in sorted(found):
            value = str(found[key]).removesuffix("\n")
            if key == _HIDDEN:
                continue
            if len(value) + len(key) + 2 > _LONGEST or "\n" in value:
                texts.append(f"{key}:")
                texts += [f"  {_shortened(part)}" for part in value.split("\n")]
            else:
                texts.append(f"{key}: {value}")
        self.many("Annotations", texts, level)

    def head(self, obj: Mapping[str, Any], *, with_namespace: bool = True) -> None:
        """Add name, namespace, labels and annotations."""
        self.field("Name", at(obj, "metadata", "name"))
        if with_namespace:
            self.field("Namespace", at(obj, "metadata", "namespace") or "")
        self.labels("Labels", at(obj, "metadata", "labels"))
        self.annotations(at(obj, "metadata", "annotations"))

    def events(self, events: Sequence[Mapping[str, Any]] | None) -> None:
        """Add the events of the object; nothing if they were not asked for."""
        if events is None:
            return
        if not events:
            self.field("Events", "<none>")
            return
        self._flush()
        self.line(0, "Events:")
        self.line(1, "Type\tReason\tAge\tFrom\tMessage")
        self.line(1, "----\t------\t----\t----\t-------")  # the age has four dashes in kubectl, too
        for event in sorted(events, key=event_time):
            source = at(event, "source", "component") or event.get("reportingComponent") or ""
            message = str(event.get("message") or "").strip()
            if path := at(event, "involvedObject", "fieldPath"):
                message = f"{path}: {message}"
            self.line(1, f"{event.get('type')}\t{event.get('reason')}\t{event_age(event)}\t{source}\t{message}")

    def conditions(self, obj: Mapping[str, Any]) -> None:
        """Add the conditions of a workload."""
        conditions = at(obj, "status", "conditions")
        if not conditions:
            return
        self.line(0, "Conditions:")
        rows = [(f"{each.get('type')} ", each.get("status"), each.get("reason")) for each in conditions]
        self.table(("Type", "Status", "Reason"), rows)

    def dated_conditions(self, conditions: object) -> None:
        """Add conditions with the time of their last change; nothing without any."""
        if not isinstance(conditions, list) or not conditions:
            return
        self.line(0, "Conditions:")
        rows = [
            (
                each.get("type"),
                each.get("status"),
                rfc1123(each.get("lastTransitionTime")),
                each.get("reason"),
                each.get("message"),
            )
            for each in conditions
        ]
        self.table(("Type", "Status", "LastTransitionTime", "Reason", "Message"), rows)

    def render(self) -> str:
        """Return the text."""
        self._flush()
        return self._done

    def lines(self) -> list[str]:
        """Return the lines that are not aligned yet, for a part of another description."""
        return self._text.splitlines()

    def _flush(self) -> None:
        lines = [line.split("\t") for line in self._text.split("\n")]
        widths: list[list[int]] = [[] for _ in lines]
        _align(lines, widths, 0, len(lines), 0)
        texts = []
        for cells, sizes in zip(lines, widths, strict=True):
            padded = [cell.ljust(size) for cell, size in zip(cells[:-1], sizes, strict=True)]
            texts.append("".join([*padded, cells[-1]]))
        self._done += "\n".join(texts)
        self._text = ""


def _align(lines: list[list[str]], widths: list[list[int]], begin: int, end: int, column: int) -> None:
    """Give each block of lines that have a cell in a column the width of the widest one."""
    index = begin
    while index < end:
        if len(lines[index]) - 1 <= column:
            index += 1
            continue
        first = index
        while index < end and len(lines[index]) - 1 > column:
            index += 1
        width = max(len(lines[each][column]) for each in range(first, index)) + _PADDING
        for each in range(first, index):
            widths[each].append(width)
        _align(lines, widths, first, index, column + 1)


def _shortened(text: str) -> str:
    longest = _LONGEST - 2
    return text[:longest] + "..." if len(text) > longest else text
