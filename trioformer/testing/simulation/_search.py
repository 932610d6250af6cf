"""The search for a story that fails: first without faults, then each fault at each kind of request, then several."""

from __future__ import annotations

import gc
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, final

import attrs

from ._draw import Draw, mix
from ._record import Problem
from ._replica import Operator
from ._run import Outcome, run_story
from ._scenario import Scenario
from ._states import differences
from ._story import Fault, FaultKind, Schedule, Story

MANY: Final = "too many children"
OTHER_END: Final = "another end"
COMPARING: Final = (MANY, OTHER_END)
"""The checks that compare a story with the same story without faults."""
COLLECTING: Final = 4
"""The number of stories after which the garbage collector runs."""
SHARING: Final = 25
"""The number of stories with the same steps, which are compared with the same stories without faults."""
_KEPT: Final = 8
"""The number of references in memory."""
_SCHEDULES: Final = (Schedule(), Schedule(policy="random", number=1), Schedule(policy="random", number=2))
_DURATIONS: Final[Mapping[FaultKind, tuple[float, ...]]] = {
    "slow": (1.0, 5.0, 30.0),
    "kill": (1.0, 20.0, 40.0),
    "stop": (1.0, 20.0, 40.0),
    "rewind": (20.0, 40.0),
    "stale": (20.0, 40.0, 90.0),
    "outage": (5.0, 20.0, 120.0),
    "partition": (5.0, 20.0, 120.0),
    "pods late": (10.0, 60.0),
}
"""The seconds that faults last.  After a shorter rewind, the caches would be fresh before a Lease of 15 s ends."""

_Effect: TypeAlias = tuple[FaultKind, bool, int]
"""The kind of a fault, whether it occurs after the request was carried out, and the code of the response or the age of
the caches after a rewind."""
_AT_WRITES: Final[tuple[_Effect, ...]] = (
    ("kill", True, 0), ("kill", False, 0), ("rewind", True, 0), ("rewind", True, 60), ("rival", False, 0),
    ("answer", False, 409), ("rewind", True, 10), ("cut", True, 0), ("stale", True, 0),
    ("answer", False, 500), ("cut", False, 0), ("compact", True, 0),
    ("stop", True, 0), ("outage", True, 0), ("partition", False, 0), ("answer", False, 403), ("answer", True, 500),
    ("silent", True, 0), ("slow", False, 0), ("pod fails", True, 0), ("pods late", False, 0), ("answer", False, 429),
    ("answer", False, 503), ("silent", False, 0), ("answer", True, 503), ("stop", False, 0),
)  # fmt: skip
_AT_READS: Final[tuple[_Effect, ...]] = (
    ("kill", True, 0), ("answer", False, 500), ("cut", False, 0), ("compact", True, 0), ("slow", True, 0),
    ("outage", False, 0), ("silent", False, 0),
)  # fmt: skip
_AT_LEASES: Final[tuple[_Effect, ...]] = (
    ("partition", False, 0), ("kill", True, 0), ("silent", False, 0), ("slow", False, 0), ("cut", True, 0),
)  # fmt: skip
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@final
@attrs.frozen
class Reference:
    """What some steps lead to without faults."""

    outcome: Outcome
    """The outcome of the first run, or of the run that failed."""
    ignored: frozenset[str]
    """The paths that differ between runs with other schedules."""
    most_children: Counter[tuple[str, str]]


@final
@attrs.define(eq=False)
class Judge:
    """Runs stories, and compares them with stories without faults."""

    operator: Operator
    scenario: Scenario
    runs: int = 0
    requests: int = 0
    seconds: float = 0.0
    struck: Counter[str] = attrs.field(factory=Counter)
    """How often each kind of fault has occurred."""
    rejected: dict[str, str] = attrs.field(factory=dict)
    """The last error of each step without faults, or an empty string if the step has succeeded."""
    _references: OrderedDict[object, Reference] = attrs.field(factory=OrderedDict)

    def run(self, story: Story) -> Outcome:
        """Run a story."""
        outcome = run_story(self.operator, self.scenario, story)
        self.runs += 1
        if self.runs % COLLECTING == 0:
            gc.collect()
        self.requests += outcome.requests
        self.seconds += outcome.seconds
        self.struck.update(fault.kind for fault in story.faults if fault not in outcome.missed)
        return outcome

    def reference(self, story: Story, *, is_short: bool = False) -> Reference:
        """Return what the steps of a story lead to without faults, from one run if it is short, or from three."""
        key = (story.steps, story.replicas, story.seed, is_short)
        if key in self._references:
            self._references.move_to_end(key)
            return self._references[key]
        plain = attrs.evolve(story, faults=())
        outcomes: list[Outcome] = []
        ignored: set[str] = set()
        most: Counter[tuple[str, str]] = Counter()
        for schedule in _SCHEDULES[: 1 if is_short else 3]:
            outcome = self.run(attrs.evolve(plain, schedule=schedule))
            for one, error in zip(story.steps, outcome.step_errors, strict=False):
                self.rejected[one.name] = error and self.rejected.get(one.name, error)
            if outcome.problem is not None:
                outcomes = [outcome]
                break
            outcomes.append(outcome)
            ignored |= {path for path, _ in differences(outcomes[0].state, outcome.state)}
            most |= Counter(outcome.most_children)
        self._references[key] = found = Reference(outcomes[0], frozenset(ignored), most)
        if len(self._references) > _KEPT:
            self._references.popitem(last=False)
        return found

    def judge(self, story: Story, ignored: frozenset[str] | None = None, check: str = "") -> Outcome:
        """Run a story, and return its outcome with the first problem, if there is one.

        Args:
            story: The story.
            ignored: The paths to ignore.  If they are given, one run without faults is enough.
            check: The only check that matters.  Most checks do not need the run without faults.
        """
        outcome = self.run(story)
        if outcome.problem is not None or (check and check not in COMPARING):
            return outcome
        reference = self.reference(story, is_short=ignored is not None)
        if reference.outcome.problem is not None:
            return reference.outcome
        found = self._compare(reference, outcome, reference.ignored | (ignored or frozenset()))
        return attrs.evolve(outcome, problem=found)

    def _compare(self, reference: Reference, outcome: Outcome, ignored: frozenset[str]) -> Problem | None:
        if _classes(outcome.step_errors) != _classes(reference.outcome.step_errors):
            return None  # the user has met another situation
        for (owner, kind), count in outcome.most_children.items():
            if count > (most := reference.most_children[owner, kind]):
                text = f"{owner} had {count} objects of kind {kind} at one time, but without faults at most {most}"
                return Problem(MANY, kind, text, len(outcome.entries))
        for path, text in differences(reference.outcome.state, outcome.state):
            if path not in ignored and not any(pattern in path for pattern in self.scenario.ignored_paths):
                return Problem(OTHER_END, path, f"{text}, as without faults", len(outcome.entries))
        return None


def _classes(errors: tuple[str, ...]) -> list[str]:
    return [one.partition(":")[0] for one in errors]


def story_without_faults(scenario: Scenario, seed: int, group: int, replicas: int, most_steps: int) -> Story:
    """Return the first story of a group, whose stories have the same steps.  Up to group 0, it has all steps."""
    draw = Draw(mix(seed, group))
    drawn_steps = scenario.draw_steps(draw, most_steps) if group > 0 else scenario.draw_each_step(draw)
    return Story(steps=drawn_steps, replicas=replicas, seed=mix(seed, group) % 2**32)


def story_of(seed: int, number: int, first: Outcome, own: Outcome, most_faults: int) -> Story:
    """Return the story with a number, which depends on nothing else than the arguments.

    Args:
        seed: The seed of the simulation.
        number: The number of the story.
        first: The reference story, which has all steps.
        own: The story with the same steps, but without faults.
        most_faults: The maximum number of faults.
    """
    draw = Draw(mix(seed, number, 1))
    fixed = _each_fault(first.counts)
    random, late = Schedule(policy="random", number=number), Schedule(policy="late", number=number)
    schedule = draw.pick((*_SCHEDULES, random, late))
    if number < len(fixed):
        if fixed[number][1] not in own.counts:
            own = first  # so that the fault occurs
        faults = [_fault(draw, own.counts, *fixed[number], is_alone=True)]
    else:
        choices = _each_fault(own.counts)
        count = 1 + draw.below(most_faults) if choices else 0
        faults = [_fault(draw, own.counts, *draw.pick(choices)) for _ in range(count)]
    if own.story.replicas > 1 and draw.below(4) == 0:
        faults.append(Fault(kind="clock", replica=draw.below(own.story.replicas), lasts=draw.pick((-600.0, 600.0))))
    return attrs.evolve(own.story, faults=tuple(faults), schedule=schedule)


def _each_fault(counts: Mapping[str, int]) -> list[tuple[_Effect, str]]:
    """Return each fault that can occur at each kind of request, the most revealing first."""
    kinds = sorted(kind for kind in counts if not kind.endswith(" events"))
    leases = [kind for kind in kinds if kind.endswith(" leases") and kind.partition(" ")[0] in _WRITES]
    writes = [kind for kind in kinds if kind.partition(" ")[0] in _WRITES and kind not in leases]
    reads = [kind for kind in kinds if kind.partition(" ")[0] in ("get", "list", "watch")]
    tables = ((_AT_WRITES, writes), (_AT_LEASES, leases), (_AT_READS, reads))
    return [
        (effect, kind)
        for effects, found in tables
        for effect in effects
        for kind in found
        if effect[2] != 409 or not kind.startswith("create")  # a new name is no conflict
    ]


def _fault(draw: Draw, counts: Mapping[str, int], effect: _Effect, at: str, *, is_alone: bool = False) -> Fault:
    kind, after, value = effect
    count = counts.get(at, 1)
    # A rewind and a rival reveal most when much has happened before.
    number = 1 + max(draw.below(count), draw.below(count) if kind == "rewind" else 0)
    number = count if kind == "rival" and is_alone else number
    lasts = draw.pick(_DURATIONS.get(kind, (0.0,)))
    back, code = (float(value), 0) if kind == "rewind" else (0.0, value)
    return Fault(kind=kind, at=at, number=number, after=after, lasts=lasts, back=back, code=code)


def every_crash_of(first: Outcome) -> Iterator[tuple[Fault, ...]]:
    """Yield the faults that kill a replica before and after each write of a story."""
    for kind, count in sorted(first.counts.items()):
        if kind.partition(" ")[0] in _WRITES and not kind.endswith((" leases", " events")):
            for number in range(1, count + 1):
                for after in (False, True):
                    yield (Fault(kind="kill", at=kind, number=number, after=after, lasts=1.0),)
