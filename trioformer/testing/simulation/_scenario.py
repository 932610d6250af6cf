"""Scenarios: what the user of a story does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, final

import attrs

from ..._text import describe_error
from ...crds import crd_of
from ...errors import StatusError
from ...models import KubernetesObject, ObjectMeta, resource_of, to_dict
from .._server import APIServer
from ._draw import Draw
from ._story import Step, Story, Value
from ._world import World

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_MARK = "_is_step_of_scenario"


@final
@attrs.frozen
class Drawn:
    """The values that an argument of a step can have."""

    values: tuple[Any, ...]
    """The lowest and the highest integer, or all values."""

    @property
    def is_range(self) -> bool:
        """Whether the values are two bounds."""
        return len(self.values) == 2 and all(type(value) is int for value in self.values)

    def draw(self, draw: Draw) -> Value:
        """Draw a value."""
        low, high = self.values[0], self.values[-1]
        value: Value = low + draw.below(high - low + 1) if self.is_range else draw.pick(self.values)
        return value

    def simpler(self, value: Any) -> list[Value]:
        """Return simpler values, simplest first."""
        if self.is_range and type(value) is int:
            low, high = self.values
            zero = min(max(0, low), high)
            nearer = (zero, min(zero + 1, high), (zero + value) // 2)
            return [one for one in nearer if abs(one - zero) < abs(value - zero)]
        return list(self.values[: self.values.index(value) if value in self.values else None])


def drawn(*values: T) -> T:
    """Return the default of an argument of a step, so that each story draws another value.

    ::

        @step
        def scale(self, world: World, replicas: int = drawn(0, 5), size: str = drawn("small", "large", "huge")) -> None:
            ...

    Args:
        values: Two integers, which are the lowest and the highest value, or all values, the simplest first.

    Raises:
        TypeError: A value is not a number, a boolean or a string.
        ValueError: There is no value, or the lowest integer is above the highest one.
    """
    found: Any = Drawn(values)
    for one in values:
        if not isinstance(one, int | float | str | None):
            raise TypeError(f"drawn() takes numbers, booleans and strings, not {one!r}")
    if not values or (found.is_range and values[0] > values[1]):  # type: ignore[operator]
        raise ValueError(f"drawn{values} has no value; write drawn(lowest, highest) or drawn(value, …)")
    return found  # type: ignore[no-any-return]


def step(method: F) -> F:
    """Mark a method of a scenario as something that the user may do at any time.

    The method is synchronous, and takes the :class:`World`.  Other arguments have a default from :func:`drawn`.  If
    the server rejects a request of the method, the step has no further effect, and the story continues.
    """
    setattr(method, _MARK, True)
    return method


@final
@attrs.define(eq=False)
class Scenario:
    """The class of a scenario, checked, with the steps of the library if it has none."""

    cls: type[Any]
    kinds: tuple[type[KubernetesObject], ...] = attrs.field(init=False)
    steps: Mapping[str, Mapping[str, Drawn]] = attrs.field(init=False)
    """The arguments of each step, in the order of the class."""
    ignored_paths: tuple[str, ...] = attrs.field(init=False)
    """Parts of the paths whose values may differ from those without faults."""
    kept: tuple[str, ...] = attrs.field(init=False)
    """The kinds of objects that may remain after everything was deleted."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.cls, type):
            raise TypeError(f"a scenario is a class, not {self.cls!r}")
        self.kinds = _tuple_of(self.cls, "kinds")
        if not self.kinds:
            raise TypeError(f"{self.cls.__name__} has no kinds; write for example kinds = (Website,)")
        self.ignored_paths = _tuple_of(self.cls, "ignored_paths")
        self.kept = tuple(resource_of(kind).kind for kind in _tuple_of(self.cls, "kept_kinds"))
        names = _step_names(self.cls)
        for name in _PLAIN_STEPS:
            if name not in names and callable(getattr(self.cls, name, None)):
                raise TypeError(f"{self.cls.__name__}.{name} is not decorated with @step")
        for name in ("start", "always", "eventually", *names):
            if inspect.iscoroutinefunction(getattr(self.cls, name, None)):
                raise TypeError(f"{self.cls.__name__}.{name} is async; write def")
        self.steps = {name: _arguments(self.cls, name) for name in names} or {
            name: {"kind": Drawn(tuple(range(len(self.kinds))))} for name in _PLAIN_STEPS
        }

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.cls.__qualname__.rpartition(".")[2]

    def check_story(self, story: Story) -> None:
        """Raise a ``ValueError`` if a story has steps or arguments that the class does not have."""
        for one in story.steps:
            if one.name not in self.steps:
                raise ValueError(f"{self.name} has no step {one.name}; its steps are {', '.join(self.steps)}")
            if set(one.arguments) != set(self.steps[one.name]):
                wanted = ", ".join(self.steps[one.name]) or "no arguments"
                raise ValueError(f"the step {one.name} of {self.name} takes {wanted}, not {', '.join(one.arguments)}")

    def draw_steps(self, draw: Draw, most: int) -> tuple[Step, ...]:
        """Draw the steps of a story.  The first one is the first step of the class."""
        names = list(self.steps)
        drawn_names = [names[0], *(draw.pick(names) for _ in range(draw.below(most)))]
        return tuple(self._draw_step(draw, name, is_first=not index) for index, name in enumerate(drawn_names))

    def draw_each_step(self, draw: Draw) -> tuple[Step, ...]:
        """Draw a step of each name, in the order of the class, and then the first one again."""
        names = [*self.steps, next(iter(self.steps))]  # the last one may have deleted everything
        return tuple(self._draw_step(draw, name, is_first=not index) for index, name in enumerate(names))

    def _draw_step(self, draw: Draw, name: str, *, is_first: bool) -> Step:
        arguments = {argument: values.draw(draw) for argument, values in self.steps[name].items()}
        return Step(name=name, arguments=arguments, wait=0.0 if is_first else draw.pick(WAITS))

    def serve_kinds(self, server: APIServer) -> None:
        """Let a server serve the custom kinds."""
        for kind in self.kinds:
            if server._kinds.find_kind(resource_of(kind).api_version, resource_of(kind).kind) is None:
                definition = _definition_of(kind)
                server.register(kind) if definition is None else server.create(definition)

    def play(self, instance: Any, world: World, given: Step) -> str:
        """Take a step, and return the error of the server or an empty string."""
        method = getattr(instance, given.name, None) or getattr(_Steps(self.kinds), given.name)
        try:
            method(world, **given.arguments)
        except StatusError as error:
            return describe_error(error)
        return ""


_PLAIN_STEPS = ("create", "change", "delete")
"""The steps of a scenario that has none."""
WAITS = (0.0, 1.0, 5.0, 20.0, 60.0)
"""The seconds between two steps."""


def _tuple_of(cls: type[Any], name: str) -> tuple[Any, ...]:
    found = getattr(cls, name, ())
    if not isinstance(found, tuple | list):
        written = getattr(found, "__name__", repr(found))
        raise TypeError(f"{cls.__name__}.{name} is not a tuple; write {name} = ({written},)")
    return tuple(found)


def _step_names(cls: type[Any]) -> list[str]:
    members = [member for each in reversed(cls.__mro__) for member in vars(each).items()]
    return list(dict.fromkeys(name for name, value in members if hasattr(value, _MARK)))


def _arguments(cls: type[Any], name: str) -> dict[str, Drawn]:
    parameters = list(inspect.signature(getattr(cls, name)).parameters.values())[2:]
    for one in parameters:
        if not isinstance(one.default, Drawn):
            raise TypeError(f"{cls.__name__}.{name}: the argument {one.name} needs a value from drawn()")
    return {one.name: one.default for one in parameters}


def _definition_of(kind: type[KubernetesObject]) -> KubernetesObject | None:
    try:
        return crd_of(kind)
    except TypeError:  # not the class of a custom resource, but for example of unstructured objects
        return None


@final
@attrs.frozen
class _Steps:
    """The steps of a scenario without steps: one object of each kind is created, changed and deleted."""

    kinds: tuple[type[KubernetesObject], ...]

    def create(self, world: World, kind: int) -> None:
        world.create(self.kinds[kind](metadata=ObjectMeta(name="example", namespace="default")))

    def change(self, world: World, kind: int) -> None:
        old = to_dict(world.get(self.kinds[kind], "example"))
        spec = {name: _other(value) for name, value in (old.get("spec") or {}).items()}
        labels = {"changed": str(int(world.now))}
        world.patch(self.kinds[kind], "example", {"spec": spec, "metadata": {"labels": labels}})

    def delete(self, world: World, kind: int) -> None:
        world.delete(self.kinds[kind], "example")


def _other(value: object) -> object:
    match value:
        case bool():
            return not value
        case int():
            return value % 3 + 1
        case str():
            return "changed" if value != "changed" else "changed-again"
        case _:
            return value
