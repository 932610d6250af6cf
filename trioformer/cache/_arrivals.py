"""The gate in front of the sink: what comes in is of the right kind, has a name, and is transformed exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from .._util import Slices
from ..client import Undecodable
from ..errors import DecodeError, TransformError
from ..models import KubernetesObject, encode, key_of, make_object

T = TypeVar("T", bound=KubernetesObject)

Transform: TypeAlias = Callable[[T], T]
"""Makes of an object what the cache is to hold, for example without the parts that nobody reads; must be quick.

What it leaves out is gone: the cache keeps nothing of the object that came.
"""


@final
@attrs.define(eq=False)
class Arrivals(Generic[T]):
    """Objects on their way from the server to the sink.

    client-go applies a transform when an object is queued, and, of a streamed initial list, twice; here it is once,
    on arrival.

    Args:
        kind: What every object must be.
        transform: Applied to each object, deleted ones included.
        report: Told of what cannot be taken.
    """

    kind: type[T]
    transform: Transform[T] | None
    report: Callable[[Undecodable], None]

    def take(self, obj: T) -> T | None:
        """Check and transform one object; None when it cannot be taken, which has been reported then.

        Raises:
            TransformError: The transform failed, or gave something that is not the same object any more.
        """
        if not isinstance(obj, self.kind) or not obj.name:
            self._refuse(obj)
            return None
        return obj if self.transform is None else self._transformed(obj, self.transform)

    async def take_all(self, objects: Iterable[T]) -> tuple[T, ...]:
        """Check and transform a whole list, in slices of about a millisecond.

        Raises:
            TransformError: As for :meth:`take`.
        """
        taken: list[T] = []
        slices = Slices()
        for obj in objects:
            if (made := self.take(obj)) is not None:
                taken.append(made)
            if slices.is_over():
                await slices.checkpoint()
        return tuple(taken)

    def _transformed(self, obj: T, transform: Transform[T]) -> T:
        where = f"the transform of {self.kind.__name__} failed on {key_of(obj)}"
        try:
            made = transform(obj)
        except Exception as error:  # a user's function: whatever it raises becomes one clear error
            raise TransformError(f"{where}: {error!r}") from error
        if not isinstance(made, self.kind):
            raise TransformError(f"{where}: it must return a {self.kind.__name__}, not {made!r}")
        if key_of(made) != key_of(obj) or made.resource_version != obj.resource_version:
            raise TransformError(f"{where}: it must leave namespace, name and resourceVersion as they are")
        # A changed object carries the JSON that it came from; a cache that is to be small must not keep that.
        return obj if made is obj else make_object(type(made), encode(made))

    def _refuse(self, obj: object) -> None:
        wanted = self.kind.__name__
        if isinstance(obj, self.kind):
            error = DecodeError(f"a {wanted} came without a name; it is left out")
        else:
            error = DecodeError(f"{type(obj).__name__} came where {wanted} was asked for; it is left out")
        raw, key = (encode(obj), key_of(obj)) if isinstance(obj, KubernetesObject) else (repr(obj).encode(), "")
        self.report(Undecodable(kind=wanted, key=key, raw=raw, event_type="", error=error))
