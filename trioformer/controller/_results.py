"""The reconcile function, its results and its errors."""

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
    """Returned by a successful reconcile that must be repeated after a delay.

    Source: controller-runtime ``pkg/reconcile``, ``Result``.

    Raises:
        ValueError: The delay is negative, infinite, or not a number.
    """

    after: float = attrs.field(validator=_check_delay)
    """The delay in seconds; 0 repeats as soon as a worker is free.  An event adds the request earlier."""


Reconcile: TypeAlias = Callable[[K], Awaitable[RequeueAfter | None]]
"""Receives an object's name, and brings its actual state closer to the desired state."""

ReconcileResult: TypeAlias = Literal["success", "requeue_after", "error", "cancelled"]
"""The result of a reconcile; the first three are labels of controller-runtime's ``reconcile_total``."""


class TerminalError(Exception):
    """Raised by a reconcile to fail without a retry.

    The next event of the object adds the request again.
    An ``ExceptionGroup`` is terminal if all its errors are.

    Source: controller-runtime ``pkg/reconcile``, ``TerminalError``.
    """


@final
class RetryAfter(Exception):  # noqa: N818  # not an error
    """Raised by a reconcile to repeat it after a delay, without a failure.

    The effect is the same as returning :class:`RequeueAfter`: it is logged at level DEBUG, the request's failures are
    forgotten, and it does not count for ``max_retries``.
    An ``ExceptionGroup`` that contains only this error, for example from a nursery, has the shortest of its delays.

    Source: controller-runtime ``pkg/reconcile``, ``Result.RequeueAfter``; kopf's ``TemporaryError``.

    Args:
        after: The delay in seconds; 0 repeats as soon as a worker is free.  An event adds the request earlier.
        reason: The reason, for the log.

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
    """A reconcile was cancelled at the controller's ``reconcile_deadline``."""


def without_cancelled(error: BaseException) -> BaseException | None:
    """Return an exception without its cancellations, or None."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error


def requeue_in(error: Exception) -> RequeueAfter | None:
    """Return the delay of a :class:`RetryAfter`; None for another error."""
    if isinstance(error, ExceptionGroup):
        delays = [requeue_in(each) for each in error.exceptions]
        known = [each for each in delays if each is not None]
        return min(known, key=lambda each: each.after) if len(known) == len(delays) else None
    return RequeueAfter(error.after) if isinstance(error, RetryAfter) else None


def is_terminal(error: Exception) -> bool:
    """Return whether an error is terminal."""
    if isinstance(error, ExceptionGroup):
        return all(is_terminal(each) for each in error.exceptions)
    return isinstance(error, TerminalError)
