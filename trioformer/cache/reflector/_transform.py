"""The gate in front of the sink: what comes in is of the right kind, has a name, and is transformed exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ..._util import Slices
from ...client import Undecodable
from ...errors import DecodeError, IndexerError, TransformError
from ...models import KubernetesObject, encode, key_of, make_object

T = TypeVar("T", bound=KubernetesObject)

Transform: TypeAlias = Callable[[T], T]
"""Makes of an object what the cache is to hold, for example without the parts that nobody reads; must be quick.

What it leaves out is gone: the cache keeps nothing of the object that came.
"""


@final
@attrs.define(eq=False)
class ObjectTransformer(Generic[T]):
    """Objects on their way from the server to the sink.

    client-go applies a transform when an object is queued, and, of a streamed initial list, twice; here it is once,
    on arrival.

    Args:
        kind: What every object must be.
        transform: Applied to each object, deleted ones included.
        report: Told of what cannot be taken.
        namespace: What every object must belong to; empty when it may be any.
    """

    kind: type[T]
    transform: Transform[T] | None
    report: Callable[[Undecodable], None]
    namespace: str = ""

    def take(self, obj: T) -> T | None:
        """Check and transform one object; None when it cannot be taken, which has been reported then.

        Raises:
            TransformError: The transform failed, or gave something that is not the same object any more.
        """
        if not isinstance(obj, self.kind) or not obj.name or (self.namespace and obj.namespace != self.namespace):
            self._refuse(obj)
            return None
        return obj if self.transform is None else self._transformed(obj, self.transform)

    def _transformed(self, obj: T, transform: Transform[T]) -> T | None:
        try:
            made = transform(obj)
            if made is obj:
                return obj
            problem = self._problem_of(made, obj)
            # A changed object carries the JSON that it came from; a cache that is to be small must not keep that.
            if not problem:
                return make_object(type(made), encode(made))
        except DecodeError as error:
            self.report(undecodable(obj, error))  # the object is to blame, not the transform
            return None
        except Exception as error:  # a user's function: whatever it raises becomes one clear error
            raise self._error(obj, type(error).__name__) from error
        raise self._error(obj, problem)

    def _problem_of(self, made: object, obj: T) -> str:
        if not isinstance(made, self.kind):
            return f"it must return a {self.kind.__name__}, not a {type(made).__name__}"
        if key_of(made) != key_of(obj) or made.resource_version != obj.resource_version:
            return "it must leave namespace, name and resourceVersion as they are"
        return ""

    def _error(self, obj: T, problem: str) -> TransformError:
        # Never the object's content, nor the text of what was raised: they may be a secret's.
        return TransformError(f"the transform of {self.kind.__name__} failed on {key_of(obj)}: {problem}", key_of(obj))

    def _refuse(self, obj: object) -> None:
        wanted = self.kind.__name__
        if not isinstance(obj, self.kind):
            problem = f"{type(obj).__name__} came where {wanted} was asked for"
        elif not obj.name:
            problem = f"a {wanted} came without a name"
        else:
            problem = f"a {wanted} of namespace {obj.namespace} came where {self.namespace} was asked for"
        error = DecodeError(f"{problem}; it is left out")
        if isinstance(obj, KubernetesObject):
            self.report(attrs.evolve(undecodable(obj, error), kind=wanted))
        else:
            self.report(Undecodable(kind=wanted, key="", raw=b"", event_type="", error=error))

    def refuse_event(self, kind: str, obj: T) -> None:
        """Report an event of a type that there is not."""
        error = DecodeError(f"an event of unknown type {kind!r} came; it is left out")
        self.report(attrs.evolve(undecodable(obj, error), event_type=kind))


def undecodable(obj: KubernetesObject, error: DecodeError) -> Undecodable:
    """Describe an object whose trouble showed only when somebody read it."""
    return Undecodable(kind=type(obj).__name__, key=key_of(obj), raw=encode(obj), event_type="", error=error)


E = TypeVar("E", TransformError, IndexerError)


@final
@attrs.define(eq=False)
class ListCollector(Generic[T]):
    """One list after another on its way to the sink, plain or streamed.

    Args:
        arrivals: Checks and transforms each object.
        is_final: Whether a failed transform is the end of everything, as it is by default before the first list.
    """

    _arrivals: ObjectTransformer[T]
    _is_final: Callable[[TransformError], bool]
    undecodable: set[str] = attrs.field(factory=set, init=False)
    """The keys of what is there, in some state that could not be taken."""
    _failed: list[TransformError] = attrs.field(factory=list, init=False)

    def begin(self) -> None:
        """Forget what the last list lacked."""
        self.undecodable.clear()
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
            self.undecodable.add(error.key)
            return None
        if taken is not None:
            self.undecodable.discard(key_of(taken))
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
