"""Medians, targets, and the three forms of a result: text, reStructuredText, JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from .environments import CLIENT_GO, CONTROLLER_RUNTIME, PINNED
from .workloads import Entrant, Target, Workload

Numbers: TypeAlias = dict[str, float]


@dataclass
class Line:
    """One entrant's runs."""

    entrant: Entrant
    pods: int
    events: int
    runs: list[Numbers] = field(default_factory=list)
    error: str | None = None

    def medians(self) -> Numbers:
        """The middle of each measurement; nothing of who has failed in any round."""
        if self.error is not None or not self.runs:
            return {}
        return {name: statistics.median(run[name] for run in self.runs) for name in self.runs[0]}


def derived(values: Mapping[str, float], *, pods: int, events: int) -> Numbers:
    """Add what follows from a driver's measurements: memory in MB, and everything per pod or event."""
    found = dict(values)
    wall, cpu, rss = (found.get(name) for name in ("wall", "cpu", "rss"))
    if rss is not None:
        found["rss"] = rss / 1024**2
        found["rss_per_pod"] = rss / 1024 / pods
    if wall and events:
        found["events_per_s"] = events / wall
    if wall and not events:
        found["pods_per_s"] = pods / wall
    if cpu is not None and events:
        found["cpu_per_event"] = cpu / events * 1e6
    if "list_cpu" in found:
        found["list_cpu_per_pod"] = found["list_cpu"] / pods * 1e6
    return found


@dataclass(frozen=True)
class Outcome:
    """Whether a target is reached."""

    text: str
    value: float | None
    reached: bool

    def __str__(self) -> str:
        value = "not measured" if self.value is None else shown(self.value)
        return f"{'reached' if self.reached else 'NOT REACHED':<12} {value:>10}   {self.text}"


def judge(target: Target, lines: Sequence[Line]) -> Outcome:
    by_label = {line.entrant.label: line for line in lines}
    value = _value(target, by_label.get(target.of))
    subject = f"{target.what} of {target.of}"
    if target.over is not None:
        subject += f" ÷ {target.over}" + (", per pod" if target.per_pod else "")
        other = _value(target, by_label.get(target.over))
        value = value / other if value is not None and other else None
    bound, sign = (target.at_most, "≤") if target.at_most is not None else (target.at_least, "≥")
    assert bound is not None
    reached = value is not None and (value <= bound if sign == "≤" else value >= bound)
    return Outcome(f"{subject} {sign} {bound:,g}", value, reached)


def _value(target: Target, line: Line | None) -> float | None:
    found = line.medians().get(target.what) if line is not None else None
    return found / line.pods if line is not None and found is not None and target.per_pod else found


def shown(value: float) -> str:
    """A number with three significant digits or so."""
    return (
        f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
        if abs(value) >= 0.1
        else f"{value:.2g}"
    )


def table(workload: Workload, lines: Sequence[Line]) -> list[list[str]]:
    """Rows of cells, the headings first."""
    rows = [["", *workload.columns.values()]]
    for line in lines:
        medians = line.medians()
        label = line.entrant.label + (f" ({line.pods:,} pods, {line.events:,} events)" if line.entrant.events else "")
        if line.error is not None:
            rows.append([label, f"failed: {line.error}", *[""] * (len(workload.columns) - 1)])
        else:
            rows.append([label, *(shown(medians[name]) if name in medians else "" for name in workload.columns)])
    return rows


def as_text(rows: Sequence[Sequence[str]]) -> str:
    regular = [row for row in rows if not (len(row) > 1 and row[1].startswith("failed"))]
    widths = [max(len(row[column]) for row in (regular if column else rows)) for column in range(len(rows[0]))]
    made = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        made.append("  ".join(cells).rstrip())
    return "\n".join(made)


def _rst_table(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'  -' if number else '* -'} {cell}".rstrip() for number, cell in enumerate(row)]
    return lines


def as_rst(workload: Workload, rows: Sequence[Sequence[str]], outcomes: Sequence[Outcome], about: str) -> str:
    out = _rst_table(f"{workload.title} ({about})", rows)
    if outcomes:
        out += [
            "",
            ".. list-table:: Of that",
            "   :header-rows: 1",
            "",
            "   * - must be",
            "     - is",
            "     - reached",
        ]
        for outcome in outcomes:
            value = "not measured" if outcome.value is None else shown(outcome.value)
            out += [f"   * - {outcome.text}", f"     - {value}", f"     - {'yes' if outcome.reached else '**no**'}"]
    return "\n".join(out) + "\n"


def machine() -> dict[str, Any]:
    """Where the measurements were made."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "",
    )
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def write(directory: Path, name: str, workload: Workload, lines: Sequence[Line], *, repeats: int) -> list[Outcome]:
    """Print a workload's result, and write it as JSON and reStructuredText."""
    outcomes = [judge(target, lines) for target in workload.targets]
    rows = table(workload, lines)
    today = datetime.now(UTC)
    where = machine()
    about = f"{today:%Y-%m-%d}, {where['cores']} cores, CPython {where['python']}, medians of {repeats}"
    print(f"\n{name}: {workload.title} ({about})\n\n{as_text(rows)}\n")
    for outcome in outcomes:
        print(outcome)
    document = {
        "workload": name,
        "title": workload.title,
        "date": today.isoformat(timespec="seconds"),
        "machine": where,
        "versions": {
            "client-go": CLIENT_GO,
            "controller-runtime": CONTROLLER_RUNTIME,
            **{rival: list(wanted) for rival, wanted in PINNED.items()},
        },
        "repeats": repeats,
        "results": [
            {
                "label": line.entrant.label,
                "rival": line.entrant.rival,
                "flags": line.entrant.flags,
                "pods": line.pods,
                "events": line.events,
                "error": line.error,
                "medians": line.medians(),
                "runs": line.runs,
            }
            for line in lines
        ],
        "targets": [{"text": each.text, "value": each.value, "reached": each.reached} for each in outcomes],
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (directory / f"{name}.rst").write_text(as_rst(workload, rows, outcomes, about))
    return outcomes


def medians_of(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the median of each number over the runs of one name."""
    return {
        name: {each: statistics.median(run[each] for run in done) for each in done[0]} for name, done in runs.items()
    }


def write_table(
    directory: Path,
    name: str,
    title: str,
    rows: Sequence[Sequence[str]],
    runs: Mapping[str, Sequence[Mapping[str, float]]],
    repeats: int,
) -> None:
    """Write runs and their medians as JSON, and a table of them as reStructuredText, which is also printed.

    Args:
        directory: Where to write.
        name: Of both files, without suffix.
        title: What was measured; date, machine and ``repeats`` are added.
        rows: The table, its header first.
        runs: The numbers of each run, by what was run.
        repeats: How many runs each median is of.
    """
    today, where = datetime.now(UTC), machine()
    title = f"{title} ({today:%Y-%m-%d}, {where['cores']} cores, medians of {repeats})"
    lines = _rst_table(title, rows)
    date = today.isoformat(timespec="seconds")
    document = {"title": title, "date": date, "machine": where, "medians": medians_of(runs), "runs": runs}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    (directory / f"{name}.rst").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
