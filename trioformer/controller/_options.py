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
"""Called with a request that is dropped after ``max_retries``, and with its last error."""


@final
@attrs.frozen(kw_only=True)
class ControllerOptions(Generic[K]):
    """How a controller works: the keyword arguments of :class:`Controller`, which has them as ``controller.options``.

    Raises:
        ValueError: A number is too small.
    """

    workers: int = attrs.field(default=1, validator=validators.ge(1))
    """How many requests are reconciled at the same time."""
    max_retries: int | None = attrs.field(default=None, validator=validators.optional(validators.ge(0)))
    """How often in a row a failing request is retried before it is dropped; None for no limit.

    client-go's controllers use 5.  With the default limiter, lost connections and `QuarantinedError` do not count: they
    say nothing about the object, and an outage of a second would drop every request."""
    on_dropped: DroppedHandler[K] | None = None
    """Called when a request is dropped; an exception that it raises ends the run."""
    reconcile_deadline: float = attrs.field(default=math.inf, validator=validators.gt(0))
    """Seconds after which a reconcile is cancelled, which counts as a failure."""
    limiter: RateLimiter[K] | None = None
    """Decides the delays of failed requests; a ``Retry-After`` can only make them longer.

    None makes a new one for each run: 5 ms, doubled with every failure up to 1,000 s.  Then the retries of a request
    whose connection failed are at most half a minute apart, and such failures do not count for its other delays."""
    observer: ControllerObserver[K] | QueueObserver[K] | None = None
    """Receives the start and the result of each reconcile, the steps of the queue, or both, by the methods it has."""
