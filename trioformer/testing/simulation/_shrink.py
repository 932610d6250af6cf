"""The search for the simplest story that fails in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar, final

import attrs

from ._run import Outcome
from ._search import Judge
from ._story import Fault, Schedule, Step, Story

MOST_RUNS: Final = 500
"""The number of runs that shrinking a story may take."""
_WAITS: Final = (0.0, 1.0, 5.0, 20.0)
"""The waits to try, the simplest first."""
T = TypeVar("T")


def shrink(judge: Judge, failed: Outcome, ignored: frozenset[str]) -> Outcome:
    """Return the outcome of the simplest story that was found with the same check and path."""
    found = _Shrinking(judge, failed, ignored, judge.runs + MOST_RUNS)
    before = None
    while before != found.best.story:
        before = found.best.story
        found.try_all()
    return found.best


@final
@attrs.define(eq=False)
class _Shrinking:
    judge: Judge
    best: Outcome
    """The outcome of the simplest story so far."""
    _ignored: frozenset[str]
    _end: int
    """The number of runs at which to stop."""
    _seen: set[Story] = attrs.field(factory=set)

    def try_all(self) -> None:
        """Try to leave out and to simplify each part once."""
        missed = self.best.missed
        self._try(faults=tuple(one for one in self._story.faults if one not in missed))
        self._leave_out("faults")
        self._leave_out("steps")
        for replicas in range(1, self._story.replicas):
            self._try(replicas=replicas)
        self._try(schedule=Schedule())
        self._try(steps=tuple(attrs.evolve(one, wait=0.0) for one in self._story.steps))
        for index in range(len(self._story.steps)):
            for step in self._simpler_steps(self._story.steps[index]):
                if self._try(steps=_replaced(self._story.steps, index, step)):
                    break
        for index in range(len(self._story.faults)):
            for fault in _simpler_faults(self._story.faults[index]):
                if self._try(faults=_replaced(self._story.faults, index, fault)):
                    break

    @property
    def _story(self) -> Story:
        return self.best.story

    def _try(self, **changes: object) -> bool:
        """Run a changed story, keep it if it fails in the same way, and return whether it does."""
        story = attrs.evolve(self._story, **changes)  # type: ignore[arg-type]
        if story in self._seen or story == self._story or self.judge.runs >= self._end:
            return False
        self._seen.add(story)
        assert self.best.problem is not None
        outcome = self.judge.judge(story, self._ignored, self.best.problem.check)
        if outcome.problem is None or outcome.problem.identity != self.best.problem.identity:
            return False
        self.best = attrs.evolve(outcome, story=story)
        return True

    def _leave_out(self, name: str) -> None:
        """Leave out steps or faults, first half of them at once."""
        size = len(getattr(self._story, name))
        while size:
            end = len(getattr(self._story, name))
            while end > 0:
                parts = getattr(self._story, name)
                start = max(0, end - size)
                if not self._try(**{name: (*parts[:start], *parts[end:])}) and name == "steps":
                    # The next step may have to be as late as before.
                    waits = sum(one.wait for one in parts[start:end])
                    later = [attrs.evolve(one, wait=one.wait + waits) for one in parts[end : end + 1]]
                    self._try(steps=(*parts[:start], *later, *parts[end + 1 :]))
                end = start
            size //= 2

    def _simpler_steps(self, one: Step) -> Iterator[Step]:
        yield from (attrs.evolve(one, wait=wait) for wait in _WAITS if wait < one.wait)
        for name, drawn in self.judge.scenario.steps.get(one.name, {}).items():
            for value in drawn.simpler(one.arguments[name]):
                yield attrs.evolve(one, arguments={**one.arguments, name: value})


def _replaced(parts: tuple[T, ...], index: int, other: T) -> tuple[T, ...]:
    return (*parts[:index], other, *parts[index + 1 :])


def _simpler_faults(fault: Fault) -> Iterator[Fault]:
    for number in sorted({1, fault.number // 2, fault.number - 1} - {0, fault.number}):
        yield attrs.evolve(fault, number=number)
