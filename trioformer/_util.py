"""Small helpers that every room may use; nothing here knows of Kubernetes."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any, TypeVar

import trio

T = TypeVar("T")

SLICE = 0.001
"""Seconds that a loop over ready work runs before it lets the other tasks run."""
SLICE_ITEMS = 1_000
"""Items after which it does so in any case."""


class NoPublicConstructor(ABCMeta):
    """Metaclass of classes that only the library itself makes; callers use ``open_*`` functions or factories.

    The same device as trio's own ``NoPublicConstructor``.
    """

    def __call__(cls, *args: object, **kwargs: object) -> None:
        """Refuse.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} has no public constructor")

    def _create(cls: type[T], *args: Any, **kwargs: Any) -> T:
        return super().__call__(*args, **kwargs)  # type: ignore[misc,no-any-return]  # type.__call__, which mypy does not see behind ABCMeta


def enclosing_tasks() -> Iterator[trio.lowlevel.Task]:
    """The current task and those whose nurseries it is in, the nearest first: all that would wait for it to end.

    A context variable would be inherited by tasks that are started in somebody else's nursery, for which nobody waits.
    """
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
    while task is not None:
        yield task
        task = task.parent_nursery.parent_task if task.parent_nursery is not None else None


def first_leaf(error: Exception | None) -> Exception | None:
    """The exception to speak of in one line: of a group of groups the first, as "2 sub-exceptions" says nothing."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class Slices:
    """Tell a busy loop when its slice is over, so that it checkpoints about once a millisecond.

    A checkpoint for each item would cost more than handling it, and a reader that yields after every event is
    overrun by a writer that brings many at a time.
    A count ends the slice too: under a mock clock no time passes between two checkpoints.
    """

    __slots__ = ("_ends", "_left")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._ends = trio.current_time() + SLICE
        self._left = SLICE_ITEMS

    def is_over(self) -> bool:
        """Whether the loop should checkpoint now; to be asked once per item."""
        self._left -= 1
        return self._left <= 0 or trio.current_time() >= self._ends

    async def checkpoint(self) -> None:
        """Let the other tasks run, then begin a new slice."""
        await trio.lowlevel.checkpoint()
        self._begin()
