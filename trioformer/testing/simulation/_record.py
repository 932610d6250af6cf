"""The record of a story: the trace, who wrote what, and the problems that are noticed while the story goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import attrs
import trio

from ...controller._internal import JournalRecord
from .._serving._requests import RequestRecord
from .._storage._storage import Change, JSONObject, Stored
from ._paths import changed_paths

if TYPE_CHECKING:
    from .._server import APIServer

LEASES: Final = "leases.coordination.k8s.io"
EVENTS: Final = frozenset({"events", "events.events.k8s.io"})


class Writing(Protocol):
    """The request with which a replica writes."""

    record: RequestRecord

    @property
    def who(self) -> str:
        """The replica."""
        ...

    @property
    def life(self) -> object:
        """The life of the replica."""

    @property
    def is_blind(self) -> bool:
        """Whether the server carries out the write whatever the version of the object is."""
        ...

    def known_revision(self, resource: str, key: str) -> int:
        """Return the revision of an object up to which the replica had seen it."""
        ...


party: Final[ContextVar[str]] = ContextVar("party", default="the user")
"""Who acts in the current task, apart from requests."""
current_call: Final[ContextVar[Writing | None]] = ContextVar("current_call", default=None)
"""The request of a replica that the server carries out in the current task."""


@final
@attrs.frozen
class Problem:
    """Something that must not happen."""

    check: str
    """The name of the check, such as ``lost update``."""
    path: str
    """Where it happened, without names and numbers that depend on the story."""
    text: str
    """What happened, in one sentence."""
    position: int = attrs.field(default=0, eq=False)
    """The number of entries in the trace when it happened."""

    @property
    def identity(self) -> tuple[str, str]:
        """What remains the same while a story is shrunk."""
        return self.check, self.path


@final
@attrs.define(eq=False)
class Entry:
    """A line of the trace."""

    time: float
    who: str
    what: str
    outcome: str = ""
    cause: JournalRecord[Any] | None = None

    def __str__(self) -> str:
        outcome = f" → {self.outcome}" if self.outcome else ""
        return f"{self.time:9.3f}  {self.who:<11} {self.what}{outcome}"


@final
@attrs.frozen(eq=False)
class Lease:
    """A Lease that a replica holds."""

    life: object
    """The life of the replica."""
    name: str
    """The name of the replica."""
    until: float
    """When the lease ends, on trio's clock."""


@final
@attrs.define(eq=False)
class Record:
    """Everything that has happened in a story."""

    server: APIServer
    always: Callable[[], object] | None
    """Called after each write, to check what must always hold."""
    end: Callable[[], object]
    """Called when something is wrong, to end the story."""
    entries: list[Entry] = attrs.field(factory=list)
    problem: Problem | None = None
    """What went wrong first."""
    disturbed_until: float = 0.0
    """When the last fault ends, on trio's clock."""
    calls: dict[str, set[int]] = attrs.field(factory=dict)
    """The virtual seconds in which ``reconcile`` was called for each request."""
    parties: dict[int, str] = attrs.field(factory=dict)
    """Who made the write of each revision."""
    created_by: dict[str, str] = attrs.field(factory=dict)
    """Who created the object with each uid."""
    identities: dict[str, str] = attrs.field(factory=dict)
    """The kind, namespace and name of the object with each uid."""
    most_children: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """The largest number of objects at one time, by the owner's identity and the kind."""
    written: trio.Event = attrs.field(factory=trio.Event)
    """An event that is replaced and set at each write of a replica, except for Leases and Events."""
    requests: int = 0
    """The number of requests of the replicas."""
    leases: dict[str, Lease] = attrs.field(factory=dict)
    """The holders of the Leases, by the key of the Lease."""
    _times: list[tuple[float, int]] = attrs.field(factory=list)
    """The time and the revision of each write."""
    _children: dict[tuple[str, str], set[str]] = attrs.field(factory=dict)
    _siblings: dict[str, set[str]] = attrs.field(factory=dict)
    """The set of ``_children`` that contains each uid."""
    _kinds: dict[str, str] = attrs.field(factory=dict)
    _is_checking: bool = False

    def begin(self) -> None:
        """Record the writes from now on."""
        self.server._storage.observers.append(self._observe)

    def disturb(self, seconds: float) -> None:
        """Note that something happens that lasts for some seconds."""
        self.disturbed_until = max(self.disturbed_until, trio.current_time() + seconds)

    def add(self, who: str, what: str, outcome: str = "", cause: JournalRecord[Any] | None = None) -> Entry:
        """Add a line to the trace."""
        entry = Entry(trio.current_time(), who, what, outcome, cause)
        self.entries.append(entry)
        return entry

    def report(self, check: str, path: str, text: str) -> None:
        """Note that something is wrong, and end the story."""
        if self.problem is None:
            self.problem = Problem(check, path, text, len(self.entries))
            self.end()

    def revision_at(self, back: float, latest: int) -> int:
        """Return the last revision some seconds ago, but no later one than ``latest``."""
        then = trio.current_time() - back
        before = [revision for time, revision in self._times if (time < then if back else revision <= latest)]
        return before[-1] if before else latest

    def kind_of(self, resource: str) -> str:
        """Return the kind of a resource such as ``deployments.apps``."""
        if resource not in self._kinds:
            self._kinds = {served.resource: served.info.kind for served in self.server._kinds}
        return self._kinds.get(resource, resource)

    def _observe(self, resource: str, change: Change | None) -> None:
        if change is None:
            return
        call, who = current_call.get(), party.get()
        cluster = self.server._cluster
        if cluster is not None and cluster.is_settling:
            call, who = None, "the cluster"
        elif call is not None:
            who = call.who
        self.parties[change.revision] = who
        self._times.append((trio.current_time(), change.revision))
        if change.before is None or change.type == "DELETED" or b'"deletionTimestamp"' in change.object.body:
            self._count(resource, change, who)
        if resource == LEASES:
            self._note_lease(change, call)
        if resource in EVENTS or resource == LEASES:
            return
        if call is None:
            self.add(who, f"{_VERBS[change.type]} {self.kind_of(resource)} {change.object.key}")
        else:
            self.written.set()
            self.written = trio.Event()
            if call.is_blind and change.type == "MODIFIED":
                self._check_update(resource, change, call)
        if self.always is not None and not self._is_checking:
            self._is_checking = True
            try:
                self.always()
            finally:
                self._is_checking = False

    def _note_lease(self, change: Change, call: Writing | None) -> None:
        spec: JSONObject = change.object.decoded().get("spec") or {}
        if change.type == "DELETED" or not spec.get("holderIdentity"):
            self.leases.pop(change.object.key, None)
        elif call is not None:
            until = call.record.time + float(spec.get("leaseDurationSeconds") or 0)
            self.leases[change.object.key] = Lease(call.life, call.who, until)

    def _count(self, resource: str, change: Change, who: str) -> None:
        """Count the objects of an owner that are not being deleted."""
        metadata: JSONObject = change.object.decoded()["metadata"]
        uid, kind = metadata["uid"], self.kind_of(resource)
        if uid not in self.created_by:
            self.created_by[uid] = who
            self.identities[uid] = f"{kind} {change.object.key}"
        if resource in EVENTS or resource == LEASES or not self.created_by[uid].startswith("replica"):
            return
        owners = metadata.get("ownerReferences")
        self._siblings.pop(uid, set()).discard(uid)  # its owner may have changed
        if change.type == "DELETED" or "deletionTimestamp" in metadata or not owners:
            return  # those without an owner may belong to several objects, whose times overlap after a fault
        found = self._siblings[uid] = self._children.setdefault((owners[0]["uid"], kind), set())
        found.add(uid)
        owner = self.identities.get(owners[0]["uid"], "an unknown owner")
        self.most_children[owner, kind] = max(self.most_children[owner, kind], len(found))

    def _check_update(self, resource: str, change: Change, call: Writing) -> None:
        """Check that a write has not undone a change that its writer did not know."""
        assert change.before is not None
        history = [one for one in self.server._storage.changes(resource) if one.object.key == change.object.key]
        mine = changed_paths(change.before.decoded(), change.object.decoded())
        known = call.known_revision(resource, change.object.key)
        for path in sorted(mine):
            writers = [one.revision for one in history if path in self._paths(one)][:-1]
            parties = [self.parties.get(revision, "") for revision in writers]
            if not writers or any(one.startswith("replica") for one in parties) or writers[-1] <= known:
                continue
            kind = self.kind_of(resource)
            what = f"{call.who} wrote {path} of {kind} {change.object.key}, and undid a change of {parties[-1]}"
            self.report("lost update", f"{kind} {path}", f"{what} that it had not seen")
            return

    def _paths(self, change: Change) -> set[str]:
        return changed_paths({} if change.before is None else change.before.decoded(), change.object.decoded())


_VERBS: Final[Mapping[str, str]] = {"ADDED": "created", "MODIFIED": "changed", "DELETED": "removed"}


@contextmanager
def acting(who: str) -> Iterator[None]:
    """Attribute the writes of the block to somebody."""
    token = party.set(who)
    try:
        yield
    finally:
        party.reset(token)


def stored_objects(record: Record) -> Iterator[tuple[str, Stored]]:
    """Yield the stored objects that were created in the story, with their resource, but no Events and Leases."""
    storage = record.server._storage
    for resource in sorted({*storage.resources()} - EVENTS - {LEASES}):
        yield from ((resource, stored) for stored in storage.snapshot(resource))
