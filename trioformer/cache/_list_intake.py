"""Taking the objects of a list: what fails with one of them keeps nothing else from being taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar, final

import attrs

from .._util import Slices
from ..errors import IndexerError, TransformError
from ..models import KubernetesObject, key_of
from ._arrivals import Arrivals

T = TypeVar("T", bound=KubernetesObject)
E = TypeVar("E", TransformError, IndexerError)


@final
@attrs.define(eq=False)
class ListIntake(Generic[T]):
    """One list after another on its way to the sink, plain or streamed.

    Args:
        arrivals: Checks and transforms each object.
        is_final: Whether a failed transform is the end of everything, as it is by default before the first list.
    """

    _arrivals: Arrivals[T]
    _is_final: Callable[[TransformError], bool]
    unreadable: set[str] = attrs.field(factory=set, init=False)
    """The keys of what is there, in some state that could not be taken."""
    _failed: list[TransformError] = attrs.field(factory=list, init=False)

    def begin(self) -> None:
        """Forget what the last list lacked."""
        self.unreadable.clear()
        self._failed.clear()

    def take(self, obj: T) -> T | None:
        """Check and transform one object; None when it cannot be taken.

        Raises:
            TransformError: The transform failed, and that is the end.
        """
        try:
            taken = self._arrivals.take(obj)
        except TransformError as error:
            if self._is_final(error):
                raise
            self._failed.append(error)
            self.unreadable.add(error.key)
            return None
        if taken is not None:
            self.unreadable.discard(key_of(taken))
        return taken

    async def take_all(self, objects: Iterable[T]) -> tuple[T, ...]:
        """Check and transform a whole list, in slices of about a millisecond."""
        taken: list[T] = []
        slices = Slices()
        for obj in objects:
            if (made := self.take(obj)) is not None:
                taken.append(made)
            if slices.is_over():
                await slices.checkpoint()
        return tuple(taken)

    def raise_failed(self) -> None:
        """Say what the transform has failed on.

        Raises:
            TransformError: That of the first such object.
        """
        if self._failed:
            raise summed_up(self._failed)


def summed_up(errors: Sequence[E]) -> E:
    """The first of several errors, which says how many more there are."""
    first = errors[0]
    if len(errors) == 1:
        return first
    error = type(first)(f"{first} (and {len(errors) - 1} more)")
    error.__cause__ = first.__cause__
    return error
