"""The options of a controller."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, final

import attrs
from attrs import validators

from ..workqueue import QueueObserver, RateLimiter
from ._request import K
from ._results import NextStep
from ._statistics import ControllerObserver

ErrorHandler: TypeAlias = Callable[[K, Exception, NextStep], Awaitable[None]]
"""An async function that is called with a failed request, its error, and what happens next."""
PausedHandler: TypeAlias = Callable[[K], Awaitable[object]]
"""An async function that is called with a request whose object is paused."""


@final
@attrs.frozen(kw_only=True)
class ControllerOptions(Generic[K]):
    """The options of a :class:`Controller`, which are available as ``controller.options``.

    Raises:
        ValueError: A numeric option is too small.
    """

    workers: int = attrs.field(default=1, validator=validators.ge(1))
    """The largest number of concurrent calls to ``reconcile``."""
    max_retries: int | None = attrs.field(default=None, validator=validators.optional(validators.ge(0)))
    """The number of consecutive retries before a failing request is dropped, or None for no limit.

    Controllers of client-go usually use 5.  With the default limiter, lost connections and `QuarantinedError` do not
    count, because otherwise a short outage would drop all requests."""
    on_error: ErrorHandler[K] | None = None
    """An async function that is called after each failure, with the request, the error, and what happens next:
    ``"retry"``, ``"dropped"`` (after ``max_retries``, or because the run ends) or ``"terminal"`` (after a
    :class:`TerminalError`).

    The worker waits for the function before it takes another request.  An exception from the function is only
    logged."""
    reconcile_deadline: float = attrs.field(default=math.inf, validator=validators.gt(0))
    """The time after which a call to ``reconcile`` is cancelled, in seconds.  The request then fails with a
    ``trio.TooSlowError``."""
    limiter: RateLimiter[K] | None = None
    """The rate limiter for the delays of failed requests.  A ``Retry-After`` header can only make a delay longer.

    If None, each run has its own limiter, whose delays start at 5 ms and double with each failure, up to 1,000 s.
    After a
    lost connection, requests are then retried within half a minute, and lost connections do not lengthen other
    delays."""
    observer: ControllerObserver[K] | QueueObserver[K] | None = None
    """An observer that is called for each call to ``reconcile``, for the queue's events, or for both, depending on its
    methods."""
    reads_own_writes: bool = True
    """Whether the next call for a request waits until the running caches of the same client show the writes of the
    request's earlier calls.

    The request is put aside meanwhile, for at most five minutes.  Only writes that the call and its tasks made with the
    client of the caches count.  Events and Leases do not count."""
    paused_by: str | None = None
    """The annotation that pauses an object, with any value.

    While the object has the annotation in the cache, ``reconcile`` is not called for it, even if the object is being
    deleted.  Its request is put aside.  After the annotation or the object is removed, there is one call.  The objects
    are those of each informer that is watched without ``enqueue``."""
    on_paused: PausedHandler[K] | None = None
    """An async function that is called instead of ``reconcile`` when the request of a paused object is put aside, once
    for each pause and run.  Its deadline is ``reconcile_deadline``, and an exception is handled like an exception from
    ``reconcile``."""
    min_interval: float = attrs.field(default=0.0, validator=[validators.ge(0), validators.lt(math.inf)])
    """The shortest time between the beginnings of two calls for the same request, in seconds.

    An earlier request is put aside until then, also after a failure or a :class:`RequeueAfter`."""
    resync_every: float = attrs.field(default=math.inf, validator=validators.gt(0))
    """The time after which all objects are reconciled again, in seconds, with a random deviation of up to 10 %.

    The requests have a low priority.  The objects are those of each informer that is watched without ``enqueue``.  No
    predicate is called."""

    def __attrs_post_init__(self) -> None:
        if self.on_paused is not None and not self.paused_by:
            raise ValueError("on_paused requires paused_by, the name of the annotation")
