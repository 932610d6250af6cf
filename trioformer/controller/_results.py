"""The results and exceptions from ``reconcile``."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, final

import attrs
import trio

from ._request import K


def _check_delay(_: object, __: object, after: float) -> None:
    if not 0 <= after < math.inf:
        raise ValueError(f"the delay must be a finite number of seconds, at least 0, not {after}")


@final
@attrs.frozen
class RequeueAfter:
    """A result of ``reconcile`` that requests another call after a delay.

    Source: controller-runtime ``pkg/reconcile``, ``Result``.

    Raises:
        ValueError: The delay is negative, infinite, or not a number.
    """

    after: float = attrs.field(validator=_check_delay)
    """The delay in seconds.  With 0, the request is processed as soon as a worker is free.  An event may add the
    request earlier."""
    priority: int | None = attrs.field(default=None, kw_only=True)
    """The priority of the request.  The default, None, keeps the priority of this call."""


Reconcile: TypeAlias = Callable[[K], Awaitable[RequeueAfter | None]]
"""An async function that receives a request, and moves the actual state of the object closer to the desired state."""

ReconcileResult: TypeAlias = Literal["success", "requeue_after", "error", "cancelled"]
"""The result of a call to ``reconcile``.  The first three values are labels of controller-runtime's
``reconcile_total``."""

NextStep: TypeAlias = Literal["retry", "dropped", "terminal"]
"""What happens to a request after a failure; the last two mean that only an event adds the request again."""


class TerminalError(Exception):
    """An exception that ``reconcile`` raises if the request must not be retried.

    The request is added again by the next event of the object. An ``ExceptionGroup`` is terminal if all of its
    exceptions are terminal.

    Source: controller-runtime ``pkg/reconcile``, ``TerminalError``.
    """


@final
class RetryAfter(Exception):  # noqa: N818  # not an error
    """An exception that ``reconcile`` raises to request another call after a delay; it does not count as a failure.

    Raising it has the same effect as returning :class:`RequeueAfter`: earlier failures of the request are forgotten,
    and ``max_retries`` is not affected.  The exception is logged at level DEBUG. For an
    ``ExceptionGroup`` that
    contains only exceptions of this class, for example from a nursery, the shortest delay is used.

    Source: controller-runtime ``pkg/reconcile``, ``Result.RequeueAfter``; kopf's ``TemporaryError``.

    Args:
        after: The delay in seconds.  With 0, the request is processed as soon as a worker is free.  An event may add
            the request earlier.
        reason: The reason for the delay, for the log.

    Raises:
        ValueError: The delay is negative, infinite, or not a number.
    """

    def __init__(self, after: float, reason: str = "") -> None:
        _check_delay(None, None, after)
        super().__init__(after, reason)  # both, so that it can be pickled
        self.after: float = after

    def __str__(self) -> str:
        return self.args[1] or f"again after {self.after:g} s"


class ReconcileDeadlineError(trio.TooSlowError):
    """A call to ``reconcile`` was cancelled at the controller's ``reconcile_deadline``."""


def without_cancelled(error: BaseException) -> BaseException | None:
    """Return an exception without the ``trio.Cancelled`` exceptions in it, or None if nothing else is left."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error


def requeue_in(error: Exception) -> RequeueAfter | None:
    """Return the delay that a :class:`RetryAfter` requests, or None for other exceptions."""
    if isinstance(error, ExceptionGroup):
        delays = [requeue_in(each) for each in error.exceptions]
        known = [each for each in delays if each is not None]
        return min(known, key=lambda each: each.after) if len(known) == len(delays) else None
    return RequeueAfter(error.after) if isinstance(error, RetryAfter) else None


def is_terminal(error: Exception) -> bool:
    """Return whether an exception is a :class:`TerminalError` or a group of them."""
    if isinstance(error, ExceptionGroup):
        return all(is_terminal(each) for each in error.exceptions)
    return isinstance(error, TerminalError)
