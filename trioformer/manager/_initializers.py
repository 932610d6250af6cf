"""The arguments and results of controller initializers, and the options of a leader election."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final

import attrs
import trio

from ..cache import SharedInformerFactory
from ..client import Client
from ..controller import ControllerObserver
from ..events import EventRecorder
from ..leaderelection import LeaderElectionOptions, Leadership
from ..workqueue import QueueObserver

if TYPE_CHECKING:
    from ..metrics import Metrics
    from ..sharding._internal import OpenShares


class Runnable(Protocol):
    """The protocol of controllers that the manager runs; :class:`~trioformer.controller.Controller` implements it."""

    @property
    def name(self) -> str:
        """The controller's name in log messages, health checks and metrics, which must be unique within a manager."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until cancelled or stopped, and call ``task_status.started()`` when the work has started.

        If this method returns before it was stopped, the manager continues.
        If it raises an exception, the manager ends.
        """
        ...

    async def stop(self) -> None:
        """Shut down gracefully, and return after :meth:`run`. The manager cancels this call at the deadline."""
        ...


_NOT_IN_NAMES: Final = re.compile(r"[^-A-Za-z0-9_.]+")


def _recorder_of(context: ManagerContext) -> EventRecorder:
    """Return a recorder with the controller's name, after replacing characters that are not valid in an Event."""
    name = _NOT_IN_NAMES.sub("-", context.name)[:63].strip("-_.")
    return EventRecorder(context.client, controller=name or "controller")


@final
@attrs.define(kw_only=True, eq=False, on_setattr=attrs.setters.frozen)
class ManagerContext:
    """The argument of a controller initializer (``ControllerContext`` of kube-controller-manager)."""

    client: Client
    """The client that all controllers share."""
    factory: SharedInformerFactory
    """The factory of shared informers, which is running, so that requested informers start immediately."""
    name: str
    """The controller's name in the manager."""
    leadership: Leadership | None = attrs.field(default=None, on_setattr=attrs.setters.NO_OP)
    """The leadership under which the controller runs, or None without leader election.  Check ``leadership.is_held``
    before writes that only one process may make.  ``leadership.transitions`` is a fencing token. With ``warm_up``, the
    value is None when the initializer is called, and is set before the controller runs."""
    metrics: Metrics | None = None
    """The metrics of the manager, or None."""
    shares: OpenShares | None = None
    """The shares of the manager, or None.  ``shares.state`` has the own ranges and their owners."""
    recorder: EventRecorder = attrs.field(default=attrs.Factory(_recorder_of, takes_self=True))
    """An event recorder that records events in the name of the controller.

    The manager runs the recorder, which starts before the controllers.  When the controllers have ended, the recorder
    writes the remaining events for at most five seconds."""

    def controller_observer(self, workers: int = 1) -> ControllerObserver[Hashable] | None:
        """Return a controller observer for a custom :class:`Runnable`, or None if the manager has no metrics.

        A :class:`~trioformer.controller.Controller` needs no observer, because the manager measures it automatically.

        Args:
            workers: The number of workers of the controller.
        """
        return None if self.metrics is None else self.metrics.controller_observer(self.name, workers)

    def queue_observer(self) -> QueueObserver[Hashable] | None:
        """Return a queue observer for a custom :class:`Runnable`, or None if the manager has no metrics."""
        return None if self.metrics is None else self.metrics.queue_observer(self.name)


ControllerInitializer: TypeAlias = Callable[[ManagerContext], Awaitable[Runnable | None]]
"""An async function that creates a controller without running it.

If the function returns None, the manager skips the controller in this process, and logs this.
If the function raises an exception, the manager ends.
"""


@final
@attrs.frozen
class LeaderElection:
    """The options of the leader election, as in :func:`~trioformer.leaderelection.run_as_leader`."""

    name: str
    """The name of the Lease."""
    namespace: str
    """The namespace of the Lease."""
    identity: str | None = None
    """The unique identity of this process.  The default, None, generates an identity from the host name and a random
    part."""
    options: LeaderElectionOptions | None = None
    """The durations and callbacks of the election."""
    client: Client | None = None
    """The client of the election.

    The default, None, opens a separate client for the manager's cluster, without a rate limit.  So renewals of the
    lease do not wait for the requests of controllers."""
