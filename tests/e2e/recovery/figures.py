"""The figures of the measurements: rounds, and tables of them."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from tests.e2e.recovery.subjects import OURS, THEIRS

FIGURES_VARIABLE = "TRIOFORMER_RECOVERY_FIGURES"
"""The environment variable with the file that tables are appended to."""
MIN_BOUND = 2.0
"""Seconds that a recovery may always take."""


@attrs.frozen
class Round:
    """One outage."""

    kind: str
    duration: float
    """Seconds that it lasted."""
    recoveries: Mapping[str, float]
    """Seconds from its end until everything agreed, by library."""

    @property
    def bound(self) -> float:
        """What trioformer's recovery may be."""
        return max(MIN_BOUND, 2 * self.recoveries.get(THEIRS, 0.0))

    @property
    def is_in_time(self) -> bool:
        return self.recoveries[OURS] <= self.bound


def medians_and_maxima(rounds: Iterable[Round]) -> list[Sequence[object]]:
    """Return a row for each kind of fault and library, in order."""
    by_kind: dict[str, list[Round]] = {}
    for each in rounds:
        by_kind.setdefault(each.kind, []).append(each)
    return [
        (kind, len(some), library, statistics.median(seconds), max(seconds))
        for kind, some in by_kind.items()
        for library in some[0].recoveries
        for seconds in [[each.recoveries[library] for each in some]]
    ]


def report(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, and append it to the file that the environment names."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    text = "\n".join([title, *lines, ""])
    print(f"\n{text}")
    if name := os.environ.get(FIGURES_VARIABLE):
        with Path(name).open("a") as file:
            file.write(text + "\n")


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def peak(moments: Iterable[float], window: float = 1.0) -> int:
    """Return how many of the moments were in the fullest window of so many seconds."""
    ordered = sorted(moments)
    begin = most = 0
    for end, moment in enumerate(ordered):
        while moment - ordered[begin] >= window:
            begin += 1
        most = max(most, end - begin + 1)
    return most
