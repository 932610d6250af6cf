"""What a reconcile says when it ends, beside plain return and plain errors."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, final

import attrs
import trio

from ._request import Request


def _check_delay(_: object, __: object, after: float) -> None:
    if not 0 <= after < math.inf:
        raise ValueError(f"the delay must be a finite number of seconds, 0 or more, not {after}")


@final
@attrs.frozen
class RequeueAfter:
    """Returned by a reconcile that succeeded and wants to look again.

    Source: controller-runtime ``pkg/reconcile``, ``Result``.

    Raises:
        ValueError: The delay is negative, infinite, or not a number.
    """

    after: float = attrs.field(validator=_check_delay)
    """In how many seconds; 0 is as soon as a worker is free.  An event brings the request earlier."""


Reconcile: TypeAlias = Callable[[Request], Awaitable[RequeueAfter | None]]
"""Brings the world closer to what an object says; is given the object's name and reads the rest."""

ReconcileResult: TypeAlias = Literal["success", "requeue_after", "error", "cancelled"]
"""How a reconcile ended; the first three are the labels of controller-runtime's ``reconcile_total``."""


class TerminalError(Exception):
    """Raised by a reconcile that would fail again: it is logged, and the request is not tried again.

    The next event about the object brings it back.
    When it comes in an ``ExceptionGroup``, all errors in there must be terminal.

    Source: controller-runtime ``pkg/reconcile``, ``TerminalError``.
    """


class ReconcileDeadlineError(trio.TooSlowError):
    """The failure of a reconcile that was cancelled at its controller's ``reconcile_deadline``."""


def without_cancelled(error: BaseException) -> BaseException | None:
    """What an exception is about beside cancellation; None when it is about nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error


def is_terminal(error: Exception) -> bool:
    """Whether trying again is of no use."""
    if isinstance(error, ExceptionGroup):
        return all(is_terminal(each) for each in error.exceptions)
    return isinstance(error, TerminalError)
