"""Detect mistakes in the program: transforms and index functions that fail on every object of the first list.

If a function fails on some objects, the informer must continue.  Otherwise one tenant's objects could end the informer
for all tenants.  If a function fails on every object, the program should end. Otherwise it would rely on an empty
cache.

The objects in the first lists of all namespaces are counted together, and the error is raised after the last list.
Fewer than three failures are never treated as a mistake: a cluster may have only one or two objects of a kind, and
both may be from the same tenant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, final

import attrs

from ...errors import DecodeError, IndexerError, TransformError

MIN_FAILURES: Final = 3
"""The smallest number of failures that is treated as a mistake."""


@final
@attrs.define(eq=False)
class Mistakes:
    """A count of the objects in the first lists of a cache, and of the failures of the program's functions."""

    _objects: int = attrs.field(default=0, init=False)
    # By the name of the index; None stands for the transform, whose result is indexed.
    _failures: Counter[str | None] = attrs.field(factory=Counter, init=False)
    _first: dict[str | None, IndexerError | TransformError] = attrs.field(factory=dict, init=False)

    def record_list(self, objects: int, errors: Iterable[Exception]) -> None:
        """Count the listed objects that were decoded and transformed, and the errors of the bad objects.

        An error about an undecodable value does not count as a mistake in the function that reads the value.
        """
        self._objects += objects
        for error in errors:
            if isinstance(error, IndexerError | TransformError) and not isinstance(error.__cause__, DecodeError):
                name = error.index if isinstance(error, IndexerError) else None
                self._failures[name] += 1
                # This traceback would keep the list in memory; the traceback of the cause shows the line.
                self._first.setdefault(name, error.with_traceback(None))

    def raise_if_any(self, taken: int) -> None:
        """If a function failed on every object and there are at least three objects, raise the function's first error.

        Args:
            taken: The number of objects in the cache.  If the cache is not empty, no error is raised, because all
                functions succeeded on the cached objects.

        Raises:
            IndexerError: An index function failed on every object.
            TransformError: The transform failed on every object.
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
