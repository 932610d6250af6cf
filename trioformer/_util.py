"""General helpers for all packages, which do not depend on Kubernetes."""

from __future__ import annotations

import functools
import logging
import math
import sys
from abc import ABCMeta
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, final

import trio

T = TypeVar("T")
P = ParamSpec("P")

SLICE = 0.001
"""Seconds between two checkpoints of a loop over ready items."""
SLICE_ITEMS = 1_000  # divisible by each stride
"""The maximum number of items between two checkpoints."""
MAX_LOG_KEYS = 1_000
"""The number of keys that a log limit remembers. The key with the oldest line is forgotten first."""


class NoPublicConstructor(ABCMeta):
    """Metaclass for classes that only the library instantiates. Callers use ``open_*`` functions or factories instead.

    Source: trio's class of the same name.
    """

    def __call__(cls, *args: object, **kwargs: object) -> None:
        """Raise TypeError. A class may set ``_made_by`` to the correct way to make an instance."""
        hint = getattr(cls, "_made_by", "")
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} has no public constructor{hint and f'; {hint}'}")

    def _create(cls: type[T], *args: Any, **kwargs: Any) -> T:
        return super().__call__(*args, **kwargs)  # type: ignore[misc,no-any-return]  # type.__call__, which mypy does not see behind ABCMeta


def enclosing_tasks() -> Iterator[trio.lowlevel.Task]:
    """Yield the current task, and then the owners of its nurseries from the inside out.

    These tasks wait for the current one.

    A context variable would not work: a task inherits it from the task that started it, even if it runs in another
    task's nursery.
    """
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
    while task is not None:
        yield task
        task = task.parent_nursery.parent_task if task.parent_nursery is not None else None


class UnopenedContext(AbstractAsyncContextManager[T, bool | None]):
    """The result of an ``open_*`` function.

    An attempt to use it without ``async with`` raises an error that shows the correct code.
    """

    __slots__ = ("_hint", "_manager", "_noun")

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None], noun: str, block: str) -> None:
        self._manager = manager
        self._noun = noun
        self._hint = f"write `{block}`"

    async def __aenter__(self) -> T:
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, traceback)

    if not TYPE_CHECKING:  # type checkers reject these uses

        def __getattr__(self, name: str) -> object:
            raise AttributeError(f"the {self._noun} is not open yet, so it has no {name!r}; {self._hint}")

        def __await__(self) -> object:
            raise TypeError(f"a {self._noun} cannot be awaited or iterated over before it is open; {self._hint}")

        def __enter__(self) -> object:
            raise TypeError(f"a {self._noun} is opened by an asynchronous context manager; {self._hint}")

        __iter__ = __aiter__ = __next__ = __anext__ = __await__

        def __exit__(self, *error: object) -> None: ...


def opened_by(
    noun: str, block: str
) -> Callable[[Callable[P, AsyncGenerator[T, None]]], Callable[P, AbstractAsyncContextManager[T, bool | None]]]:
    """Return a decorator that works as ``asynccontextmanager`` does, but with clear errors for misuse.

    Args:
        noun: The name of the result in error messages, such as ``client``.
        block: The correct statement for error messages, such as ``async with open_client() as client:``.
    """

    def decorate(
        function: Callable[P, AsyncGenerator[T, None]],
    ) -> Callable[P, AbstractAsyncContextManager[T, bool | None]]:
        manager_of = asynccontextmanager(function)

        @functools.wraps(manager_of)
        def call(*args: P.args, **given: P.kwargs) -> AbstractAsyncContextManager[T, bool | None]:
            return UnopenedContext(manager_of(*args, **given), noun, block)

        return call

    return decorate


@asynccontextmanager
async def open_serving_nursery() -> AsyncGenerator[trio.Nursery, None]:
    """Open a nursery for tasks that serve the block and are cancelled at its end.

    Exceptions raised in the block propagate unchanged. A plain nursery would wrap them in an exception group.
    If a task raises an error, the block is cancelled and the error is raised in a group, so the tasks should handle
    their own errors.
    """
    raised: BaseException | None = None
    try:
        with trio.CancelScope() as nursery_scope:
            async with trio.open_nursery() as nursery:
                try:
                    yield nursery
                except BaseException as error:  # noqa: BLE001  # raised below, where no nursery can wrap it
                    raised = error
                nursery.cancel_scope.cancel()
                # If the caller's cancellation were visible here, the nursery would not catch the Cancelled of its
                # tasks, and would raise them in a group instead of the exception of the block.
                nursery_scope.shield = True
        if raised is not None:
            raise raised
    finally:
        del raised


async def raise_ungrouped(group: BaseExceptionGroup[BaseException]) -> NoReturn:
    """Raise the single exception of an internal nursery without its group, because callers do not expect a group.

    Apart from this exception, the tasks of the nursery may raise only the caller's Cancelled or a KeyboardInterrupt.
    """
    _, other = group.split(trio.Cancelled)
    if other is not None:
        raise other.exceptions[0] from None
    await trio.lowlevel.checkpoint_if_cancelled()
    raise group


def first_leaf(error: Exception | None) -> Exception | None:
    """Return the first exception in nested groups, for a one-line message.

    An exception that is not a group is returned unchanged.
    """
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@final
class Slices:
    """Divides a loop over ready items into slices of about a millisecond, with a checkpoint after each slice.

    A checkpoint takes more time than an item. If each item had its own checkpoint, the reader would fall behind a
    writer that delivers many items at a time.
    A slice also ends after a number of items, because no time passes between two checkpoints under a mock clock.

    Args:
        stride: How many items are processed between two reads of the clock.  For items that take less than 10 µs, a
            read takes a considerable part of the time.
    """

    __slots__ = ("_ends", "_left", "_stride")

    def __init__(self, stride: int = 1) -> None:
        self._stride = stride
        self._begin()

    def _begin(self) -> None:
        self._ends = trio.current_time() + SLICE
        self._left = SLICE_ITEMS

    def is_over(self, now: float | None = None) -> bool:
        """Return whether it is time for a checkpoint. Call this once for each item.

        Args:
            now: The current time, if the caller knows it.
        """
        self._left -= 1
        if self._left % self._stride:
            return False
        return self._left <= 0 or (trio.current_time() if now is None else now) >= self._ends

    async def checkpoint(self) -> None:
        """Execute a checkpoint, and begin a new slice."""
        await trio.lowlevel.checkpoint()
        self._begin()


def remove_frames(error: BaseException) -> None:
    """Remove the tracebacks of a stored error and of its causes and contexts.

    A traceback keeps all local variables of its frames alive.
    """
    seen: set[int] = set()  # errors may refer to each other
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            pending += (each.__cause__, each.__context__)


@functools.lru_cache(maxsize=1024)
def warn_once(logger: logging.Logger, text: str) -> None:
    """Log a warning, unless the same text has been logged before. Only a limited number of texts is remembered."""
    logger.warning("%s", text)


@final
class LogLimit:
    """A rate limiter for log lines.

    In each period, a few lines are logged for each key, and the remaining lines are only counted. The number of keys
    is limited.

    Times are read from trio's clock by default.
    """

    __slots__ = ("_allowed", "_clock", "_lines", "_period")

    def __init__(self, period: float, *, lines: int = 1, clock: Callable[[], float] = trio.current_time) -> None:
        self._period, self._allowed, self._clock = period, lines, clock
        self._lines: dict[Hashable, tuple[float, int, int, str]] = {}
        """For each key, the start of its period, the numbers of logged and suppressed lines, and the last suppressed
        example, ordered by start."""

    def count(self, key: Hashable, example: str = "") -> int:
        """Count a line, and return 0 if it must not be logged.

        Otherwise, return the number of lines since the last logged line, including the current line.
        """
        now = self._clock()
        since, written, held_back, _ = self._lines.get(key, (-math.inf, 0, 0, ""))
        if now < since + self._period:
            is_held_back = written >= self._allowed
            self._lines[key] = (since, written, held_back + 1, example) if is_held_back else (since, written + 1, 0, "")
            return 0 if is_held_back else 1
        self._lines.pop(key, None)
        self._lines[key] = (now, 1, 0, "")
        if len(self._lines) > MAX_LOG_KEYS:
            del self._lines[next(iter(self._lines))]
        return held_back + 1

    def sum_up(self) -> Iterator[tuple[Any, int, str]]:
        """Yield the key, the number and the last example of the suppressed lines, and forget all lines."""
        lines, self._lines = self._lines, {}
        for key, (_, _, held_back, example) in lines.items():
            if held_back:
                yield key, held_back, example


def names_on_demand(
    package: dict[str, Any], places: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` functions for a package that imports some names on first use.

    Type checkers use the imports under ``if TYPE_CHECKING`` instead.  Hide the result of this function from type
    checkers, because they would accept every name.

    Args:
        package: The ``globals()`` of the package, or of a module in it.
        places: A mapping from each name to the module that defines it.
        modules: The submodules that are themselves imported on first use.
    """
    module, parent = package["__name__"], package["__package__"]

    def __getattr__(name: str) -> object:  # noqa: N807  # it becomes the package's
        if name in modules:
            return import_module(f".{name}", parent)
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])
        value = package[name] = getattr(import_module(f".{places[name]}", parent), name)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*package, *package["__all__"], *modules})

    return __getattr__, __dir__
