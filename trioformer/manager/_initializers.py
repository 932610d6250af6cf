"""What the manager is given: starters, and what they make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, final

import attrs
import trio

from ..cache import SharedInformerFactory
from ..client import Client
from ..controller import ControllerObserver, Request
from ..leaderelection import LeaderElectionOptions, Leadership
from ..workqueue import QueueObserver

if TYPE_CHECKING:
    from ..metrics import Metrics


class Runnable(Protocol):
    """What runs under the manager; a :class:`~trioformer.controller.Controller` is one."""

    @property
    def name(self) -> str:
        """For logs, health checks and metrics; unique in a manager."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Work until cancelled or stopped, and say when the work has begun.

        It may end by itself; the manager goes on.  What it raises ends the manager.
        """
        ...

    async def stop(self) -> None:
        """End the run in good order, and return when it has ended; cancelled at the deadline."""
        ...


@final
@attrs.frozen(kw_only=True)
class ManagerContext:
    """What a starter makes its controller from (the ``ControllerContext`` of kube-controller-manager)."""

    client: Client
    """The connection, which all share."""
    factory: SharedInformerFactory
    """The informers, which all share; it runs already, and what is asked of it starts at once."""
    name: str
    """The controller's name in the manager."""
    leadership: Leadership | None = None
    """The term that the controller is made for, if there is an election; ``leadership.is_held`` is to be asked before
    what must not be done twice, and ``leadership.transitions`` is a fencing token."""
    metrics: Metrics | None = None
    """Where figures go, if the manager has them."""

    def controller_observer(self, workers: int = 1) -> ControllerObserver | None:
        """Return what a controller's argument ``observer`` is to be; None without metrics.

        Args:
            workers: How many the controller has.
        """
        return None if self.metrics is None else self.metrics.controller_observer(self.name, workers)

    def queue_observer(self) -> QueueObserver[Request] | None:
        """Return what a controller's argument ``queue_observer`` is to be; None without metrics."""
        return None if self.metrics is None else self.metrics.queue_observer(self.name)


ControllerInitializer: TypeAlias = Callable[[ManagerContext], Awaitable[Runnable | None]]
"""Makes a controller, and does not run it.

None means that it is not to run here, which the log says.
An exception means that it cannot be made; it ends the manager.
"""


@final
@attrs.frozen
class LeaderElection:
    """Which Lease the controllers run under; the arguments of :func:`~trioformer.controller.run_as_leader`."""

    name: str
    """The Lease's name."""
    namespace: str
    """The Lease's namespace."""
    identity: str | None = None
    """Who this is; unique to the process.  None makes one of the host's name and a random part."""
    options: LeaderElectionOptions | None = None
    """The times, and whom to tell what."""
    client: Client | None = None
    """A connection of its own, so that renewals never wait behind the controllers' requests; None for the manager's."""
