"""The embedded cluster's etcd: states, revisions, history, compaction.

One counter numbers every write, whatever its resource.
Each resource has a log: its present objects and the ordered changes that led there, each with the states before and
after it, so that any remembered revision can be read again (undo what came later) or continued from.

A watcher holds nothing but its position in a log.
It reads from there to the end, then waits to be woken; a slow one costs no memory, and one that is overtaken by
compaction is told so.

Everything but :meth:`Storage.wait` is plain code: atomic between checkpoints, usable outside of trio.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from typing import Any, Literal, TypeAlias, final

import attrs
import trio

from ...models._internal import dumps

JSONObject: TypeAlias = dict[str, Any]
"""A decoded JSON object that the holder may change."""


@final
@attrs.frozen(eq=False)
class Stored:
    """One state of one object, never changed."""

    key: str
    """``namespace/name``, or ``name`` for what has no namespace."""
    revision: int
    """The write that made it, its ``resourceVersion``; 0 when a dry run did not write it."""
    body: bytes
    """JSON without the opening brace, ``kind`` and ``apiVersion``: those depend on the version that is served."""

    @property
    def namespace(self) -> str:
        """The namespace; empty for what has none."""
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
    """What it did."""
    before: Stored | None
    """The state before it; None when there was none."""
    object: Stored
    """The state that it made; for a deletion the last one, under the deletion's revision."""

    @property
    def revision(self) -> int:
        """The revision of this write."""
        return self.object.revision


class CompactedError(Exception):
    """The history that was asked for is forgotten.

    Attributes:
        oldest: The oldest revision from which changes can still be read.
    """

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history before revision {oldest} is forgotten")
        self.oldest = oldest


@final
@attrs.define(eq=False)
class _Log:
    """One resource: its objects, and the changes that are still remembered."""

    objects: dict[str, Stored] = attrs.field(factory=dict)
    changes: list[Change] = attrs.field(factory=list)
    first: int = 0
    """The position of ``changes[0]``: how many changes were forgotten."""
    forgotten: int = 0
    """The revision of the last forgotten change."""
    sorted_keys: list[str] | None = None
    """The keys of ``objects`` in etcd's order; None when they must be sorted again."""
    watchers: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    def forget(self, count: int) -> None:
        if count:
            self.forgotten = self.changes[count - 1].revision
            self.first += count
            del self.changes[:count]


def _revision_of(change: Change) -> int:
    return change.revision


@final
@attrs.define(eq=False)
class Storage:
    """Versioned objects in memory."""

    history_limit: int = 10_000
    """How many changes of each resource are remembered at least; older ones are compacted away now and then."""
    revision: int = 1
    """The number of the last write; etcd too begins with 1."""
    compacted: int = attrs.field(init=False, default=attrs.Factory(lambda new: new.revision - 1, takes_self=True))
    """The last compaction: changes cannot be read from before it, nor from before the storage began."""
    _logs: defaultdict[str, _Log] = attrs.field(init=False, factory=lambda: defaultdict(_Log))

    def get(self, resource: str, key: str) -> Stored | None:
        """Return the present state of an object, or None."""
        return self._logs[resource].objects.get(key)

    def count(self, resource: str | None = None) -> int:
        """Return how many objects a resource has, or all of them together."""
        logs = self._logs.values() if resource is None else [self._logs[resource]]
        return sum(len(log.objects) for log in logs)

    def put(self, resource: str, key: str, obj: JSONObject) -> Stored:
        """Write a state: stamps ``metadata.resourceVersion`` into ``obj``, which becomes the storage's."""
        log = self._logs[resource]
        before = log.objects.get(key)
        stored = self._next(key, obj)
        if before is None:
            log.sorted_keys = None
        log.objects[key] = stored
        self._record(log, Change("ADDED" if before is None else "MODIFIED", before, stored))
        return stored

    def remove(self, resource: str, key: str, last: JSONObject) -> Stored:
        """Delete an object, with the state that its watchers are shown; stamps ``last`` as :meth:`put` does.

        Raises:
            KeyError: There is no such object.
        """
        log = self._logs[resource]
        before = log.objects.pop(key)
        log.sorted_keys = None
        stored = self._next(key, last)
        self._record(log, Change("DELETED", before, stored))
        return stored

    def _next(self, key: str, obj: JSONObject) -> Stored:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Stored(key, self.revision, body_of(obj))

    def _record(self, log: _Log, change: Change) -> None:
        log.changes.append(change)
        # A quarter more than the limit, so that not every write moves the whole list.
        if len(log.changes) > self.history_limit + self.history_limit // 4:
            log.forget(len(log.changes) - self.history_limit)
        log.watchers.unpark_all()

    def snapshot(self, resource: str, prefix: str = "", revision: int | None = None) -> list[Stored]:
        """Return the objects whose keys begin with ``prefix``, ordered by key, as of a revision (None: now).

        Raises:
            CompactedError: That revision is forgotten.
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
        # Keys hold no code point above U+10FFFF, so this is the first key after those with the prefix.
        end = bisect.bisect_left(keys, prefix + "\U0010ffff")
        return [objects[key] for key in keys[start:end]]

    def position(self, resource: str, revision: int) -> int:
        """Return the position of the first change after a revision.

        Raises:
            CompactedError: That revision is forgotten.
        """
        log = self._logs[resource]
        self._check(log, revision)
        return log.first + bisect.bisect_right(log.changes, revision, key=_revision_of)

    def _check(self, log: _Log, revision: int) -> None:
        oldest = max(self.compacted, log.forgotten)
        if revision < oldest:
            raise CompactedError(oldest)

    def read(self, resource: str, position: int, limit: int = 100) -> list[Change]:
        """Return at most ``limit`` changes from a position on; none when the reader is up to date.

        Raises:
            CompactedError: The reader was overtaken by compaction.
        """
        log = self._logs[resource]
        if position < log.first:
            raise CompactedError(max(self.compacted, log.forgotten))
        start = position - log.first
        return log.changes[start : start + limit]

    async def wait(self, resource: str) -> None:
        """Sleep until the resource changes or :meth:`wake` is called.

        Whoever has looked and found nothing may call this without losing a wake-up, because nothing can happen
        between the two but at a checkpoint.
        """
        await self._logs[resource].watchers.park()

    def wake(self) -> None:
        """Wake every waiting reader, so that it looks at what else may have ended its wait."""
        for log in self._logs.values():
            log.watchers.unpark_all()

    def compact(self, revision: int | None = None) -> int:
        """Forget the changes up to and including a revision; reading from before it is then refused.

        Args:
            revision: None forgets everything and makes every revision that was ever handed out too old: the counter
                moves on by one first, as if something else had been written.
                A revision that is forgotten already changes nothing.

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
            log.forget(bisect.bisect_right(log.changes, revision, key=_revision_of))
        self.wake()
        return self.compacted


def body_of(obj: JSONObject) -> bytes:
    """Encode an object as :class:`Stored` holds it: metadata first, no kind and apiVersion."""
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
    return dumps({"metadata": obj["metadata"], **rest})[1:]
