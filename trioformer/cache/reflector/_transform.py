"""Check and transform each object, exactly once, before it is written to the sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ..._util import Slices
from ...client import Undecodable
from ...errors import DecodeError, IndexerError, TransformError
from ...models import KubernetesObject, encode, key_of
from ...models._internal import make_object

T = TypeVar("T", bound=KubernetesObject)

Transform: TypeAlias = Callable[[T], T]
"""Returns the object that the cache stores, for example without the parts that nobody reads; must be quick.

The cache keeps no reference to the original object.
"""


@final
@attrs.define(eq=False)
class ObjectTransformer(Generic[T]):
    """Checks and transforms objects between the server and the sink.

    client-go applies a transform when an object is queued, and to the objects of a watch-list twice; here it is applied
    once, when an object is received.

    Args:
        kind: The class that every object must have.
        transform: Applied to each object, including deleted ones.
        on_undecodable: Called with each object that fails a check.
        namespace: The namespace that every object must be in; empty for any.
    """

    kind: type[T]
    transform: Transform[T] | None
    on_undecodable: Callable[[Undecodable], None]
    namespace: str = ""

    def process(self, obj: T) -> T | None:
        """Check and transform one object; if it fails a check, report it and return None.

        Raises:
            TransformError: The transform failed, or returned something that is not a state of the same object.
        """
        if not isinstance(obj, self.kind) or not obj.name or (self.namespace and obj.namespace != self.namespace):
            self._report_invalid(obj)
            return None
        return obj if self.transform is None else self._transformed(obj, self.transform)

    def _transformed(self, obj: T, transform: Transform[T]) -> T | None:
        try:
            result = transform(obj)
            if result is obj:
                return obj
            problem = self._find_problem(result, obj)
            # A changed object refers to the JSON of the original, which the cache must not keep in memory.
            if not problem:
                return make_object(type(result), encode(result))
        except DecodeError as error:
            self.on_undecodable(undecodable(obj, error))  # the error is in the object, not in the transform
            return None
        except Exception as error:  # a user's function may raise anything; callers handle one type of error
            raise self._error(obj, type(error).__name__) from error
        raise self._error(obj, problem)

    def _find_problem(self, result: object, obj: T) -> str:
        if not isinstance(result, self.kind):
            return f"it must return a {self.kind.__name__}, not a {type(result).__name__}"
        if key_of(result) != key_of(obj) or result.resource_version != obj.resource_version:
            return "it must not change namespace, name or resourceVersion"
        return ""

    def _error(self, obj: T, problem: str) -> TransformError:
        # Never the object's content, nor the text of the exception: they may contain a secret.
        return TransformError(f"the transform of {self.kind.__name__} failed on {key_of(obj)}: {problem}", key_of(obj))

    def _report_invalid(self, obj: object) -> None:
        wanted = self.kind.__name__
        if not isinstance(obj, self.kind):
            problem = f"expected a {wanted}, received a {type(obj).__name__}"
        elif not obj.name:
            problem = f"received a {wanted} without a name"
        else:
            problem = f"expected a {wanted} of namespace {self.namespace}, received one of namespace {obj.namespace}"
        error = DecodeError(problem)
        if isinstance(obj, KubernetesObject):
            self.on_undecodable(attrs.evolve(undecodable(obj, error), kind=wanted))
        else:
            self.on_undecodable(Undecodable(kind=wanted, key="", raw=b"", event_type="", error=error))

    def report_unknown_type(self, event_type: str, obj: T) -> None:
        """Report an event of an unknown type."""
        error = DecodeError(f"received an event of unknown type {event_type!r}")
        self.on_undecodable(attrs.evolve(undecodable(obj, error), event_type=event_type))


def undecodable(obj: KubernetesObject, error: DecodeError) -> Undecodable:
    """Describe an object that turned out to be undecodable when its fields were read."""
    return Undecodable(kind=type(obj).__name__, key=key_of(obj), raw=encode(obj), event_type="", error=error)


E = TypeVar("E", TransformError, IndexerError)


@final
@attrs.define(eq=False)
class ListCollector(Generic[T]):
    """Checks and transforms the objects of one list after another, and collects the failures of each list.

    Args:
        transformer: Checks and transforms each object.
        is_final: Whether an error of the transform is raised immediately; the default before the first list.
    """

    transformer: ObjectTransformer[T]
    _is_final: Callable[[TransformError], bool]
    undecodable: set[str] = attrs.field(factory=set, init=False)
    """The keys of objects that exist, and of which the list contains no usable state."""
    _errors: list[TransformError] = attrs.field(factory=list, init=False)

    def start_list(self) -> None:
        """Discard the failures of the last list."""
        self.undecodable.clear()
        self._errors.clear()

    def process(self, obj: T) -> T | None:
        """Check and transform one object; None if that fails.

        Raises:
            TransformError: The transform failed, and the error is final.
        """
        try:
            processed = self.transformer.process(obj)
        except TransformError as error:
            if self._is_final(error):
                raise
            self._errors.append(error)
            self.undecodable.add(error.key)
            return None
        if processed is not None:
            self.undecodable.discard(key_of(processed))
        return processed

    async def process_all(self, objects: Iterable[T]) -> tuple[T, ...]:
        """Check and transform a whole list, in slices of about a millisecond."""
        found: list[T] = []
        slices = Slices()
        for obj in objects:
            if (processed := self.process(obj)) is not None:
                found.append(processed)
            if slices.is_over():
                await slices.checkpoint()
        return tuple(found)

    def raise_errors(self) -> None:
        """Raise if the transform has failed on any object of the list.

        Raises:
            TransformError: The error of the first such object, with the number of the others.
        """
        if self._errors:
            raise combine_errors(self._errors)


def combine_errors(errors: Sequence[E]) -> E:
    """Return the first of several errors, with the number of the others in its text."""
    first = errors[0]
    if len(errors) == 1:
        return first
    error = type(first)(f"{first} (and {len(errors) - 1} more)")
    error.__cause__ = first.__cause__
    return error
