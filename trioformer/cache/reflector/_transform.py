"""Functions that check and transform each object exactly once, before it is written to the sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar, final

import attrs

from ..._suggestions import describe, with_article
from ..._util import Slices
from ...client import Undecodable
from ...errors import DecodeError, TransformError
from ...models import KubernetesObject, key_of
from ...models._internal import bytes_of, detached, is_path_segment
from .._bad_objects import BadObject, QuarantineReason

T = TypeVar("T", bound=KubernetesObject)

Transform: TypeAlias = Callable[[T], T]
"""A function that returns the object to store, for example without unused fields.  The function must be fast.

The cache keeps no reference to the original object.
"""


@final
@attrs.define(eq=False)
class ObjectTransformer(Generic[T]):
    """A stage that checks and transforms objects, between the server and the sink.

    The transform is applied when an object is received.  In client-go, the transform is applied when an object is
    queued, and is applied twice to the objects of a watch-list.

    Args:
        kind: The class of all objects.
        transform: A function that is applied to each object, including deleted objects. If None, the objects are
            unchanged.
        on_undecodable: A function that is called with each object that cannot be decoded or was not requested.
        namespace: The namespace of all objects.  The default, an empty string, permits any namespace.
    """

    kind: type[T]
    transform: Transform[T] | None
    on_undecodable: Callable[[Undecodable], None]
    namespace: str = ""

    def process(self, obj: T) -> T | BadObject | None:
        """Check and transform an object; return None if the object is in another namespace.

        Raises:
            DecodeError: The object has no key.
        """
        if not isinstance(obj, self.kind):
            return self._invalid(obj)
        name = obj.name
        if not name or "/" in name or (self.namespace and obj.namespace != self.namespace):
            return self._invalid(obj)
        return obj if self.transform is None else self._transformed(obj, self.transform)

    def _transformed(self, obj: T, transform: Transform[T]) -> T | BadObject:
        try:
            result = transform(obj)
            if result is obj:
                return obj
            problem = self._find_problem(result, obj)
            # A changed object refers to the bytes of the original; the cache must not keep that in memory.
            if not problem:
                return detached(result)
        except DecodeError as error:
            self.on_undecodable(undecodable(obj, error))  # the error is in the object, not in the transform
            return BadObject(key_of(obj), QuarantineReason.UNDECODABLE, error, obj.resource_version)
        except Exception as error:  # noqa: BLE001  # a user's function may raise anything
            return self._failed(obj, type(error).__name__, error)
        return self._failed(obj, problem)

    def _find_problem(self, result: object, obj: T) -> str:
        if not isinstance(result, self.kind):
            return f"it must return {with_article(self.kind)}, not {describe(result)}"
        if (key_of(result), result.uid, result.resource_version) != (key_of(obj), obj.uid, obj.resource_version):
            return "it must not change namespace, name, uid or resourceVersion"
        return ""

    def _failed(self, obj: T, problem: str, cause: Exception | None = None) -> BadObject:
        # Never show the content of the object or the text of the exception, which may contain a secret.
        text = f"the transform of {self.kind.__name__} failed on {key_of(obj)}: {problem}"
        error = TransformError(text, key_of(obj))
        error.__cause__ = cause
        return BadObject(key_of(obj), QuarantineReason.TRANSFORM_FAILED, error, obj.resource_version)

    def _invalid(self, obj: object) -> BadObject | None:
        """Report an object that was not requested; return None if the object is in another namespace."""
        wanted, key = with_article(self.kind), ""
        is_other_namespace = False
        if not isinstance(obj, self.kind):
            problem = f"expected {wanted}, received {describe(obj)}"
        elif not obj.name:
            problem = f"received {wanted} without a name"
        elif "/" in obj.name:  # its key would belong to another object
            problem = f"received {wanted} with the invalid name {obj.name!r}"
        elif not obj.namespace:  # its key would be in no namespace of the cache
            problem = f"expected {wanted} of namespace {self.namespace}, received one without a namespace"
        else:
            problem = f"expected {wanted} of namespace {self.namespace}, received one of namespace {obj.namespace}"
            is_other_namespace = True
        error = DecodeError(problem)
        if isinstance(obj, KubernetesObject):
            key = within(key_of(obj), self.namespace) if is_path_segment(obj.name) else ""
            self.on_undecodable(attrs.evolve(undecodable(obj, error), kind=self.kind.__name__, key=key))
        else:
            self.on_undecodable(Undecodable(kind=self.kind.__name__, key="", raw=b"", event_type="", error=error))
        if is_other_namespace:
            return None
        if not isinstance(obj, KubernetesObject) or not key:
            raise error
        return BadObject(key, QuarantineReason.UNDECODABLE, error, obj.resource_version)

    def report_unknown_type(self, event_type: str, obj: T) -> BadObject:
        """Report an event of an unknown type, and return its object as a bad object."""
        error = DecodeError(f"received an event of unknown type {event_type!r}")
        self.on_undecodable(attrs.evolve(undecodable(obj, error), event_type=event_type))
        return BadObject(key_of(obj), QuarantineReason.UNDECODABLE, error, obj.resource_version)


def within(key: str, namespace: str) -> str:
    """Return a key, with the requested namespace added if the key has none."""
    return f"{namespace}/{key}" if namespace and key and "/" not in key else key


def undecodable(obj: KubernetesObject, error: DecodeError) -> Undecodable:
    """Return a description of an object with an undecodable field."""
    return Undecodable(
        kind=type(obj).__name__,
        key=key_of(obj),
        raw=bytes_of(obj),
        event_type="",
        error=error,
        resource_version=obj.resource_version,
    )


@final
@attrs.define(eq=False)
class ListCollector(Generic[T]):
    """A collector of the objects of a list, which it checks and transforms.

    Args:
        transformer: The transformer that checks and transforms each object.
    """

    transformer: ObjectTransformer[T]
    objects: dict[str, T] = attrs.field(factory=dict, init=False)
    """The objects of a watch-list, by key."""
    bad: dict[str, BadObject] = attrs.field(factory=dict, init=False)
    """The bad objects, by key."""

    def clear(self) -> None:
        """Discard the last list without changing the collections that the sink has received."""
        self.objects, self.bad = {}, {}

    def put(self, obj: T) -> str:
        """Add an object of a watch-list; return its key, or an empty string if the object is ignored."""
        processed = self.transformer.process(obj)
        if processed is None:
            return ""
        if isinstance(processed, BadObject):
            self.bad[processed.key] = processed
            return processed.key
        key = key_of(processed)
        self.objects[key] = processed
        self.bad.pop(key, None)
        return key

    def quarantine(self, bad: BadObject) -> None:
        """Add a bad object from a watch-list, without removing its earlier state."""
        self.bad[bad.key] = bad

    def delete(self, key: str) -> None:
        """Remove an object that was deleted during a watch-list."""
        self.objects.pop(key, None)
        self.bad.pop(key, None)

    async def process_all(self, objects: Iterable[T]) -> tuple[T, ...]:
        """Check and transform all objects of a list, with a checkpoint about once a millisecond."""
        found: list[T] = []
        slices = Slices(8 if self.transformer.transform is None else 1)
        process = self.transformer.process
        for obj in objects:
            processed = process(obj)
            if isinstance(processed, BadObject):
                self.bad[processed.key] = processed
            elif processed is not None:
                found.append(processed)
            if slices.is_over():
                await slices.checkpoint()
        return tuple(found)
