"""The writes of a controller that its caches do not show yet.

The problem: a call to ``reconcile`` that has created a pod is often followed by another one before the cache shows the
pod, which then creates another pod.  So the next call for the same request begins when the caches show its writes::

    write ─▶ unseen ─▶ shown by all caches ───────────────────────────┐
               └─ a worker takes the request ─▶ parked ─▶ all shown ──┴▶ the next call

- *unseen*: the caches of the same client that contain the object, or will contain it, do not show the write yet.  The
  request may be added to the queue.
- *parked*: a worker took the request too early, and put it aside without calling ``reconcile``.  No worker waits.

If the cache reaches the version of a new object, but the object is gone, no event has reported it, for example because
the watch was broken.  Then the request is added again.

A write without a response may have been carried out.  Before the next call, the controller reads the object, and the
caches must show this state.  If the server chooses the name, a list of one object asks for the server's current
resourceVersion instead, which the caches reach at their next event or bookmark, up to a minute later.

Source: KEP-5647 (stale controller mitigation), which delays the next sync in kube-controller-manager.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from typing import Final, Generic, final

import attrs
import trio

from .._retry import is_permanent
from .._text import one_line, suppressed_lines
from .._util import LogLimit
from ..client._internal import WrittenObject
from ..errors import StatusError
from ..models import ResourceInfo
from ..workqueue import RateLimitingQueue
from ._journal import Journal
from ._request import K

logger = logging.getLogger("trioformer.controller")

PATIENCE: Final = 300.0
"""The longest time that a request waits for a cache, in seconds."""

_LONGEST_UNCLEAR: Final = 600.0
"""How long a write without a response is remembered, in seconds.  Some requests are never added again, so their entries
would stay forever."""
_FIRST_ERROR: Final = 300
_NEVER_READ: Final = frozenset({"events", "leases"})


@final
@attrs.define(eq=False)
class _Unseen:
    """A write that some caches do not show yet."""

    resource: ResourceInfo
    caches: int = 0
    """The number of these caches."""


@final
@attrs.define(eq=False)
class OwnWrites(Generic[K]):
    """The unseen writes of a controller, by request.  Those of a run that has ended delay the calls of the next one."""

    _name: str
    _skips: Counter[tuple[str, str]]
    """The number of early requests, by the group and the resource of the first unseen write."""
    _stale: Counter[tuple[str, str]]
    """The number of requests that were reconciled after five minutes nevertheless, in the same way."""
    _journal: Journal[K] | None
    _queue: RateLimitingQueue[K] = attrs.field(init=False)
    """The queue of the last run."""
    _unseen: dict[K, dict[_Unseen, None]] = attrs.field(factory=dict, init=False)
    _unclear: dict[K, dict[tuple[str, str], WrittenObject]] = attrs.field(factory=dict, init=False)
    """The writes whose outcome is not known, by their paths and names."""
    _parked: dict[K, float] = attrs.field(factory=dict, init=False)
    """When each request was parked, oldest first."""
    _woken: trio.Event = attrs.field(factory=trio.Event, init=False)

    def begin_run(self, queue: RateLimitingQueue[K]) -> None:
        """Use the queue of a new run."""
        self._queue = queue
        self._parked.clear()

    def record(self, request: K, written: WrittenObject) -> None:
        """Record a write of a call to ``reconcile``."""
        write = written.write
        if written.resource.plural in _NEVER_READ or not written.caches:
            return
        if not written.is_clear:
            self._unclear.setdefault(request, {})[write.path, written.name] = written
            oldest, others = next(iter(self._unclear.items()))
            if next(iter(others.values())).write.at < write.at - _LONGEST_UNCLEAR:
                del self._unclear[oldest]
        elif (write.code or 0) < _FIRST_ERROR:
            self._wait(request, written, "0" if written.removes else write.resource_version)

    def _wait(self, request: K, written: WrittenObject, version: str) -> None:
        unseen = _Unseen(written.resource)
        shown = partial(self._shown, request, unseen)
        for cache in written.caches:
            unseen.caches += cache.call_when_shown(written, version, shown)
        if unseen.caches:
            self._unseen.setdefault(request, {})[unseen] = None

    def _shown(self, request: K, unseen: _Unseen, is_cached: bool) -> None:
        # If it was removed before the cache has shown it, no event adds the request.
        if not is_cached and self._queue.add(request) and self._journal is not None:
            self._journal.add(request, "gone")
        unseen.caches -= 1
        if unseen.caches or (found := self._unseen.get(request)) is None:
            return
        found.pop(unseen, None)
        if not found:
            self._forget(request)

    def _forget(self, request: K) -> None:
        self._unseen.pop(request, None)
        if self._parked.pop(request, None) is not None:
            self._queue.unpark(request)

    def may_be_early(self, request: K) -> bool:
        """Return whether a request has writes that were not shown when they were made."""
        return request in self._unseen or request in self._unclear

    async def is_early(self, request: K) -> bool:
        """Park a request and return True if its caches do not show its writes yet.

        Raises:
            Exception: The resourceVersion after a write without a response could not be read.
        """
        while unclear := self._unclear.get(request):
            which, written = next(iter(unclear.items()))
            try:
                version = await written.read_version()
            except StatusError as error:
                if not is_permanent(error):
                    raise
                version = ""  # the program may write it, but not read it
            del unclear[which]
            self._wait(request, written, version)
        self._unclear.pop(request, None)
        if request not in self._unseen:
            return False
        first = next(iter(self._unseen[request])).resource
        self._skips[first.group, first.plural] += 1
        self._queue.park(request)
        self._parked[request] = trio.current_time()
        self._woken.set()
        return True

    async def run(self) -> None:
        """End the wait of requests whose caches do not show their writes for five minutes."""
        limit = LogLimit(60.0, lines=5)
        while True:
            if not self._parked:
                self._woken = trio.Event()
                await self._woken.wait()
                continue
            request, since = next(iter(self._parked.items()))
            if since + PATIENCE > trio.current_time():
                await trio.sleep_until(since + PATIENCE)
                continue  # the caches may have shown its writes
            resources = sorted({str(one.resource) for one in self._unseen[request]})
            first = next(iter(self._unseen[request])).resource
            self._stale[first.group, first.plural] += 1
            if count := limit.count(None):
                logger.warning(
                    "controller %s: the caches do not show the writes of %s after %g s, reconciling anyway: %s%s",
                    self._name,
                    one_line(str(request)),
                    PATIENCE,
                    ", ".join(resources),
                    suppressed_lines(count - 1),
                )
            self._forget(request)
