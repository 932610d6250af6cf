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
"""Called with a dropped request and its last error."""


@final
@attrs.frozen(kw_only=True)
class ControllerOptions(Generic[K]):
    """The keyword arguments of :class:`Controller`, as ``controller.options``.

    Raises:
        ValueError: A number is too small.
    """

    workers: int = attrs.field(default=1, validator=validators.ge(1))
    """The number of concurrent reconciles."""
    max_retries: int | None = attrs.field(default=None, validator=validators.optional(validators.ge(0)))
    """The number of consecutive retries before a failing request is dropped; None for no limit.

    client-go's controllers use 5.  With the default limiter, lost connections and `QuarantinedError` do not count;
    otherwise a short outage would drop every request."""
    on_dropped: DroppedHandler[K] | None = None
    """Called when a request is dropped.  Its exceptions end the run."""
    reconcile_deadline: float = attrs.field(default=math.inf, validator=validators.gt(0))
    """Seconds until a reconcile is cancelled.  This is a failure with a ``trio.TooSlowError``."""
    limiter: RateLimiter[K] | None = None
    """The delays of failed requests; a ``Retry-After`` only makes them longer.

    None creates a limiter for each run: 5 ms, doubled with every failure up to 1,000 s.  Then requests with lost
    connections are retried within half a minute, and these failures do not count for other delays."""
    observer: ControllerObserver[K] | QueueObserver[K] | None = None
    """Receives the start and result of each reconcile, the queue's events, or both, depending on its methods."""
