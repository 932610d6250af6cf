"""Statistics of a controller, and the observer of its reconciles."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, final, runtime_checkable

import attrs

from ..cache._internal import HandlerStatistics
from ..workqueue._internal import QueueStatistics
from ._request import K_contra
from ._results import ReconcileResult

ControllerPhase: TypeAlias = Literal["not running", "waiting for handlers", "running", "stopping"]
"""The states of a controller."""


@final
@attrs.frozen(kw_only=True)
class ControllerStatistics:
    """The state of a controller; the counts include all its runs."""

    phase: ControllerPhase
    """The controller's state."""
    waiting_for: tuple[str, ...]
    """Descriptions of caches and handlers that the start waits for; later, of watched informers that fail."""
    workers: int
    """The maximum number of concurrent reconciles."""
    active: int
    """The number of running reconciles."""
    succeeded: int
    """Reconciles that returned None or a :class:`~trioformer.controller.RequeueAfter`."""
    requeued: int
    """Reconciles that returned a :class:`~trioformer.controller.RequeueAfter`."""
    failed: int
    """Reconciles that failed; includes the next three counts."""
    timed_out: int
    """Reconciles that were cancelled at the deadline."""
    terminal: int
    """Reconciles that raised a :class:`~trioformer.controller.TerminalError`."""
    dropped: int
    """Requests that were dropped after ``max_retries``."""
    failing: int
    """Requests that failed and will be retried."""
    queue: QueueStatistics | None
    """The queue's statistics; None while the controller is not running."""
    handlers: tuple[HandlerStatistics, ...]
    """The handlers' statistics, one for each watched informer; empty while the controller is not running."""


@runtime_checkable
class ControllerObserver(Protocol[K_contra]):
    """Receives the start and result of every reconcile, for metrics.

    An observer that also has the methods of a :class:`~trioformer.workqueue.QueueObserver` receives the events of the
    controller's queue too.

    The methods are called in the worker, so they must be quick.  They must not raise: an exception ends the run.

    These calls provide the metrics of controller-runtime (``pkg/internal/controller/metrics``) with the label
    ``controller``:

    - ``controller_runtime_active_workers``: incremented by :meth:`began`, decremented by :meth:`ended`;
    - ``controller_runtime_reconcile_total``: incremented by ``ended``, with the label ``result``;
    - ``controller_runtime_reconcile_errors_total``: incremented if ``result`` is ``"error"``;
    - ``controller_runtime_terminal_reconcile_errors_total``: incremented if ``is_terminal``;
    - ``controller_runtime_reconcile_timeouts_total``: incremented if ``has_timed_out``;
    - ``controller_runtime_reconcile_time_seconds``: a histogram of ``duration``;
    - ``controller_runtime_max_concurrent_reconciles``: the controller's ``workers``.
    """

    def began(self, request: K_contra) -> None:
        """Record the start of a reconcile."""
        ...

    def ended(
        self, request: K_contra, *, result: ReconcileResult, duration: float, is_terminal: bool, has_timed_out: bool
    ) -> None:
        """Record the end of a reconcile.

        Args:
            request: The request.
            result: The result; ``"cancelled"`` after a cancellation, or an exception that is not an ``Exception``.
            duration: Seconds.
            is_terminal: Whether the error was a :class:`~trioformer.controller.TerminalError`.
            has_timed_out: Whether the reconcile was cancelled at the reconcile deadline.
        """
        ...


@final
@attrs.define(eq=False)
class Counters:
    """The counts of a controller."""

    succeeded: int = 0
    requeued: int = 0
    failed: int = 0
    timed_out: int = 0
    terminal: int = 0
    dropped: int = 0
