"""Mistakes in the program: a transform or an index function that fails on every object of the first list.

The problem: a function that fails on some objects must end nothing, since one tenant's objects would end everybody's
informer; one that works on no object at all should end the program before it relies on an empty cache.

So all first lists of a cache are counted together, and the error is raised when the last of them is there.
One tenant often has an object or two, which may be all that there is of a kind: fewer than three objects say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, final

import attrs

from ...errors import DecodeError, IndexerError, TransformError

MIN_FAILURES: Final = 3
"""How many objects a function must have failed on, at least."""


@final
@attrs.define(eq=False)
class Mistakes:
    """Counts the objects that the program's own functions fail on in the first lists of a cache."""

    _objects: int = attrs.field(default=0, init=False)
    # By the name of the index; None stands for the transform, without which there is no object to index.
    _failures: Counter[str | None] = attrs.field(factory=Counter, init=False)
    _first: dict[str | None, IndexerError | TransformError] = attrs.field(factory=dict, init=False)

    def record_list(self, objects: int, errors: Iterable[Exception]) -> None:
        """Count the objects of a list that were decoded and transformed, and the errors of objects that were not taken.

        A value that a function could not decode is not a mistake of the function.
        """
        self._objects += objects
        for error in errors:
            if isinstance(error, IndexerError | TransformError) and not isinstance(error.__cause__, DecodeError):
                name = error.index if isinstance(error, IndexerError) else None
                self._failures[name] += 1
                # Its own traceback would keep the list in memory; that of its cause says where in the function it is.
                self._first.setdefault(name, error.with_traceback(None))

    def raise_if_any(self, taken: int) -> None:
        """Raise the first error of a function that has failed on every object, of at least three; forget all others.

        Args:
            taken: How many objects are in the cache, each of which shows that all functions can work.

        Raises:
            IndexerError: It is an index function.
            TransformError: It is the transform.
        """
        for name, number in self._failures.items():
            works_on = self._objects if name is None else self._objects - number
            if taken or works_on or number < MIN_FAILURES:
                continue
            first = self._first[name]
            text = f"{first} (and {number - 1} more: every object of the first list)"
            if isinstance(first, IndexerError):
                raise IndexerError(text, first.index) from first
            raise TransformError(text, first.key) from first
        self._first.clear()
