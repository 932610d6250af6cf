"""Requests that are put aside because their object is paused, or because their last call began too recently.

::

    a worker takes the request ─▶ annotated? ─ yes ─▶ paused ──── not annotated any more, or deleted ─▶ the queue
                                    └─ no ─▶ resting? ─ yes ─▶ early ──── rested ─▶ the queue
                                               └─ no ─▶ reconcile, and resting from now on

A *paused* or *early* request is parked: no worker waits, and equal requests are merged.  A handler receives all states
after the one that a worker has read, so it notices the end of the pause.  When a pause begins or ends, the request is
added even if a predicate rejects the event.

Source: Cluster API ``util/annotations`` (``HasPaused``) and ``util/paused`` (``EnsurePausedCondition``).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar, final

import attrs
import trio

from .._text import one_line
from ..cache import Added, Deleted, Notification, SharedInformer
from ..client import Api, Client
from ..errors import CacheNotSyncedError, NotOwnedError
from ..models import KubernetesObject, to_dict
from ..models.conditions import set_condition
from ..workqueue import RateLimitingQueue
from ._create_or_update import api_of
from ._options import PausedHandler
from ._request import K

T = TypeVar("T", bound=KubernetesObject)

logger = logging.getLogger("trioformer.controller")


@final
@attrs.define(eq=False)
class Pauses(Generic[K]):
    """The paused requests of one run of a controller."""

    _name: str
    _queue: RateLimitingQueue[K]
    _annotation: str
    _on_paused: PausedHandler[K] | None
    informers: list[SharedInformer[Any]] = attrs.field(factory=list, init=False)
    """The informers of the reconciled objects."""
    parked: set[K] = attrs.field(factory=set, init=False)

    async def is_paused(self, request: K) -> bool:
        """Park a request and return True if its object is paused; exceptions from ``on_paused`` propagate."""
        if not self._is_annotated(request):
            return False
        if self._on_paused is not None:
            await self._on_paused(request)
            if not self._is_annotated(request):  # the end of the pause came before the request was parked
                return False
        text = "controller %s: %s is paused by the annotation %s"
        logger.info(text, self._name, one_line(str(request)), self._annotation)
        self._queue.park(request)
        self.parked.add(request)
        return True

    def _is_annotated(self, request: Any) -> bool:
        # an object in quarantine stays paused, because its new state cannot show the end of the pause
        for informer in self.informers:
            obj = None
            with suppress(CacheNotSyncedError, NotOwnedError, TypeError, ValueError):  # a late watch, or another kind
                obj = informer.lister.get(request, allow_stale=True)
            if obj is not None and self._annotation in obj.metadata.annotations:
                return True
        return False

    def change_in(self, event: Notification[T], states: Sequence[T], request: K) -> Literal["begins", "ends"] | None:
        """Return whether the pause of an object begins or ends with an event, which has these states."""
        was_paused = not isinstance(event, Added) and self._annotation in states[0].metadata.annotations
        if not isinstance(event, Deleted) and self._annotation in states[-1].metadata.annotations:
            return None if was_paused else "begins"
        is_over = was_paused or (request in self.parked and not self._is_annotated(request))
        return "ends" if is_over else None

    def end(self, request: K) -> None:
        """Continue with a request whose object is no longer annotated, or is deleted."""
        if request in self.parked:
            self.parked.remove(request)
            logger.info("controller %s: %s is no longer paused", self._name, one_line(str(request)))
            self._queue.unpark(request)


@final
@attrs.define(eq=False)
class Pace(Generic[K]):
    """The early requests of one run of a controller."""

    _queue: RateLimitingQueue[K]
    _interval: float
    _resting: OrderedDict[K, float] = attrs.field(factory=OrderedDict, init=False)
    """When each resting request will have rested, earliest first."""
    _parked: set[K] = attrs.field(factory=set, init=False)
    _woken: trio.Event = attrs.field(factory=trio.Event, init=False)

    def is_early(self, request: K) -> bool:
        """Park a request and return True if it is resting; otherwise, its call begins, and it rests from now on."""
        self._wake()
        if request in self._resting:
            self._queue.park(request)
            self._parked.add(request)
            self._woken.set()
            return True
        self._resting[request] = trio.current_time() + self._interval
        return False

    def _wake(self) -> None:
        now = trio.current_time()
        while self._resting and next(iter(self._resting.values())) <= now:
            request, _ = self._resting.popitem(last=False)
            if request in self._parked:
                self._parked.remove(request)
                self._queue.unpark(request)

    async def run(self) -> None:
        """Add the early requests to the queue when they have rested."""
        while True:
            if self._parked:
                await trio.sleep_until(next(iter(self._resting.values())))
                self._wake()
            else:
                self._woken = trio.Event()
                await self._woken.wait()


async def ensure_paused_condition(api: Api[T] | Client, obj: T, paused_by: str) -> T:
    """Write the condition ``Paused``, which says whether an object is paused, unless the object already has it.

    Call this function in ``on_paused``, and in ``reconcile``, which begins after the pause.

    Args:
        api: The client, or an API for the object's kind, which must have ``status.conditions``.
        obj: The object, for example from a lister.
        paused_by: The annotation that pauses the object.

    Raises:
        ConflictError: Another client has changed the object.
        NotFoundError: The object no longer exists.
    """
    status, reason = (True, "Paused") if paused_by in obj.metadata.annotations else (False, "NotPaused")
    old = (to_dict(obj).get("status") or {}).get("conditions") or []
    conditions = [to_dict(each) for each in set_condition(old, type="Paused", status=status, reason=reason)]
    if conditions == old:
        await trio.lowlevel.checkpoint()
        return obj
    change = {"metadata": {"resourceVersion": obj.resource_version}, "status": {"conditions": conditions}}
    return await api_of(api, obj).patch(obj, change, subresource="status")
