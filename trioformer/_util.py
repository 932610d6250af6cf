"""Helpers for all packages; nothing here knows Kubernetes."""

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
SLICE_ITEMS = 1_000
"""The most items between two checkpoints."""
MAX_LOG_KEYS = 1_000
"""The number of keys that a log limit remembers; it first forgets the key with the oldest line."""


class NoPublicConstructor(ABCMeta):
    """Metaclass of classes that only the library instantiates; callers use ``open_*`` functions or factories.

    Source: trio's class of the same name.
    """

    def __call__(cls, *args: object, **kwargs: object) -> None:
        """Raise TypeError; a class may suggest what to write in ``_made_by``."""
        hint = getattr(cls, "_made_by", "")
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} has no public constructor{hint and f'; {hint}'}")

    def _create(cls: type[T], *args: Any, **kwargs: Any) -> T:
        return super().__call__(*args, **kwargs)  # type: ignore[misc,no-any-return]  # type.__call__, which mypy does not see behind ABCMeta


def enclosing_tasks() -> Iterator[trio.lowlevel.Task]:
    """Yield the current task and the tasks that wait for its end: the owners of its nurseries, innermost first.

    A context variable would not do: a task that is started in another task's nursery inherits the variable, although
    the first task does not wait for it.
    """
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
    while task is not None:
        yield task
        task = task.parent_nursery.parent_task if task.parent_nursery is not None else None


class UnopenedContext(AbstractAsyncContextManager[T, bool | None]):
    """The result of an ``open_*`` function; using it without ``async with`` raises an error that says what to write."""

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
            raise AttributeError(f"the {self._noun} is not open, and has no {name!r}; {self._hint}")

        def __await__(self) -> object:
            raise TypeError(f"a {self._noun} cannot be awaited or iterated over before it is open; {self._hint}")

        def __enter__(self) -> object:
            raise TypeError(f"a {self._noun} is opened by an asynchronous context manager; {self._hint}")

        __iter__ = __aiter__ = __next__ = __anext__ = __await__

        def __exit__(self, *error: object) -> None: ...


def opened_by(
    noun: str, block: str
) -> Callable[[Callable[P, AsyncGenerator[T, None]]], Callable[P, AbstractAsyncContextManager[T, bool | None]]]:
    """Make an async context manager of a generator function, like ``asynccontextmanager``; misuse is a clear error.

    Args:
        noun: The opened thing, such as ``client``.
        block: The statement to write, such as ``async with open_client() as client:``.
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

    An exception of the block is raised unchanged, unlike from a plain nursery, which wraps it in an exception group.
    An error of a task cancels the block and is raised in a group, so the tasks should handle their own errors.
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
    """Raise the exception in the group of a function's internal nursery, for callers that expect no group.

    The tasks of the nursery must not raise anything but the Cancelled of the caller, or a KeyboardInterrupt.
    """
    _, other = group.split(trio.Cancelled)
    if other is not None:
        raise other.exceptions[0] from None
    await trio.lowlevel.checkpoint_if_cancelled()
    raise group


def first_leaf(error: Exception | None) -> Exception | None:
    """Return the first exception in nested groups, for a message of one line; return other exceptions unchanged."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@final
class Slices:
    """Divides a loop over ready items into slices of about a millisecond, with a checkpoint after each.

    A checkpoint for each item would cost more than the item, and the reader would fall behind a writer that delivers
    many items at a time.
    A number of items also ends a slice, since no time passes between two checkpoints under a mock clock.
    """

    __slots__ = ("_ends", "_left")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._ends = trio.current_time() + SLICE
        self._left = SLICE_ITEMS

    def is_over(self) -> bool:
        """Whether the loop should checkpoint now; call it once for each item."""
        self._left -= 1
        return self._left <= 0 or trio.current_time() >= self._ends

    async def checkpoint(self) -> None:
        """Checkpoint, then begin a new slice."""
        await trio.lowlevel.checkpoint()
        self._begin()


def remove_frames(error: BaseException) -> None:
    """Remove the tracebacks of a stored error, and of its causes and contexts.

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
    """Log a warning, unless it was logged before; the number of remembered texts is limited."""
    logger.warning("%s", text)


@final
class LogLimit:
    """Allows a few lines in each period for each key, and counts the other lines; the number of keys is limited.

    Times are on trio's clock.
    """

    __slots__ = ("_allowed", "_lines", "_period")

    def __init__(self, period: float, *, lines: int = 1) -> None:
        self._period, self._allowed = period, lines
        self._lines: dict[Hashable, tuple[float, int, int]] = {}
        """By key: the start of its period, the lines written in it, and the lines held back since the last one; in the
        order of the starts."""

    def count(self, key: Hashable) -> int:
        """Count a line; return 0 to hold it back, otherwise the number of lines that it stands for, itself included."""
        now = trio.current_time()
        since, written, held_back = self._lines.get(key, (-math.inf, 0, 0))
        if now < since + self._period:
            is_held_back = written >= self._allowed
            self._lines[key] = (since, written, held_back + 1) if is_held_back else (since, written + 1, 0)
            return 0 if is_held_back else 1
        self._lines.pop(key, None)
        self._lines[key] = (now, 1, 0)
        if len(self._lines) > MAX_LOG_KEYS:
            del self._lines[next(iter(self._lines))]
        return held_back + 1


def names_on_demand(
    package: dict[str, Any], places: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package that imports some of its names on first use.

    Type checkers read the imports under ``if TYPE_CHECKING``.  Hide the result from them, since they would accept every
    name.

    Args:
        package: The ``globals()`` of the package, or of a module in it.
        places: The module of each name.
        modules: The modules of the package that are themselves names.
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
