"""The reconcile function, its results, and the errors that it may raise."""

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
    """Returned by a reconcile that succeeded and is to be called again after a delay.

    Source: controller-runtime ``pkg/reconcile``, ``Result``.

    Raises:
        ValueError: The delay is negative, infinite, or not a number.
    """

    after: float = attrs.field(validator=_check_delay)
    """The delay, seconds; 0 for as soon as a worker is free.  An event adds the request earlier."""


Reconcile: TypeAlias = Callable[[K], Awaitable[RequeueAfter | None]]
"""Brings the actual state of an object closer to the desired one; receives the object's name, and reads both states."""

ReconcileResult: TypeAlias = Literal["success", "requeue_after", "error", "cancelled"]
"""The result of a reconcile; the first three are labels of controller-runtime's ``reconcile_total``."""


class TerminalError(Exception):
    """Raised by a reconcile that would fail again: the error is logged, and the request is not retried.

    The next event of the object adds the request again.
    An ``ExceptionGroup`` is terminal if all errors in it are.

    Source: controller-runtime ``pkg/reconcile``, ``TerminalError``.
    """


@final
class RetryAfter(Exception):  # noqa: N818  # it is a request and not an error
    """Raised by a reconcile that has to wait: the request is added again after a delay, and nothing has failed.

    It has the effect of returning :class:`RequeueAfter` from wherever the reconcile is: nothing is logged above the
    level DEBUG, the failures of the request are forgotten, and it does not count for ``max_retries``.
    An ``ExceptionGroup`` of nothing else, such as that of a nursery, has the shortest of its delays.

    Source: controller-runtime ``pkg/reconcile``, ``Result.RequeueAfter``, which a reconcile can only return; kopf
    raises a ``TemporaryError``.

    Args:
        after: The delay, seconds; 0 for as soon as a worker is free.  An event adds the request earlier.
        reason: What the reconcile waits for, for the log.

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
    """The failure of a reconcile that was cancelled at its controller's ``reconcile_deadline``."""


def without_cancelled(error: BaseException) -> BaseException | None:
    """Return an exception without its cancellations; None when there is nothing else in it."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error


def requeue_in(error: Exception) -> RequeueAfter | None:
    """Return the delay that a reconcile asked for by raising; None if it has failed."""
    if isinstance(error, ExceptionGroup):
        delays = [requeue_in(each) for each in error.exceptions]
        known = [each for each in delays if each is not None]
        return min(known, key=lambda each: each.after) if len(known) == len(delays) else None
    return RequeueAfter(error.after) if isinstance(error, RetryAfter) else None


def is_terminal(error: Exception) -> bool:
    """Whether a retry is useless."""
    if isinstance(error, ExceptionGroup):
        return all(is_terminal(each) for each in error.exceptions)
    return isinstance(error, TerminalError)
