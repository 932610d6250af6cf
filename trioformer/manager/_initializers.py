"""Arguments and results of controller initializers, and the options of an election."""

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


class Runnable(Protocol):
    """The protocol of objects that the manager runs; :class:`~trioformer.controller.Controller` implements it."""

    @property
    def name(self) -> str:
        """Name in logs, health checks and metrics; unique within a manager."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until cancelled or stopped; call ``task_status.started()`` when the work has started.

        If it returns early, the manager continues.  An exception ends the manager.
        """
        ...

    async def stop(self) -> None:
        """Shut down gracefully, and return after :meth:`run`; cancelled at the deadline."""
        ...


_NOT_IN_NAMES: Final = re.compile(r"[^-A-Za-z0-9_.]+")


def _recorder_of(context: ManagerContext) -> EventRecorder:
    """Make a recorder with the controller's name, without the characters that are not valid in an Event."""
    name = _NOT_IN_NAMES.sub("-", context.name)[:63].strip("-_.")
    return EventRecorder(context.client, controller=name or "controller")


@final
@attrs.define(kw_only=True, eq=False, on_setattr=attrs.setters.frozen)
class ManagerContext:
    """Argument of a controller initializer (``ControllerContext`` of kube-controller-manager)."""

    client: Client
    """The shared client."""
    factory: SharedInformerFactory
    """The shared informers.  The factory is running, so informers that are requested from it start immediately."""
    name: str
    """The controller's name in the manager."""
    leadership: Leadership | None = attrs.field(default=None, on_setattr=attrs.setters.NO_OP)
    """The leadership under which the controller runs, if there is an election.  Check ``leadership.is_held`` before
    writes that only one process may make; ``leadership.transitions`` is a fencing token.
    With ``warm_up`` it is None when the initializer is called, and set before the controller runs."""
    metrics: Metrics | None = None
    """The manager's metrics, if it has them."""
    recorder: EventRecorder = attrs.field(default=attrs.Factory(_recorder_of, takes_self=True))
    """Records events in the name of the controller.

    The manager runs it: it starts before the controllers.  When they have ended, it writes the remaining events for at
    most five seconds."""

    def controller_observer(self, workers: int = 1) -> ControllerObserver[Hashable] | None:
        """Return a controller observer for a :class:`Runnable` of your own; None without metrics.

        The manager measures each :class:`~trioformer.controller.Controller` by itself.

        Args:
            workers: The number of workers.
        """
        return None if self.metrics is None else self.metrics.controller_observer(self.name, workers)

    def queue_observer(self) -> QueueObserver[Hashable] | None:
        """Return a queue observer for a :class:`Runnable` of your own; None without metrics."""
        return None if self.metrics is None else self.metrics.queue_observer(self.name)


ControllerInitializer: TypeAlias = Callable[[ManagerContext], Awaitable[Runnable | None]]
"""Creates a controller without running it.

It returns None to skip the controller in this process, which the manager logs.
An exception ends the manager.
"""


@final
@attrs.frozen
class LeaderElection:
    """The election that the controllers run under; arguments of :func:`~trioformer.leaderelection.run_as_leader`."""

    name: str
    """The Lease's name."""
    namespace: str
    """The Lease's namespace."""
    identity: str | None = None
    """Identity of this process, unique to it.  None generates one from the host name and a random part."""
    options: LeaderElectionOptions | None = None
    """Durations and callbacks."""
    client: Client | None = None
    """The client of the election.

    None opens one for the manager's cluster, with its own connections and without a rate limit, so that renewals do not
    wait behind the controllers' requests."""
