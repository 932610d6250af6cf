"""The journal of a controller: why each call to ``reconcile`` was made, and what the call wrote.

::

    event of an informer ─ predicates, enqueue ─▶ JournalCause ─┐
    failure, RequeueAfter, Controller.add() ────▶ JournalCause ─┴▶ JournalEntry ─▶ writes ─▶ events of informers …

Several causes of one request result in one call.  A write and the event that it causes have the same uid and the same
resourceVersion.  The journal refers to the old and the new state of an object, and compares them when it is read.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Final, Generic, Literal, TypeAlias, final

import attrs
import trio

from .._text import describe_error
from ..cache import Added, Notification, Updated
from ..client._internal import Write
from ..models import KubernetesObject, key_of, resource_of, to_dict
from ._request import K
from ._results import ReconcileResult

JOURNAL_SIZE: Final = 256
"""The number of calls to ``reconcile`` that a journal contains."""
MOST_CAUSES: Final = 16
"""The maximum number of causes of a call that are kept, and of its writes."""

Why: TypeAlias = Literal[
    "initial", "added", "updated", "resync", "deleted", "retry", "requeue", "gone", "Controller.add"
]
"""The kind of a cause."""

_INDENT: Final = " " * 14
"""The indentation of the writes and the error below the time of an entry."""
_UNINTERESTING: Final = frozenset({"managedFields", "resourceVersion"})


@final
@attrs.frozen(kw_only=True)
class JournalCause:
    """A reason for a call to ``reconcile``."""

    at: float
    """When the request was added to the queue, on trio's clock in seconds."""
    why: Why
    """``initial``, ``added``, ``updated``, ``resync`` or ``deleted`` for an event of an informer; ``retry`` or
    ``requeue`` for an earlier call that failed or returned ``RequeueAfter``; ``gone`` for an object that an earlier
    call has written and that was removed before a cache has shown it; or ``Controller.add``."""
    resource: str = ""
    """The resource of the event's object, such as ``deployments.apps``, or an empty string without an event."""
    key: str = ""
    """``namespace/name`` of the event's object."""
    uid: str = ""
    """The uid of the event's object."""
    resource_version: str = ""
    """The resourceVersion of the event's object."""
    predicates: tuple[str, ...] = ()
    """The names of the predicates that accepted the event."""
    enqueue: str = ""
    """The name of the function that returned the request for the event's object."""
    reconcile_id: str = ""
    """The call whose write caused the event, or that failed or asked for another call; an empty string if the journal
    does not contain such a call."""
    changes: tuple[str, ...] = ()
    """The paths of the fields that an ``updated`` event has changed, without their values, except for the
    resourceVersion and the managed fields."""

    def __str__(self) -> str:
        by = f", written by {self.reconcile_id:.8}" if self.reconcile_id and self.resource else ""
        after = f" after {self.reconcile_id:.8}" if self.reconcile_id and not self.resource else ""
        changed = f" ({', '.join(self.changes)})" if self.changes else ""
        return f"{self.why}{after}" + f" {self.resource} {self.key}{changed}{by}" * bool(self.resource)


@final
@attrs.frozen(kw_only=True)
class JournalEntry(Generic[K]):
    """A call to ``reconcile``, with its causes and its writes."""

    request: K
    """The request."""
    reconcile_id: str
    """The identifier of the call, as in :func:`~trioformer.controller.current_request`."""
    began: float
    """When the call began, on trio's clock in seconds."""
    ended: float | None
    """When the call ended, on trio's clock in seconds, or None if it is still running."""
    result: ReconcileResult | None
    """The result of the call, as for :class:`~trioformer.controller.ControllerObserver`, or None if it is running."""
    error: str
    """The error of the call, or an empty string."""
    causes: tuple[JournalCause, ...]
    """The causes of the call, oldest first, at most 16."""
    more_causes: int
    """The number of causes that are not in ``causes``."""
    writes: tuple[Write, ...]
    """The last writes of the call and of the tasks that it started, oldest first, at most 16."""

    def __str__(self) -> str:
        more = f" and {self.more_causes} more" if self.more_causes else ""
        why = "; ".join(map(str, self.causes)) + more
        end = "running" if self.ended is None else f"{self.result} in {self.ended - self.began:.3f} s"
        lines = [f"{self.began:10.3f} s  {self.request} ({self.reconcile_id:.8}): {end}, because: {why or 'unknown'}"]
        lines += [f"{_INDENT}{one.method} {one.path} → {one.code or 'no response'}" for one in self.writes]
        lines += [f"{_INDENT}{self.error}"] * bool(self.error)
        return "\n".join(lines)


@final
@attrs.define(eq=False)  # a frozen class would take twice as long to make
class _Cause:
    """A cause as it is recorded.  Most causes are never read, so everything else is computed later."""

    at: float
    why: Why
    event: Notification[Any] | None = None
    enqueue: Callable[..., object] | None = None
    predicates: Iterable[Callable[..., object]] = ()
    reconcile_id: str = ""


@final
@attrs.define(eq=False)
class JournalRecord(Generic[K]):
    """An entry as it is recorded, which changes until the call has ended."""

    request: K
    reconcile_id: str
    began: float
    causes: list[_Cause]
    more_causes: int
    ended: float | None = None
    result: ReconcileResult | None = None
    error: str = ""
    writes: deque[Write] = attrs.field(factory=lambda: deque(maxlen=MOST_CAUSES))
    on_error: Callable[[Exception], None] | None = None
    """A function that is called when the call fails."""

    def end(self, result: ReconcileResult, error: Exception | None) -> None:
        """Record the end of the call."""
        self.ended, self.result = trio.current_time(), result
        self.error = "" if error is None else describe_error(error)
        if error is not None and result == "error" and self.on_error is not None:
            self.on_error(error)


@final
@attrs.define(eq=False)
class Journal(Generic[K]):
    """The last calls to ``reconcile`` of a controller, of all its runs.

    An event costs less than 2 µs.  The journal keeps the objects of its entries in memory.
    """

    _entries: deque[JournalRecord[K]] = attrs.field(factory=lambda: deque(maxlen=JOURNAL_SIZE))
    _waiting: dict[K, tuple[list[_Cause], int]] = attrs.field(factory=dict)
    """The causes of the requests in the queue, and the number of those that were left out."""
    dropped_at: float = -math.inf
    """When the last run of the controller ended, which dropped its requests."""
    on_begin: Callable[[JournalRecord[K]], None] | None = None
    """A function that is called when a call begins."""

    def add_event(
        self,
        request: K,
        event: Notification[Any],
        enqueue: Callable[..., object],
        predicates: Iterable[Callable[..., object]],
    ) -> None:
        """Record an event of an informer that has added a request to the queue."""
        self._add(request, _Cause(trio.current_time(), _why(event), event, enqueue, predicates))

    def add(self, request: K, why: Why, reconcile_id: str = "") -> None:
        """Record another reason for which a request was added to the queue."""
        self._add(request, _Cause(trio.current_time(), why, reconcile_id=reconcile_id))

    def _add(self, request: K, cause: _Cause) -> None:
        causes, more = self._waiting.setdefault(request, ([], 0))
        if len(causes) < MOST_CAUSES:
            causes.append(cause)
        else:
            self._waiting[request] = (causes, more + 1)

    def begin(self, request: K, reconcile_id: str) -> JournalRecord[K]:
        """Record the start of a call."""
        causes, more = self._waiting.pop(request, ([], 0))
        entry = JournalRecord(request, reconcile_id, trio.current_time(), causes, more)
        self._entries.append(entry)
        if self.on_begin is not None:
            self.on_begin(entry)
        return entry

    def drop_waiting(self) -> None:
        """Forget the causes of requests that were dropped at the end of a run."""
        self.dropped_at = trio.current_time()
        self._waiting.clear()

    def entries(self, request: K | None = None) -> tuple[JournalEntry[K], ...]:
        """Return the entries for a request, or all entries, oldest first."""
        writers = {
            (write.uid, write.resource_version): entry.reconcile_id
            for entry in self._entries
            for write in entry.writes
            if write.uid
        }
        return tuple(_public(entry, writers) for entry in self._entries if request in (None, entry.request))


def _why(event: Notification[Any]) -> Why:
    match event:
        case Added(is_initial=True):
            return "initial"
        case Added():
            return "added"
        case Updated(old, new):
            return "resync" if old is new else "updated"
        case _:
            return "deleted"


def _public(entry: JournalRecord[K], writers: dict[tuple[str, str], str]) -> JournalEntry[K]:
    return JournalEntry(
        request=entry.request,
        reconcile_id=entry.reconcile_id,
        began=entry.began,
        ended=entry.ended,
        result=entry.result,
        error=entry.error,
        causes=tuple(_public_cause(cause, writers) for cause in entry.causes),
        more_causes=entry.more_causes,
        writes=tuple(entry.writes),
    )


def _public_cause(cause: _Cause, writers: dict[tuple[str, str], str]) -> JournalCause:
    event = cause.event
    if event is None:
        return JournalCause(at=cause.at, why=cause.why, reconcile_id=cause.reconcile_id)
    obj: KubernetesObject = event.new if isinstance(event, Updated) else event.object
    return JournalCause(
        at=cause.at,
        why=cause.why,
        resource=str(resource_of(type(obj))),
        key=key_of(obj),
        uid=obj.uid,
        resource_version=obj.resource_version,
        predicates=tuple(map(_name_of, cause.predicates)),
        enqueue="" if cause.enqueue is None else _name_of(cause.enqueue),
        reconcile_id="" if cause.why == "resync" else writers.get((obj.uid, obj.resource_version), ""),
        changes=tuple(_changes(to_dict(event.old), to_dict(obj))) if isinstance(event, Updated) else (),
    )


def _name_of(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _changes(old: object, new: object, path: str = "") -> Iterator[str]:
    """Yield the paths of the values that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new} - _UNINTERESTING):
            yield from _changes(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for index, both in enumerate(zip(old, new, strict=True)):
            yield from _changes(*both, f"{path}[{index}]")
    elif old != new:
        yield path


collect_journal: Final[ContextVar[Callable[[Journal[Any]], None] | None]] = ContextVar("collect_journal", default=None)
"""A function that gets the journal of each controller that the current test or simulation makes, or None."""


def describe_causes(record: JournalRecord[Any]) -> str:
    """Describe the request of a call and its first causes in one line."""
    causes = dict.fromkeys(str(_public_cause(cause, {})) for cause in record.causes)
    return f"{record.request}, because: {'; '.join(list(causes)[:3]) or 'unknown'}"


def as_json(entry: JournalEntry[Any]) -> dict[str, object]:
    """Return an entry as values that JSON can represent.  The request is a string."""
    return attrs.asdict(attrs.evolve(entry, request=str(entry.request)))


def new_journal(is_wanted: bool) -> Journal[Any] | None:
    """Return a journal for a new controller if it or the current test wants one."""
    collect = collect_journal.get()
    if not is_wanted and collect is None:
        return None
    journal: Journal[Any] = Journal()
    if collect is not None:
        collect(journal)
    return journal
