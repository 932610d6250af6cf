"""Stories: what a user does, which faults occur, and in which order tasks run, as values that can be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, final

import attrs

from ...models import FrozenMap
from ...models._internal import EMPTY_MAP

Value: TypeAlias = int | float | str | bool
"""An argument of a step."""
FaultKind: TypeAlias = Literal[
    "answer", "cut", "silent", "slow", "rival", "kill", "stop", "rewind",
    "stale", "compact", "outage", "partition", "clock", "pod fails", "pods late",
]  # fmt: skip
"""What happens: see :class:`Fault`."""


def _frozen(arguments: Mapping[str, Value]) -> FrozenMap[Value]:
    return FrozenMap(arguments)


@final
@attrs.frozen(kw_only=True)
class Step:
    """A step of the user."""

    name: str
    """The name of the method of the scenario."""
    arguments: Mapping[str, Value] = attrs.field(default=EMPTY_MAP, converter=_frozen)
    """The arguments of the method."""
    wait: float = 0.0
    """The seconds between the previous step and this one."""

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{f'{self.wait:g} s later, ' * bool(self.wait)}the user calls {self.name}({arguments})"


def _check_kind(_: object, __: object, kind: str) -> None:
    if kind not in _EFFECTS:
        raise ValueError(f"{kind!r} is no kind of fault; the kinds are {', '.join(_EFFECTS)}")


@final
@attrs.frozen(kw_only=True)
class Fault:
    """A fault, which occurs at a certain request of the operator.

    The kinds of faults are:

    - ``answer``: the server responds with the error ``code``
    - ``cut``: the connection breaks
    - ``silent``: nothing arrives until the client gives up, or for a minute
    - ``slow``: the request takes ``lasts`` seconds
    - ``rival``: somebody else changes the object first
    - ``kill``: the replica is killed, and starts again ``lasts`` seconds later
    - ``stop``: the replica is stopped and may clean up, and starts again ``lasts`` seconds later
    - ``rewind``: all replicas are killed and start again ``lasts`` seconds later, and all caches stay as they were
      ``back`` seconds before the request, until ``lasts`` seconds after the start
    - ``stale``: no cache changes for ``lasts`` seconds
    - ``compact``: the watches of the replica break, and the history is compacted
    - ``outage``: no replica reaches the server for ``lasts`` seconds
    - ``partition``: the replica does not reach the server for ``lasts`` seconds
    - ``clock``: the clock of the replica is ``lasts`` seconds ahead from the start of the story
    - ``pod fails``: the containers of the oldest running pod end with an error
    - ``pods late``: pods that start in the next minutes become ready ``lasts`` seconds late
    """

    kind: FaultKind = attrs.field(validator=_check_kind)
    """What happens."""
    at: str = ""
    """The request, as the verb and the resource, such as ``patch websites/status``.  Empty for ``clock``."""
    number: int = 1
    """Which one of these requests, counted over all replicas, from 1."""
    after: bool = False
    """Whether the server carries out the request first."""
    code: int = 0
    """The HTTP code for ``answer``."""
    lasts: float = 0.0
    """Seconds, for the kinds that need a duration."""
    back: float = 0.0
    """The age of the caches in seconds, for ``rewind``."""
    replica: int = 0
    """The replica, for ``clock``."""

    def __str__(self) -> str:
        if self.kind == "clock":
            return f"the clock of replica {self.replica} is {self.lasts:g} s ahead"
        verb, _, resource = self.at.partition(" ")
        which = f"the first {self.at}" if self.number == 1 else f"{verb} number {self.number} of {resource}"
        effect = _EFFECTS[self.kind].format(code=self.code, lasts=f"{self.lasts:g} s", back=f"{self.back:g} s")
        return f"{'after' if self.after else 'before'} {which}: {effect}"


_EFFECTS: dict[FaultKind, str] = {
    "answer": "the response is {code}",
    "cut": "the connection breaks",
    "silent": "no response arrives",
    "slow": "the request takes {lasts}",
    "rival": "somebody else changes the object",
    "kill": "the replica is killed, and starts again after {lasts}",
    "stop": "the replica is stopped, and starts again after {lasts}",
    "rewind": "all replicas are killed, start again after {lasts}, and for as long have caches as {back} before",
    "stale": "all caches stay behind for {lasts}",
    "compact": "watches break and the history is compacted",
    "outage": "the server is unreachable for {lasts}",
    "partition": "the replica cannot reach the server for {lasts}",
    "pod fails": "a pod fails",
    "pods late": "new pods become ready {lasts} late",
    "clock": "",
}


@final
@attrs.frozen(kw_only=True)
class Schedule:
    """The order of tasks."""

    policy: Literal["spawned", "random", "late"] = "spawned"
    """``spawned`` runs older tasks first, and ``late`` often runs one replica last."""
    number: int = 0
    """The seed of ``random``, or the replica for ``late``."""


@final
@attrs.frozen(kw_only=True)
class Story:
    """Everything that decides how a story goes, apart from the operator and the scenario."""

    steps: tuple[Step, ...] = ()
    """The steps of the user, in this order."""
    faults: tuple[Fault, ...] = ()
    """The faults, in any order."""
    replicas: int = 1
    """The number of replicas of the operator."""
    schedule: Schedule = Schedule()
    """The order of tasks."""
    seed: int = 0
    """The seed of the random numbers of the operator."""

    def __str__(self) -> str:
        lines = [f"{self.replicas} replica{'s' * (self.replicas > 1)} of the operator run{'s' * (self.replicas == 1)}."]
        lines += [f"{text[0].upper()}{text[1:]}." for text in map(str, (*self.steps, *self.faults))]
        return "\n".join(lines)

    def as_code(self) -> str:
        """Return the story as an expression in Python."""
        lines = [f"    replicas={self.replicas},", f"    seed={self.seed},"]
        lines += [f"    schedule={_code(self.schedule)},"] * (self.schedule != Schedule())
        for name, parts in (("steps", self.steps), ("faults", self.faults)):
            if parts:
                lines += [f"    {name}=(", *(f"        {_code(one)}," for one in parts), "    ),"]
        return "\n".join(["Story(", *lines, ")"])

    def to_json(self) -> str:
        """Return the story as JSON, for :meth:`from_json`."""
        return json.dumps(attrs.asdict(self, value_serializer=_plain), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Story:
        """Return the story from its JSON.

        Raises:
            ValueError: The text is not a story, for example because another version of the library has written it.
        """
        try:
            found: dict[str, Any] = json.loads(text)
            steps = tuple(Step(**one) for one in found.pop("steps"))
            faults = tuple(Fault(**one) for one in found.pop("faults"))
            return cls(steps=steps, faults=faults, schedule=Schedule(**found.pop("schedule")), **found)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a story: {error}") from error


def _plain(_: type, __: object, value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


def _code(part: Any) -> str:
    """Return the call that makes a part of a story, without the arguments that have their default."""
    given = [(one.name, getattr(part, one.name), one.default) for one in attrs.fields(type(part))]
    shown = [f"{name}={_plain(type(part), None, value)!r}" for name, value, default in given if value != default]
    return f"{type(part).__name__}({', '.join(shown)})"
