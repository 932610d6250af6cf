"""The statistics of a controller, and the observer of its calls to ``reconcile``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias, final, runtime_checkable

import attrs

from ..cache._internal import HandlerStatistics
from ..workqueue._internal import QueueStatistics
from ._request import K_contra
from ._results import ReconcileResult

ControllerPhase: TypeAlias = Literal["not running", "waiting for handlers", "running", "stopping"]
"""The possible states of a controller."""


@final
@attrs.frozen(kw_only=True)
class ControllerStatistics:
    """Statistics about a controller; the counts include all of its runs."""

    phase: ControllerPhase
    """The current state of the controller."""
    waiting_for: tuple[str, ...]
    """Descriptions of the caches and handlers that the start waits for, or of failing informers while the controller
    is running."""
    workers: int
    """The largest number of concurrent calls to ``reconcile``."""
    active: int
    """The number of running calls to ``reconcile``."""
    succeeded: int
    """The number of calls that returned None or a :class:`~trioformer.controller.RequeueAfter`."""
    requeued: int
    """The number of calls that returned a :class:`~trioformer.controller.RequeueAfter`."""
    failed: int
    """The number of calls that failed, including the next three counts."""
    timed_out: int
    """The number of calls that were cancelled at the ``reconcile_deadline``."""
    terminal: int
    """The number of calls that raised a :class:`~trioformer.controller.TerminalError`."""
    dropped: int
    """The number of requests that were dropped after ``max_retries``."""
    stale_sync_skips: Mapping[tuple[str, str], int]
    """How often a request was put aside because a cache did not show its writes yet, by the group and the resource of
    the cache."""
    stale_syncs: Mapping[tuple[str, str], int]
    """How often a request was reconciled after five minutes although a cache did not show its writes, by the group and
    the resource of the cache."""
    failing: int
    """The number of failed requests that will be retried."""
    paused: int
    """The number of requests that wait because their objects are paused."""
    queue: QueueStatistics | None
    """The statistics of the queue, or None if the controller is not running."""
    handlers: tuple[HandlerStatistics, ...]
    """The statistics of the handler of each watched informer; empty if the controller is not running."""


@runtime_checkable
class ControllerObserver(Protocol[K_contra]):
    """An observer of the start and the result of each call to ``reconcile``, for example for metrics.

    If the observer also has the methods of a :class:`~trioformer.workqueue.QueueObserver`, it receives the events of
    the controller's queue too.

    The methods are called in the worker's task, so they must be fast.  An exception from one of these methods ends the
    controller's run.

    An observer can provide the metrics of controller-runtime (``pkg/internal/controller/metrics``), which have the
    label ``controller``:

    - ``controller_runtime_active_workers``: incremented by :meth:`began`, decremented by :meth:`ended`;
    - ``controller_runtime_reconcile_total``: incremented by ``ended``, with the label ``result``;
    - ``controller_runtime_reconcile_errors_total``: incremented if ``result`` is ``"error"``;
    - ``controller_runtime_terminal_reconcile_errors_total``: incremented if ``is_terminal``;
    - ``controller_runtime_reconcile_timeouts_total``: incremented if ``has_timed_out``;
    - ``controller_runtime_reconcile_time_seconds``: a histogram of ``duration``;
    - ``controller_runtime_max_concurrent_reconciles``: the controller's ``workers``.
    """

    def began(self, request: K_contra) -> None:
        """Record the start of a call to ``reconcile``."""
        ...

    def ended(
        self, request: K_contra, *, result: ReconcileResult, duration: float, is_terminal: bool, has_timed_out: bool
    ) -> None:
        """Record the end of a call to ``reconcile``.

        Args:
            request: The request.
            result: The result of the call.  ``"cancelled"`` means that the call was cancelled or raised a
                ``BaseException`` that is not an ``Exception``.
            duration: The duration of the call in seconds.
            is_terminal: Whether the call raised a :class:`~trioformer.controller.TerminalError`.
            has_timed_out: Whether the call was cancelled at the ``reconcile_deadline``.
        """
        ...


@final
@attrs.define(eq=False)
class Counters:
    """The counts of all runs of a controller."""

    succeeded: int = 0
    requeued: int = 0
    failed: int = 0
    timed_out: int = 0
    terminal: int = 0
    dropped: int = 0
    stale_sync_skips: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    stale_syncs: Counter[tuple[str, str]] = attrs.field(factory=Counter)
