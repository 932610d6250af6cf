"""The function that simulates an operator."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

import attrs
import trio

from .._simulation_options import options
from ._record import Problem
from ._repeat import first_difference
from ._replica import Operator
from ._report import Failure, Report
from ._run import Outcome
from ._saved import SavedStories
from ._scenario import Scenario
from ._search import SHARING, Judge, every_crash_of, story_of, story_without_faults
from ._shrink import shrink
from ._story import Story

REPEATED: Final = 100
"""One of so many stories is repeated in another interpreter."""

MORE_GROUPS: Final = 20
"""How many more stories with all steps, and with random steps, are told if the server has always rejected a step."""


def simulate(
    operator: Operator,
    scenario: type[object],
    *,
    stories: int = 1_000,
    seed: int = 0,
    replicas: int = 1,
    every_crash: bool = False,
    most_steps: int = 8,
    most_faults: int = 4,
    story: Story | None = None,
) -> Report:
    """Tell many stories to an operator, each with other steps of its user, faults and orders of tasks.

    ::

        def test_stories() -> None:
            simulate(serve, Websites, replicas=2).check()

    Each story is a run of trio of its own, on virtual time, with an embedded API server.  The first ones have no
    faults.  Then each fault occurs at each kind of request of the first story, and then several faults at once.  The
    first story that fails is shrunk, and ends the simulation.

    Args:
        operator: The program, an async function that takes a client and runs until it is cancelled.
        scenario: The class of the scenario, with ``kinds``, and optionally ``start``, methods marked with :func:`step`,
            ``always`` and ``eventually``.
        stories: The number of stories.  pytest's option ``--trioformer-stories`` overrides it.
        seed: The seed of everything that is random.  pytest's option ``--trioformer-story-seed`` overrides it.
        replicas: The number of replicas of the operator.
        every_crash: Whether to kill a replica before and after each write of the first story as well.
        most_steps: The maximum number of steps of a story.
        most_faults: The maximum number of faults of a story.
        story: A story from an earlier report, which is then the only one.

    Raises:
        RuntimeError: trio is running, or its version has no hook for the order of tasks.
        TypeError: The scenario has no kinds, or an argument of a step has no :func:`drawn` value.
        ValueError: A number is out of range, or the story does not fit the scenario.
    """
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("simulate() runs trio itself, so call it from a function that is not async")
    stories = stories if options.stories is None else options.stories
    seed = seed if options.seed is None else options.seed
    if min(replicas, most_steps, most_faults) < 1 or stories < 0:
        raise ValueError("replicas, most_steps and most_faults must be at least 1, and stories at least 0")
    search = _Search(Judge(operator, Scenario(scenario)), seed, replicas, most_steps, most_faults)
    with collected():
        if options.without_faults:
            search.try_without_faults(stories)
        elif story is not None:
            search.try_story(story)
        else:
            search.try_saved()
            search.try_stories(stories)
            if every_crash:
                search.try_crashes()
    return search.report()


@final
@attrs.define(eq=False)
class _Search:
    """A simulation, which ends with the first story that fails."""

    _judge: Judge
    _seed: int
    _replicas: int
    _most_steps: int
    _most_faults: int
    _told: int = 0
    _first: Outcome | None = None
    _failure: Failure | None = None
    _untested: list[str] = attrs.field(factory=list)
    _saved: SavedStories = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        cls = self._judge.scenario.cls
        name = f"{cls.__module__}.{cls.__qualname__}-{_name_of(self._judge.operator)}"
        self._saved = SavedStories(options.directory, name.replace("<locals>.", ""))

    def try_story(self, story: Story) -> None:
        """Tell one story, and do not shrink it."""
        self._judge.scenario.check_story(story)
        outcome = self._judge.judge(story)
        if outcome.problem is not None:
            self._fail(outcome, -1)
        requests = ", ".join(sorted(outcome.counts))
        self._untested = [f"this fault did not occur: {one} (the requests were {requests})" for one in outcome.missed]

    def try_saved(self) -> None:
        """Tell the stories that failed the last time, and forget those that no longer fail."""
        for path, story in self._saved.read(self._judge.scenario):
            if self._tell(story, -1).problem is not None:
                return
            path.unlink(missing_ok=True)

    def try_stories(self, count: int) -> None:
        """Tell the story without faults, and then stories with faults."""
        if self._failure is not None:
            return
        self._first = first = self._plain(0)
        for number in range(count):
            own = self._plain(number // SHARING)
            if own.problem is not None:
                return
            self._told += 1
            outcome = self._tell(story_of(self._seed, number, first, own, self._most_faults), number)
            if outcome.problem is not None or (
                number % REPEATED == REPEATED - 1 and self._check_repeatable(outcome, number)
            ):
                return
        for group in range(-MORE_GROUPS, MORE_GROUPS):
            # A step may only have met names that did not exist.
            if not any(self._judge.rejected.values()) or self._plain(group, is_short=True).problem is not None:
                break
        self._untested = [
            f"the step {name} never succeeded: {error.partition(': ')[2]}"
            for name, error in self._judge.rejected.items()
            if error
        ]

    def try_without_faults(self, count: int) -> None:
        """Tell other stories, without faults."""
        for group in range(count):
            if self._plain(group, is_short=True).problem is not None:
                break

    def try_crashes(self) -> None:
        """Kill a replica before and after each write of the first story."""
        first = self._first
        if first is None or self._failure is not None:
            return
        for faults in every_crash_of(first):
            if self._tell(attrs.evolve(first.story, faults=faults), -1).problem is not None:
                return

    def report(self) -> Report:
        """Return what the simulation has done and found."""
        judge = self._judge
        return Report(
            operator=_name_of(judge.operator),
            scenario=judge.scenario.name,
            stories=self._told,
            runs=judge.runs,
            requests=judge.requests,
            seconds=judge.seconds,
            faults=judge.struck,
            anchors=() if self._first is None else tuple(sorted(self._first.counts)),
            failure=self._failure,
            untested=tuple(self._untested),
        )

    def _plain(self, group: int, *, is_short: bool = False) -> Outcome:
        """Return the outcome of the steps of a group without faults."""
        story = story_without_faults(self._judge.scenario, self._seed, group, self._replicas, self._most_steps)
        outcome = self._judge.reference(story, is_short=is_short).outcome
        if outcome.problem is not None:
            self._shrink(outcome, -1)
        return outcome

    def _tell(self, story: Story, number: int) -> Outcome:
        outcome = self._judge.judge(story)
        if outcome.problem is not None:
            self._shrink(outcome, number)
        return outcome

    def _shrink(self, outcome: Outcome, number: int) -> None:
        if options.without_faults:  # another interpreter would not take the permission away
            assert outcome.problem is not None
            self._failure = Failure(problem=outcome.problem, story=outcome.story, number=-1, entries=outcome.entries)
            return
        ignored = self._judge.reference(outcome.story).ignored
        outcome = shrink(self._judge, outcome, ignored)
        self._saved.save(outcome.story)
        self._fail(outcome, number)

    def _fail(self, outcome: Outcome, number: int) -> None:
        assert outcome.problem is not None
        failure = Failure(problem=outcome.problem, story=outcome.story, number=number, entries=outcome.entries)
        again = self._check_repeatable(outcome, number)
        if again is None:
            note = "The story was not repeated in another interpreter, which could not import the operator."
            failure = attrs.evolve(failure, note=note)
        if not again:
            self._failure = failure

    def _check_repeatable(self, outcome: Outcome, number: int) -> str | None:
        """Repeat a story in another interpreter, and fail if its trace is another one."""
        judge = self._judge
        difference = first_difference(judge.operator, judge.scenario, outcome.story, outcome.entries)
        if difference:
            text = f"the story differs in another interpreter: {difference}"
            if outcome.problem is not None:
                text += f"; here, it failed with {outcome.problem.check}: {outcome.problem.text}"
            problem = Problem("not repeatable", "", text)
            self._failure = Failure(problem=problem, story=outcome.story, number=number, entries=outcome.entries)
        return difference


def _name_of(operator: Operator) -> str:
    return getattr(operator, "__qualname__", type(operator).__qualname__).rpartition(".")[2]


@contextmanager
def collected() -> Iterator[None]:
    """Keep the objects that exist out of the garbage collections during the block."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
