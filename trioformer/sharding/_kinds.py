"""The share of a kind: the range of each object, and the requests for the objects of ranges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Generic, Literal, TypeVar, final

import attrs
import trio

from .._text import suppressed_lines
from .._util import LogLimit
from ..cache import ApiListWatch
from ..client._internal import WrittenObject
from ..errors import NotOwnedError
from ..models import KubernetesObject, ResourceInfo, key_of
from ..models._internal import decode
from ._held import HeldRange
from ._ranges import range_of, shard_selector

T = TypeVar("T", bound=KubernetesObject)

By = Literal["namespace", "uid", "label"]

MAX_DELETED: Final = 10_000
"""The number of deleted objects whose keys are remembered with ``by="uid"``."""

logger: Final = logging.getLogger("trioformer.sharding")


@final
@attrs.define(eq=False)
class KindShare(Generic[T]):
    """The share of one kind: how its objects follow the ranges, and what is cached of them."""

    plain: ApiListWatch[T]
    """The source of all objects of the kind."""
    by: By
    count: int
    """The number of ranges."""
    held: Mapping[int, HeldRange]
    """The ranges that this process holds."""
    label: str = ""
    """The label that names the range of an object, with ``by="label"``."""
    primaries: Mapping[str, By] = attrs.field(factory=dict)
    """The names of the kinds with ``by="uid"`` or ``by="namespace"``, to check the labels of the objects they own."""
    is_filtered: bool | None = attrs.field(default=None, init=False)
    """Whether the server confirmed that it sends only the range; None before the first list."""
    mislabelled: set[str] = attrs.field(factory=set, init=False)
    """The uids of objects whose label names another range than that of their owner."""
    _deleted: dict[str, int] = attrs.field(factory=dict, init=False)
    """The ranges of deleted objects, by key, with ``by="uid"``."""
    _cached: Callable[[str], KubernetesObject | None] = attrs.field(default=lambda _: None, init=False)
    _last_write: tuple[WrittenObject | None, str | None] = attrs.field(default=(None, None), init=False)
    _log_limit: LogLimit = attrs.field(factory=lambda: LogLimit(60.0), init=False)

    @property
    def resource(self) -> ResourceInfo:
        """The resource of the kind."""
        return self.plain.api.resource

    @property
    def name(self) -> str:
        """The name of the kind, for messages."""
        return self.resource.kind

    def read_with(self, cached: Callable[[str], KubernetesObject | None]) -> None:
        """Use a function that returns the cached object with a key."""
        self._cached = cached

    # --- the ranges of objects ---

    def number_of(self, obj: KubernetesObject) -> int | None:
        """Return the range of an object, or None if its label names none."""
        if self.by == "namespace":
            return range_of(obj.namespace or "", self.count)
        if self.by == "uid":
            return range_of(obj.uid, self.count)
        return number_in(obj.metadata.labels.get(self.label), self.count)

    def _number_of_key(self, key: str) -> int | None:
        if self.by == "namespace":
            return range_of(key.partition("/")[0], self.count)
        cached = self._cached(key)
        return self._deleted.get(key) if cached is None else self.number_of(cached)

    def part_of(self, obj: KubernetesObject) -> str:
        """Return the range of an object as text."""
        return _part(self.number_of(obj))

    def part_of_key(self, key: str) -> str:
        """Return the range of a key as text, or an empty string if it is not known.

        A deleted object tells nothing about another one with the same key.
        """
        return "" if self.by != "namespace" and self._cached(key) is None else _part(self._number_of_key(key))

    def part_of_write(self, written: WrittenObject) -> str | None:
        """Return the range of a written object, if this process caches it."""
        if self._last_write[0] is not written:  # each part of the cache asks for it
            self._last_write = written, self._part_of_write(written)
        return self._last_write[1]

    def _part_of_write(self, written: WrittenObject) -> str | None:
        if self.by == "namespace":
            number: int | None = range_of(written.namespace, self.count)
        elif self.by == "uid" and written.write.uid:
            number = range_of(written.write.uid, self.count)
        else:
            number = number_in(_labels_in(written.body).get(self.label), self.count) if self.label else None
            if number is None:
                number = self._number_of_key(written.key)
        return _part(number) or None

    def record_deletion(self, obj: KubernetesObject) -> None:
        """Remember that the key of a deleted object belongs to this process."""
        number = self.number_of(obj)
        self.mislabelled.discard(obj.uid)
        if self.by != "namespace" and number is not None:
            key = key_of(obj)
            self._deleted.pop(key, None)
            self._deleted[key] = number
            if len(self._deleted) > MAX_DELETED:
                del self._deleted[next(iter(self._deleted))]

    def forget(self, number: int) -> None:
        """Forget the deleted objects of a range that is given away."""
        for key in [key for key, each in self._deleted.items() if each == number]:
            del self._deleted[key]

    # --- what controllers ask ---

    def check_key(self, key: str) -> None:
        """Raise `NotOwnedError` unless this process caches the range of a key."""
        number = self._number_of_key(key)
        if number is None:
            raise NotOwnedError(
                f"{self.resource.kind} {key!r} is not in this cache: another replica caches it, or it does not exist"
            )
        self._check(number, f"{self.resource.kind} {key!r}")

    def check_namespace(self, namespace: str) -> None:
        """Raise `NotOwnedError` unless this process caches a namespace, or a part of it."""
        if self.by == "namespace":
            self._check(range_of(namespace, self.count), f"namespace {namespace!r}")

    def _check(self, number: int, what: str) -> None:
        held = self.held.get(number)
        if held is None or not held.leadership.is_held:  # the last calls read it while it is given up
            raise NotOwnedError(f"{what} is in range {number}, which this replica does not own")
        if self not in held.parts or not held.parts[self].is_listed:
            raise NotOwnedError(f"{what} is in range {number}, whose first list is not complete")

    def open_call(self, key: str, again: Callable[[], object]) -> AbstractContextManager[trio.CancelScope | None]:
        """Open a scope for a call that reconciles an object."""
        number = self._number_of_key(key)
        held = None if number is None else self.held.get(number)
        return nullcontext() if held is None else held.call(again)

    # --- the source of ranges ---

    def select(self, parts: Collection[str], keep: Callable[[T], T | None] | None = None) -> ApiListWatch[T]:
        """Return the source of some ranges.  Its lists contain what ``keep`` returns for each received object."""
        plain, numbers = self.plain, sorted(map(int, parts))
        labels, query = plain.label_selector, dict(plain.query)
        if self.by == "label":
            own = f"{self.label} in ({','.join(label_value(each, self.count) for each in numbers)})"
            labels = f"{labels},{own}" if labels else own
        else:
            query["shardSelector"] = shard_selector(f"metadata.{self.by}", numbers, self.count)
        return ApiListWatch(plain.api, labels, plain.field_selector, query, _keep=keep)

    def part_of_received(self, obj: KubernetesObject) -> str:
        """Return the range of an object as text, and check the label of an owned object in an own range."""
        number = self.number_of(obj)
        if self.by == "label" and number is not None and number in self.held:
            self._check_label(number, obj)
        return _part(number)

    def _check_label(self, number: int, obj: KubernetesObject) -> None:
        owner = next((each for each in obj.metadata.owner_references if each.controller), None)
        by = None if owner is None else self.primaries.get(owner.kind)
        if owner is None or by is None:
            return
        expected = range_of(owner.uid if by == "uid" else obj.namespace or "", self.count)
        if expected != number and obj.uid not in self.mislabelled:
            self.mislabelled.add(obj.uid)
            if count := self._log_limit.count(None):
                logger.warning(
                    "%s %s has the label %s=%s, but its owner is in range %d%s",
                    self.resource.kind,
                    key_of(obj),
                    self.label,
                    label_value(number, self.count),
                    expected,
                    suppressed_lines(count - 1),
                )


def label_value(number: int, count: int) -> str:
    """Return the value of a label that names a range."""
    return f"{number}-of-{count}"


def number_in(value: str | None, count: int) -> int | None:
    """Return the range that the value of a label names, or None."""
    number, _, of = (value or "").partition("-of-")
    return int(number) if of == str(count) and number.isdecimal() and int(number) < count else None


def _part(number: int | None) -> str:
    return "" if number is None else str(number)


def _labels_in(body: bytes) -> dict[str, Any]:
    try:
        return dict(decode(body)["metadata"].get("labels") or {})
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}
