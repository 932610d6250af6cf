"""Versioned objects in memory, with etcd's semantics: revisions, history, compaction.

One counter numbers all writes of all resources.
Each resource has a log: its current objects and the ordered changes that led to them, each with the states before and
after it.
So any revision that is not compacted can be read (by undoing later changes) or watched from.

A watcher only has a position in a log.
It reads from there to the end, then waits for the next change.
A slow watcher costs no memory; if compaction overtakes it, it gets :exc:`CompactedError`.

All methods except :meth:`Storage.wait` are synchronous, so they are atomic in trio and usable outside it.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, final

import attrs
import trio

from ...models._internal import dumps

JSONObject: TypeAlias = dict[str, Any]
"""A decoded JSON object that its holder may modify."""


@final
@attrs.frozen(eq=False)
class Stored:
    """One immutable state of one object."""

    key: str
    """``namespace/name``, or ``name`` for cluster-scoped kinds."""
    revision: int
    """The revision of the write that made it, its ``resourceVersion``; 0 for a dry run."""
    body: bytes
    """JSON without the opening brace, ``kind`` and ``apiVersion``, which depend on the served version."""

    @property
    def namespace(self) -> str:
        """The namespace; empty for cluster-scoped kinds."""
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name."""
        return self.key.rpartition("/")[2]


@final
@attrs.frozen(eq=False)
class Change:
    """One write."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    """The type of the change."""
    before: Stored | None
    """The state before the write, or None."""
    object: Stored
    """The state after the write; for a deletion, the last state with the revision of the deletion."""

    @property
    def revision(self) -> int:
        """The revision of this write."""
        return self.object.revision


class CompactedError(Exception):
    """The requested revision is compacted.

    Attributes:
        oldest: The oldest revision from which changes can still be read.
    """

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history before revision {oldest} is compacted")
        self.oldest = oldest


@final
@attrs.define(eq=False)
class _Log:
    """One resource: its objects, and the changes that are not compacted."""

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
    """Versioned objects in memory."""

    history_limit: int = 10_000
    """The minimum number of changes that are kept for each resource; older ones are compacted in batches."""
    revision: int = 1
    """The revision of the last write; begins with 1, as in etcd."""
    compacted: int = attrs.field(init=False, default=attrs.Factory(lambda new: new.revision - 1, takes_self=True))
    """The last compacted revision; earlier revisions cannot be read.  Initially the one before the first."""
    observer: Callable[[str], None] | None = attrs.field(init=False, default=None)
    """Called after each write, with the resource."""
    _logs: defaultdict[str, _Log] = attrs.field(init=False, factory=lambda: defaultdict(_Log))

    def resources(self) -> list[str]:
        """Return the resources that have ever had objects."""
        return list(self._logs)

    def get(self, resource: str, key: str) -> Stored | None:
        """Return the current state of an object, or None."""
        return self._logs[resource].objects.get(key)

    def count(self, resource: str | None = None) -> int:
        """Return the number of objects of a resource, or of all."""
        logs = self._logs.values() if resource is None else [self._logs[resource]]
        return sum(len(log.objects) for log in logs)

    def put(self, resource: str, key: str, obj: JSONObject) -> Stored:
        """Write a state: sets ``metadata.resourceVersion`` in ``obj``, which the caller must not use afterwards."""
        log = self._logs[resource]
        before = log.objects.get(key)
        stored = self._next(key, obj)
        if before is None:
            log.sorted_keys = None
        log.objects[key] = stored
        self._record(log, Change("ADDED" if before is None else "MODIFIED", before, stored))
        if self.observer is not None:
            self.observer(resource)
        return stored

    def remove(self, resource: str, key: str, last: JSONObject) -> Stored:
        """Delete an object; ``last`` is the state in the DELETED event, and gets its resourceVersion as in :meth:`put`.

        Raises:
            KeyError: The object does not exist.
        """
        log = self._logs[resource]
        before = log.objects.pop(key)
        log.sorted_keys = None
        stored = self._next(key, last)
        self._record(log, Change("DELETED", before, stored))
        if self.observer is not None:
            self.observer(resource)
        return stored

    def _next(self, key: str, obj: JSONObject) -> Stored:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Stored(key, self.revision, body_of(obj))

    def _record(self, log: _Log, change: Change) -> None:
        log.changes.append(change)
        # In batches of a quarter of the limit, because each compaction moves the whole list.
        if len(log.changes) > self.history_limit + self.history_limit // 4:
            log.compact(len(log.changes) - self.history_limit)
        log.watchers.unpark_all()

    def snapshot(self, resource: str, prefix: str = "", revision: int | None = None) -> list[Stored]:
        """Return the objects whose keys begin with ``prefix``, ordered by key, as of a revision (None: now).

        Raises:
            CompactedError: That revision is compacted.
        """
        log = self._logs[resource]
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
            CompactedError: That revision is compacted.
        """
        log = self._logs[resource]
        self._check(log, revision)
        return log.first + bisect.bisect_right(log.changes, revision, key=_revision_of)

    def end(self, resource: str) -> int:
        """Return the position after the last change."""
        log = self._logs[resource]
        return log.first + len(log.changes)

    def _check(self, log: _Log, revision: int) -> None:
        oldest = max(self.compacted, log.compacted)
        if revision < oldest:
            raise CompactedError(oldest)

    def read(self, resource: str, position: int, limit: int = 100) -> list[Change]:
        """Return up to ``limit`` changes from a position; an empty list if the reader is up to date.

        Raises:
            CompactedError: Changes after the position are compacted.
        """
        log = self._logs[resource]
        if position < log.first:
            raise CompactedError(max(self.compacted, log.compacted))
        start = position - log.first
        return log.changes[start : start + limit]

    async def wait(self, resource: str) -> None:
        """Wait until the resource changes or :meth:`wake` is called.

        To miss no change, call this after :meth:`read` returned nothing, without a checkpoint in between.

        Cancellation:
            At any time; the reader's position stays valid.
        """
        await self._logs[resource].watchers.park()

    def wake(self, resource: str | None = None) -> None:
        """Wake the waiting readers of a resource, or of all, so that they check their other conditions."""
        for log in self._logs.values() if resource is None else [self._logs[resource]]:
            log.watchers.unpark_all()

    def compact(self, revision: int | None = None) -> int:
        """Discard the changes up to and including a revision; reading earlier ones then raises :exc:`CompactedError`.

        Args:
            revision: The last revision to discard; a compacted one has no effect.
                None discards all changes and makes all revisions that clients know too old: it increments the counter
                first, as if another object had been written.

        Raises:
            ValueError: The revision is in the future.
        """
        if revision is None:
            self.revision += 1
            revision = self.revision
        if revision > self.revision:
            raise ValueError(f"cannot compact at revision {revision}, the storage is at {self.revision}")
        self.compacted = max(self.compacted, revision)
        for log in self._logs.values():
            log.compact(bisect.bisect_right(log.changes, revision, key=_revision_of))
        self.wake()
        return self.compacted

    def objects(self) -> dict[str, dict[str, Stored]]:
        """Return the current objects of each resource, by key; later writes do not change it."""
        return {resource: dict(log.objects) for resource, log in self._logs.items()}

    def restore(self, objects: Mapping[str, Mapping[str, Stored]], revision: int) -> None:
        """Go back to the objects of a revision, without history; all readers get :exc:`CompactedError`.

        The counter does not go back, because watches from lost revisions would miss the next writes.
        """
        self.revision = self.compacted = max(self.revision, revision) + 1
        for resource in {**self._logs, **objects}:
            log = self._logs[resource]
            log.first += len(log.changes) + 1  # after the position of readers that are up to date
            log.changes.clear()
            log.compacted = self.compacted
            log.objects = dict(objects.get(resource, {}))
            log.sorted_keys = None
            if self.observer is not None:
                self.observer(resource)
        self.wake()


def body_of(obj: JSONObject) -> bytes:
    """Encode an object as :attr:`Stored.body`: metadata first, without kind and apiVersion."""
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
    return dumps({"metadata": obj["metadata"], **rest})[1:]
