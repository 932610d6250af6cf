"""A replica between its start and its end: what it has seen, and its requests."""

from __future__ import annotations

import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from ..._util import first_leaf
from ...controller import current_request
from ...controller._internal import Journal, JournalRecord
from ...models._internal import decode
from .._in_memory import Exchange
from .._serving._requests import RequestRecord
from .._storage._clock import EPOCH
from ._record import Record

if TYPE_CHECKING:
    from ...controller._internal import CurrentRequest
    from .._server import APIServer

LONGEST_RESTART: Final = 300.0
"""The longest pause before a replica that has ended with an error starts again, in seconds."""
MOST_REQUESTS: Final = 500
"""The number of requests of one replica within a virtual second that is considered to be a loop."""
MOST_RECONCILES: Final = 100
"""The number of calls to ``reconcile`` for one request within a virtual second that is considered to be a loop."""
START: Final = EPOCH.timestamp()
"""The wall time at the start of a story, in seconds since 1970."""
_BLIND: Final = frozenset({"update", "patch"})
_LIBRARIES: Final = frozenset({"trioformer", "trio", "outcome", "httpx", "httpcore", "attr"}) | sys.stdlib_module_names
_VERSION: Final = re.compile(rb'"resourceVersion":"(\d+)"')


@final
@attrs.define(eq=False)
class Call:
    """A request of a replica."""

    life: Life
    record: RequestRecord
    body: bytes
    content_type: str
    request: CurrentRequest | None
    """The call to ``reconcile`` that sends the request."""
    cause: JournalRecord[Any] | None

    @property
    def who(self) -> str:
        """The replica."""
        return self.life.name

    @property
    def kind(self) -> str:
        """The verb and the resource, such as ``patch websites/status``."""
        record = self.record
        resource = "/".join(part for part in (record.resource or record.path, record.subresource) if part)
        return f"{record.verb} {resource}"

    @property
    def what(self) -> str:
        """The request in the trace."""
        names = "/".join(part for part in (self.record.namespace, self.record.name) if part)
        return f"{self.kind} {names}".rstrip()

    @property
    def is_write(self) -> bool:
        """Whether the request may change an object, apart from Leases and Events."""
        is_read = self.record.verb in ("get", "list", "watch") or "dryRun" in self.record.query
        return self.record.is_resource and not is_read and self.record.resource not in ("leases", "events")

    @property
    def is_blind(self) -> bool:
        """Whether this is a write that the server carries out whatever the version of the object is."""
        if self.record.verb not in _BLIND or "apply" in self.content_type:
            return False
        if "json-patch" in self.content_type:
            return b'"test"' not in self.body
        found = decode(self.body) if self.body[:1] == b"{" else {}
        return not (found.get("metadata") or {}).get("resourceVersion")

    def known_revision(self, resource: str, key: str) -> int:
        """Return the revision of an object up to which its replica had seen it when the call began."""
        seen = self.life.seen if self.request is None else self.life.seen_at.get(self.request.reconcile_id, {})
        return max(seen.get(resource, 0), self.life.responses.get((resource, key), 0))


@final
@attrs.define(eq=False)
class Life:
    """A replica between a start and its end."""

    server: APIServer
    record: Record
    index: int
    """The number of the replica."""
    seed: int
    skew: float
    """How far the clock of the replica is ahead, in seconds."""
    cluster: trio.Nursery
    """The nursery of the story."""
    seen: dict[str, int] = attrs.field(factory=dict)
    """The last revision that has arrived in a list or watch, by resource."""
    seen_at: dict[str, dict[str, int]] = attrs.field(factory=dict)
    """The value of ``seen`` when each call to ``reconcile`` began, by its identifier."""
    responses: dict[tuple[str, str], int] = attrs.field(factory=dict)
    """The revision of the last response for an object, by resource and key."""
    causes: dict[str, JournalRecord[Any]] = attrs.field(factory=dict)
    """The calls to ``reconcile`` by their identifier."""
    journals: dict[str, Journal[Any]] = attrs.field(factory=dict)
    """The journals of these calls."""
    connection: trio.Nursery = attrs.field(init=False)
    """The nursery of the server's side of the connections."""
    over: trio.Event = attrs.field(factory=trio.Event)
    """Set when the replica has ended or been killed."""
    restarts_after: float | None = None
    """The seconds until the next life, if a fault has ended this one."""
    is_cut_off: bool = False
    is_stopped: bool = False
    was_struck: bool = False
    """Whether a fault has concerned this life, which excuses an error."""
    partition_until: float = 0.0
    open_watches: int = 0
    error: str = ""
    """The error with which the operator has ended."""
    has_led: bool = False
    _streams: dict[trio.CancelScope, None] = attrs.field(factory=dict)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _counted: Counter[object] = attrs.field(factory=Counter)
    _second: float = 0.0

    @property
    def name(self) -> str:
        """The name in the trace."""
        return f"replica {self.index}"

    def wall_time(self) -> float:
        """Return what the clock of the replica shows, in seconds since 1970."""
        return START + trio.current_time() + self.skew

    async def carry_out(self, exchange: Exchange) -> None:
        """Carry out a request, on the server's side, until its connection breaks."""
        with trio.CancelScope() as scope:
            self._streams[scope] = None
            try:
                await exchange.serve(self.server.asgi_app)
            finally:
                del self._streams[scope]

    def break_streams(self) -> None:
        """Break the connections of all watches."""
        for scope in list(self._streams):
            scope.cancel()

    def kill(self, restarts_after: float) -> None:
        """Kill the replica.  Requests of its clean-up do not reach the server."""
        self.is_cut_off, self.restarts_after = True, restarts_after
        self.connection.cancel_scope.cancel()
        self.over.set()

    def stop(self, restarts_after: float | None = None) -> None:
        """Stop the replica, which may clean up."""
        self.restarts_after = restarts_after
        self.scope.cancel()

    # --- what the replica does ----------------------------------------------------------------------------------------

    def collect(self, journal: Journal[Any]) -> None:
        journal.on_begin = partial(self._begin_call, journal)

    def _begin_call(self, journal: Journal[Any], record: JournalRecord[Any]) -> None:
        self.journals[record.reconcile_id] = journal
        self.seen_at[record.reconcile_id] = dict(self.seen)
        self.causes[record.reconcile_id] = record
        record.on_error = partial(self._note_error, record)
        self.record.calls.setdefault(str(record.request), set()).add(int(trio.current_time()))
        self._count(str(record.request), MOST_RECONCILES, f"reconciles {record.request}")

    def is_dropped(self, call: JournalRecord[Any]) -> bool:
        """Return whether the run of the controller has ended, so that the next run begins with all objects."""
        return self.over.is_set() or self.journals[call.reconcile_id].dropped_at >= (call.ended or 0.0)

    def _note_error(self, record: JournalRecord[Any], error: Exception) -> None:
        record.error += place_of(error)
        self.record.add(self.name, f"reconcile {record.request}", f"failed: {record.error}", record)

    def failed_calls(self) -> dict[str, list[JournalRecord[Any]]]:
        """Return the calls to ``reconcile`` since the last one that has not failed, by request."""
        found: dict[str, list[JournalRecord[Any]]] = {}
        for one in self.causes.values():
            if one.result == "error":
                found.setdefault(str(one.request), []).append(one)
            else:
                found.pop(str(one.request), None)
        return found

    def new_call(self, record: RequestRecord, body: bytes, content_type: str) -> Call:
        """Return a request that the current task sends."""
        request = current_request()
        cause = None if request is None else self.causes.get(request.reconcile_id)
        return Call(self, record, body, content_type, request, cause)

    def check_rate(self) -> None:
        """Note a request, and stop the replica if it sends too many."""
        self._count("", MOST_REQUESTS, "sends requests")

    def _count(self, what: str, limit: int, text: str) -> None:
        if int(trio.current_time()) != self._second:
            self._second = int(trio.current_time())
            self._counted.clear()
        self._counted[what] += 1
        if self._counted[what] == limit:
            self.record.report("hot loop", text.split()[0], f"{self.name} {text} {limit} times within a second")
            self.stop(LONGEST_RESTART)

    def note_revision(self, record: RequestRecord, revision: int) -> None:
        """Note what a list or watch has delivered."""
        resource = f"{record.resource}.{record.group}" if record.group else record.resource
        self.seen[resource] = max(self.seen.get(resource, 0), revision)

    def note_response(self, call: Call, content: bytes) -> None:
        """Note which object or list has arrived."""
        record, revision = call.record, next(revisions_in(content), 0)
        if record.verb == "list":
            self.note_revision(record, revision)
        elif record.name is not None:
            resource = f"{record.resource}.{record.group}" if record.group else record.resource
            key = f"{record.namespace}/{record.name}" if record.namespace else record.name
            self.responses[resource, key] = revision

    def check_leader(self, call: Call) -> None:
        """Check that a write of a call to ``reconcile`` is sent by the leader."""
        if not call.is_write or call.request is None:
            return
        valid = [lease for lease in self.record.leases.values() if trio.current_time() <= lease.until]
        if any(lease.life is self for lease in valid):
            self.has_led = True
            return
        if valid:
            why = f"while {valid[0].name} led"
        elif self.has_led:
            why = "although its lease had ended"
        else:
            return
        self.record.report("one leader", call.kind, f"{self.name} sent {call.what} {why}")


def place_of(error: BaseException) -> str:
    """Return the file and the line of the innermost frame in the user's code, such as ``, at operator.py:12``."""
    leaf = first_leaf(error) if isinstance(error, Exception) else error
    frames = traceback.walk_tb(None if leaf is None else leaf.__traceback__)
    for frame, line in reversed(list(frames)):
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            path, here = Path(frame.f_code.co_filename), Path.cwd()
            return f", at {path.relative_to(here) if path.is_relative_to(here) else path}:{line}"
    return ""


def revisions_in(content: bytes) -> Iterator[int]:
    """Yield the resourceVersions in a response.  The first one is that of the object or of the list."""
    return (int(found.group(1)) for found in _VERSION.finditer(content))
