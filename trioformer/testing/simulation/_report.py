"""What a simulation reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final, get_args

import attrs

from ...controller._internal import describe_causes
from ._record import Entry, Problem
from ._story import FaultKind, Story

_SHOWN: Final = 40
"""The number of lines of the trace in a report."""
_BEFORE: Final = 10
"""The number of entries before the first fault."""
_MANY: Final = 5


class StoryFailed(AssertionError):  # noqa: N818  # as pytest's Failed
    """A story in which the operator did something wrong, or a simulation that did not test what it should.

    The message has the problem, the shortest story that leads to it, the end of the trace, and a test that repeats it.
    """


@final
@attrs.frozen(kw_only=True)
class Failure:
    """A story that has failed, after it was shrunk."""

    problem: Problem
    """What went wrong."""
    story: Story
    """The shortest story with this problem that was found."""
    number: int
    """The number of the story that failed first, or -1 if it failed without faults, or was saved by an earlier run."""
    entries: tuple[Entry, ...]
    """The trace of the short story."""
    note: str = ""
    """What else the reader must know."""

    def describe(self, operator: str, scenario: str) -> str:
        """Return the problem, the story, the end of the trace, and a test."""
        where = f" (found in story {self.number})" if self.number >= 0 else ""
        check, text = self.problem.check, self.problem.text
        lines = [f"{text if text.startswith(check) else f'{check}: {text}'}{where}", "", "The story:"]
        lines += [f"  {line}" for line in str(self.story).splitlines()]
        lines += ["", "What happened:", *(f"  {line}" for line in self._trace())]
        lines += ["", "A test that repeats the story:", "", *_test(self.story, operator, scenario)]
        return "\n".join([*lines, *(["", self.note] if self.note else [])])

    def _trace(self) -> list[str]:
        """Return the trace since shortly before the first fault until the problem."""
        found = [one for one in self.entries[: self.problem.position or None] if _is_interesting(one)]
        first = next((index for index, one in enumerate(found) if one.who == "the story"), len(found) - _SHOWN)
        lines: dict[str, list[str]] = {}
        for one in found[max(0, first - _BEFORE) :]:
            # Attempts that fail in the same way are one line.
            is_attempt = one.outcome.startswith(("no response", "failed"))
            same = f"{one.who} {one.what} {one.outcome}" if is_attempt else str(len(lines))
            lines.setdefault(same, []).extend(lines_of(one))
        shown = [
            line
            for same in lines.values()
            for line in (same[:2] if len(same) < _MANY else [*same[:2], f"{'':23}and {len(same) // 2 - 1} more times"])
        ]
        return shown if len(shown) <= _SHOWN else [*shown[: _SHOWN // 2], "…", *shown[-_SHOWN // 2 :]]


def _is_interesting(entry: Entry) -> bool:
    is_routine = " leases" in entry.what or entry.what.startswith(("list ", "watch "))
    return not is_routine or entry.outcome[:1] not in ("", "2")


def lines_of(entry: Entry) -> list[str]:
    """Return the line of an entry and the line of its cause."""
    cause = "" if entry.cause is None else describe_causes(entry.cause)
    return [str(entry), *([f"{'':23}{cause}"] if cause else [])]


def _test(story: Story, operator: str, scenario: str) -> list[str]:
    names = [name for name in ("Fault", "Schedule", "Step") if f"{name}(" in story.as_code()]
    return [
        f"from trioformer.testing.simulation import {', '.join([*names, 'Story', 'simulate'])}",
        "",
        "",
        "def test_story() -> None:",
        *(f"    {line}" for line in f"story = {story.as_code()}".splitlines()),
        f"    simulate({operator}, {scenario}, story=story).check()",
    ]


@final
@attrs.frozen(kw_only=True)
class Report:
    """What :func:`simulate` has done and found."""

    operator: str
    """The name of the operator."""
    scenario: str
    """The name of the scenario."""
    stories: int
    """The number of stories with faults that were told, without those for shrinking."""
    runs: int
    """The number of all runs."""
    requests: int
    """The number of requests of the operator in all runs."""
    seconds: float
    """The virtual time of all runs, in seconds."""
    faults: Mapping[str, int]
    """How often each kind of fault has occurred."""
    anchors: tuple[str, ...]
    """The kinds of requests at which faults could occur."""
    failure: Failure | None = None
    """The first story that failed, or None."""
    untested: tuple[str, ...] = ()
    """The steps that the server always rejected without faults, and the faults of a given story that did not occur."""

    def check(self) -> None:
        """Raise an error if a story has failed, or if something was not tested.

        Raises:
            StoryFailed: A story has failed, a step never succeeded, or a fault of the given story did not occur.
        """
        if self.failure is not None:
            raise StoryFailed(self.failure.describe(self.operator, self.scenario))
        if self.untested:
            raise StoryFailed("\n".join(self.untested))

    def __str__(self) -> str:
        faults = ", ".join(f"{kind} ({count})" for kind, count in sorted(self.faults.items()))
        missing = ", ".join(kind for kind in get_args(FaultKind) if kind not in self.faults)
        lines = [
            f"{self.stories} stories of {self.operator} with {self.scenario}",
            f"{self.runs} runs, {self.requests} requests, {self.seconds:,.0f} virtual seconds",
            f"faults that occurred: {faults or 'none'}",
            *[f"kinds of faults that did not occur: {missing}"] * bool(missing and self.stories),
            f"at: {', '.join(self.anchors) or 'nothing'}",
            *self.untested,
            "no story failed" if self.failure is None else f"failed: {self.failure.problem.text}",
        ]
        return "\n".join(lines)
