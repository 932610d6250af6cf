"""Versioned objects in memory, with etcd's revisions, history and compaction.

One counter assigns revisions to the writes of all resources.
Each resource has a log, which contains its current objects and the ordered changes.  Each change contains the states
of the object before and after it.
So a list can read any revision that is not compacted by undoing later changes, and a watch can start at any such
revision.

A watch is only a position in a log.  The watch reads the changes from this position to the end, and then waits for
the next change.  A slow watch needs no memory for unread changes.  If the changes that a watch must read next are
compacted, the watch gets :exc:`CompactedError`.

All methods except :meth:`Storage.wait` are synchronous, so they are atomic in trio, and can be called outside trio.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, final

import attrs
import trio

from ...models._internal import dumps, plain_decoder

JSONObject: TypeAlias = dict[str, Any]
"""A decoded JSON object that may be modified."""

_decode_stored: Final = plain_decoder(dict[str, Any])  # the levels were checked before the object was stored


@final
@attrs.frozen(eq=False)
class Stored:
    """An immutable state of an object."""

    key: str
    """``namespace/name``, or ``name`` for cluster-scoped kinds."""
    revision: int
    """The revision of the write that created this state, which is its ``resourceVersion``, or 0 for a dry run."""
    body: bytes
    """The JSON of the object without the opening brace, ``kind`` and ``apiVersion``, which depend on the served
    version."""
    version: str = ""
    """The version of a custom object, or an empty string for an object of a built-in kind."""

    @property
    def namespace(self) -> str:
        """The namespace of the object, or an empty string for cluster-scoped kinds."""
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name."""
        return self.key.rpartition("/")[2]

    def decoded(self) -> JSONObject:
        """Decode the state into a new dict, without kind and apiVersion."""
        obj: JSONObject = _decode_stored(b"{" + self.body)
        return obj


@final
@attrs.frozen(eq=False)
class Change:
    """A write of an object."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    """The type of the change."""
    before: Stored | None
    """The state before the write, or None."""
    object: Stored
    """The state after the write.  For a deletion, this is the last state with the revision of the deletion."""
    manager: str = ""
    """The manager that wrote, whether or not the object has managers, or an empty string if it is unknown."""

    @property
    def revision(self) -> int:
        """The revision of the write."""
        return self.object.revision


class CompactedError(Exception):
    """An error for a requested revision that has been compacted.

    Attributes:
        oldest: The oldest revision from which changes can still be read.
    """

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history before revision {oldest} is compacted")
        self.oldest = oldest


@final
@attrs.define(eq=False)
class _Log:
    """The log of a resource: its objects, and the changes that are not compacted."""

    objects: dict[str, Stored] = attrs.field(factory=dict)
    changes: list[Change] = attrs.field(factory=list)
    first: int = 0
    """The position of ``changes[0]``, which is the number of compacted changes."""
    compacted: int = 0
    """The revision of the last compacted change."""
    sorted_keys: list[str] | None = None
    """The keys of ``objects`` in etcd's order, or None if they must be sorted."""
    watchers: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    def compact(self, count: int) -> None:
        if count:
            self.compacted = self.changes[count - 1].revision
            self.first += count
            del self.changes[:count]


def _revision_of(change: Change) -> int:
    return change.revision


@final
@attrs.define(eq=False)
class Storage:
    """A storage for versioned objects in memory."""

    history_limit: int = 10_000
    """The minimum number of changes that are kept for each resource.  Older changes are compacted in batches."""
    revision: int = 1
    """The revision of the last write.  It starts at 1, as in etcd."""
    compacted: int = attrs.field(init=False, default=attrs.Factory(lambda new: new.revision - 1, takes_self=True))
    """The last compacted revision, which is initially the revision before the first revision. Earlier revisions cannot
    be read."""
    observers: list[Callable[[str, Change | None], None]] = attrs.field(init=False, factory=list)
    """Functions that are called after each write with the resource and the change, or with None after a restore."""
    bootstrap: Callable[[str], Iterable[Stored]] = attrs.field(init=False, default=lambda _: ())
    """A function that returns the first objects of a resource.  It is called when the resource is first used."""
    taken: dict[str, str] = attrs.field(init=False, factory=dict)
    """The addresses and ports of Services with their keys, which are noted when the first of them is allocated."""
    _logs: dict[str, _Log] = attrs.field(init=False, factory=dict)

    def _log(self, resource: str) -> _Log:
        log = self._logs.get(resource)
        if log is None:
            log = self._logs[resource] = _Log({one.key: one for one in self.bootstrap(resource)})
        return log

    def resources(self) -> list[str]:
        """Return the resources that have ever had objects."""
        return list(self._logs)

    def get(self, resource: str, key: str) -> Stored | None:
        """Return the current state of an object, or None."""
        return self._log(resource).objects.get(key)

    def has_objects(self, resource: str) -> bool:
        """Return whether a resource has objects that somebody has created."""
        log = self._logs.get(resource)
        return log is not None and bool(log.objects)

    def count(self, resource: str | None = None) -> int:
        """Return how many objects one resource has, or how many all resources have in total."""
        logs = self._logs.values() if resource is None else [self._log(resource)]
        return sum(len(log.objects) for log in logs)

    def put(self, resource: str, key: str, obj: JSONObject, manager: str = "", version: str = "") -> Stored:
        """Write a new state of an object, as a manager, in a version.

        The method sets ``metadata.resourceVersion`` in ``obj``, which the caller must not use afterwards.
        """
        log = self._log(resource)
        before = log.objects.get(key)
        stored = self._next(key, obj, version)
        if before is None:
            log.sorted_keys = None
        log.objects[key] = stored
        self._record(resource, log, Change("ADDED" if before is None else "MODIFIED", before, stored, manager))
        return stored

    def remove(self, resource: str, key: str, last: JSONObject, version: str = "") -> Stored:
        """Delete an object.

        ``last`` is the state for the DELETED event, and its resourceVersion is set as in :meth:`put`.

        Raises:
            KeyError: The object to delete does not exist.
        """
        log = self._log(resource)
        before = log.objects.pop(key)
        log.sorted_keys = None
        stored = self._next(key, last, version)
        self._record(resource, log, Change("DELETED", before, stored))
        return stored

    def _next(self, key: str, obj: JSONObject, version: str) -> Stored:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Stored(key, self.revision, body_of(obj), version)

    def _record(self, resource: str, log: _Log, change: Change) -> None:
        log.changes.append(change)
        # In batches of a quarter of the limit, because each compaction moves the whole list.
        if len(log.changes) > self.history_limit + self.history_limit // 4:
            log.compact(len(log.changes) - self.history_limit)
        log.watchers.unpark_all()
        for observe in self.observers:
            observe(resource, change)

    def snapshot(self, resource: str, prefix: str = "", revision: int | None = None) -> list[Stored]:
        """Return the objects whose keys begin with ``prefix``, ordered by key, at a revision or at the current one.

        Raises:
            CompactedError: The revision is compacted.
        """
        log = self._log(resource)
        objects = log.objects
        keys = log.sorted_keys
        if revision is not None:
            self._check(log, revision)
            later = log.changes[bisect.bisect_right(log.changes, revision, key=_revision_of) :]
            if later:
                objects = dict(objects)
                for change in reversed(later):
                    if change.before is None:
                        del objects[change.object.key]
                    else:
                        objects[change.object.key] = change.before
                keys = None
        if keys is None:
            keys = sorted(objects)
            if objects is log.objects:
                log.sorted_keys = keys
        if not prefix:
            return [objects[key] for key in keys]
        start = bisect.bisect_left(keys, prefix)
        # No code point is above U+10FFFF, so this sorts after all keys with the prefix.
        end = bisect.bisect_left(keys, prefix + "\U0010ffff")
        return [objects[key] for key in keys[start:end]]

    def position(self, resource: str, revision: int) -> int:
        """Return the position of the first change after a revision.

        Raises:
            CompactedError: The revision is compacted.
        """
        log = self._log(resource)
        self._check(log, revision)
        return log.first + bisect.bisect_right(log.changes, revision, key=_revision_of)

    def end(self, resource: str) -> int:
        """Return the position after the last change."""
        log = self._log(resource)
        return log.first + len(log.changes)

    def _check(self, log: _Log, revision: int) -> None:
        oldest = max(self.compacted, log.compacted)
        if revision < oldest:
            raise CompactedError(oldest)

    def read(self, resource: str, position: int, limit: int = 100) -> list[Change]:
        """Return up to ``limit`` changes from a position, or an empty list if there are no later changes.

        Raises:
            CompactedError: Some of the changes after the position are compacted.
        """
        log = self._log(resource)
        if position < log.first:
            raise CompactedError(max(self.compacted, log.compacted))
        start = position - log.first
        return log.changes[start : start + limit]

    def changes(self, resource: str) -> Sequence[Change]:
        """Return the changes of a resource that are not compacted, oldest first."""
        return self._log(resource).changes

    async def wait(self, resource: str) -> None:
        """Wait until the resource changes or :meth:`wake` is called.

        To avoid missing a change, call this method after :meth:`read` has returned an empty list, without a checkpoint
        in between.

        Cancellation:
            This method can be cancelled at any time, and the reader's position stays valid.
        """
        await self._log(resource).watchers.park()

    def wake(self, resource: str | None = None) -> None:
        """Wake the readers of one resource or of all resources, which then check for changes other than writes."""
        for log in self._logs.values() if resource is None else [self._log(resource)]:
            log.watchers.unpark_all()

    def compact(self, revision: int | None = None) -> int:
        """Discard the changes up to and including a revision.

        Afterwards, reads from earlier revisions raise :exc:`CompactedError`.

        Args:
            revision: The last revision to discard.  If this revision is already compacted, nothing changes.
                If None, the counter is incremented and all changes are discarded, so that all revisions that clients
                know are too old.

        Raises:
            ValueError: The revision is in the future.
        """
        if revision is None:
            self.revision += 1
            revision = self.revision
        if revision > self.revision:
            raise ValueError(f"cannot compact up to revision {revision}: the last revision is {self.revision}")
        self.compacted = max(self.compacted, revision)
        for log in self._logs.values():
            log.compact(bisect.bisect_right(log.changes, revision, key=_revision_of))
        self.wake()
        return self.compacted

    def objects(self) -> dict[str, dict[str, Stored]]:
        """Return a copy of the current objects of each resource, by key."""
        return {resource: dict(log.objects) for resource, log in self._logs.items()}

    def restore(self, objects: Mapping[str, Mapping[str, Stored]], revision: int) -> None:
        """Restore the objects of an earlier revision, without history.  All readers get :exc:`CompactedError`.

        The counter is not reset, because otherwise watches that start at lost revisions would miss the next writes.
        """
        self.revision = self.compacted = max(self.revision, revision) + 1
        self.taken.clear()
        for resource in {**self._logs, **objects}:
            log = self._log(resource)
            log.first += len(log.changes) + 1  # after the position of readers that are up to date
            log.changes.clear()
            log.compacted = self.compacted
            known = objects.get(resource)
            log.objects = {one.key: one for one in self.bootstrap(resource)} if known is None else dict(known)
            log.sorted_keys = None
            for observe in self.observers:
                observe(resource, None)
        self.wake()


def body_of(obj: JSONObject) -> bytes:
    """Encode an object for :attr:`Stored.body`, with metadata first, and without kind and apiVersion."""
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
    return dumps({"metadata": obj["metadata"], **rest})[1:]
