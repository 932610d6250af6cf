"""What a controller says of itself: counts, what it waits for, and whom it tells as things happen."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, final

import attrs

from ..cache import HandlerStatistics
from ..workqueue import QueueStatistics
from ._request import Request
from ._results import ReconcileResult

ControllerPhase: TypeAlias = Literal["not running", "waiting for handlers", "running", "stopping"]
"""What a controller is doing."""


@final
@attrs.frozen(kw_only=True)
class ControllerStatistics:
    """How a controller does, at one moment; the counts are those of all its runs."""

    phase: ControllerPhase
    """What it is doing."""
    waiting_for: tuple[str, ...]
    """While it waits for its handlers: what is missing, and why, in words."""
    workers: int
    """How many reconciles may run at once."""
    active: int
    """How many are running."""
    succeeded: int
    """Reconciles that returned, nothing or a :class:`~trioformer.controller.RequeueAfter`."""
    requeued: int
    """Those of them that returned one."""
    failed: int
    """Reconciles that raised, or ran late; the next three are among them."""
    late: int
    """Those that were cancelled by the reconcile deadline."""
    terminal: int
    """Those that raised a :class:`~trioformer.controller.TerminalError`."""
    dropped: int
    """Those that were the last of as many as the controller tries."""
    failing: int
    """Requests whose last reconcile failed and that will be tried again."""
    queue: QueueStatistics | None
    """How the queue does; None while the controller does not run."""
    handlers: tuple[HandlerStatistics, ...]
    """How the handlers keep up, one for each informer that is watched; empty while the controller does not run."""


class ControllerObserver(Protocol):
    """Is told of every reconcile, for metrics; how the queue does is told to a queue's own observer.

    The calls come from the worker, so they must be quick.
    They must not raise: an exception would end the controller's run.

    The metrics of controller-runtime (``pkg/internal/controller/metrics``) come from these calls, all with the label
    ``controller``:

    - ``controller_runtime_active_workers``: up with :meth:`began`, down with :meth:`ended`;
    - ``controller_runtime_reconcile_total``: one more with each ``ended``, under the label ``result``;
    - ``controller_runtime_reconcile_errors_total``: one more where ``result`` is ``"error"``;
    - ``controller_runtime_terminal_reconcile_errors_total``: one more where ``is_terminal`` says so;
    - ``controller_runtime_reconcile_timeouts_total``: one more where ``is_late`` says so;
    - ``controller_runtime_reconcile_time_seconds``: a histogram of ``lasted``;
    - ``controller_runtime_max_concurrent_reconciles``: the controller's ``workers``.
    """

    def began(self, request: Request) -> None:
        """Note that a worker begins with a request."""
        ...

    def ended(
        self, request: Request, *, result: ReconcileResult, lasted: float, is_terminal: bool, is_late: bool
    ) -> None:
        """Note that it is done.

        Args:
            request: The request.
            result: How it went; ``"cancelled"`` if it was broken off by cancellation, or by what is no ``Exception``.
            lasted: Seconds.
            is_terminal: Whether the error was a :class:`~trioformer.controller.TerminalError`.
            is_late: Whether the error was the reconcile deadline.
        """
        ...


@attrs.define(eq=False)
class Counters:
    """The counts, as they grow."""

    succeeded: int = 0
    requeued: int = 0
    failed: int = 0
    late: int = 0
    terminal: int = 0
    dropped: int = 0
