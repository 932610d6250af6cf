"""The options of a controller."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, final

import attrs
from attrs import validators

from ..workqueue import QueueObserver, RateLimiter
from ._request import K
from ._statistics import ControllerObserver

DroppedHandler: TypeAlias = Callable[[K, Exception], Awaitable[None]]
"""An async function that is called with a dropped request and its last error."""


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
    on_dropped: DroppedHandler[K] | None = None
    """An async function that is called with each dropped request and its last error.  An exception from this function
    ends the run."""
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
