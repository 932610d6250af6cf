"""Many controllers in one process, behind one door: :func:`run_controllers`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import trio

from ..cache import SharedInformerFactory
from ..client import Client
from ..leaderelection import LeaderElector
from ._enabled import enabled_controllers
from ._health import logger
from ._initializers import ControllerInitializer, LeaderElection
from ._managed import ManagedController
from ._run import ManagerRun

if TYPE_CHECKING:
    from ..metrics import Metrics


async def run_controllers(
    client: Client,
    starters: Mapping[str, ControllerInitializer],
    *,
    enabled: str = "*",
    disabled_by_default: Collection[str] = (),
    start_interval: float = 0.0,
    http: str | None = None,
    leader_election: LeaderElection | None = None,
    metrics: Metrics | None = None,
    factory: SharedInformerFactory | None = None,
    stop: trio.Event | None = None,
    shutdown_grace: float = 30.0,
    task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run named controllers until told to stop.

    What begins, in this order: HTTP, the factory, leadership, the controllers one by one.
    Each ends before what stands before it in this list.

    ::

        async def start_pods(context: ManagerContext) -> Controller:
            controller = Controller(context.name, reconcile, observer=context.controller_observer())
            controller.watch(context.factory.informer(Pod))
            return controller

        await run_controllers(client, {"pods": start_pods}, http="127.0.0.1:8080", stop=stop)

    Each controller is logged as started, skipped, disabled, or failed.
    One that takes long to begin its work, such as one whose caches are not filled, does not keep the next from
    starting; one that cannot be made, or fails, ends all, and so does one of the factory's informers.
    One that ends by itself leaves the others alone.

    Source: controller-runtime ``pkg/manager/internal.go`` for the order; kube-controller-manager
    (``app/controllermanager.go``) for the starters, the list, the interval and the health of each.

    Args:
        client: The connection; it must stay open until this has returned.
        starters: What makes the controllers, by their names, in the order in which they start.
        enabled: Which of them, such as ``"*,-foo"``; see :func:`enabled_controllers`.
        disabled_by_default: Names of those that ``*`` leaves off.
        start_interval: Seconds before each start, and at random up to as many again, so that not all list at once.
        http: ``host:port`` to serve ``/healthz``, ``/readyz`` and, with metrics, ``/metrics`` on; port 0 is any free
            one; None serves nothing.
        leader_election: Run the controllers only while a Lease is held.
        metrics: What measures the factory, the election and each :class:`~trioformer.controller.Controller`, until the
            end; a factory or controller that it measures already is left to whoever began that.
        factory: The informers of all, which is run here; None makes one.  A replica that waits for the lease has filled
            the caches of those that were asked for before.
        stop: Set it to end in good order: waiting, as for a lease or a cache, ends at once; controllers end what they
            have begun.
        shutdown_grace: Seconds that they may take for that; then they are cancelled.
        task_status: Is given the URL of ``http``, or None, when all controllers have begun their work; with leader
            election, when this is a candidate.  Stopped before that, it has started all the same.

    Raises:
        ValueError: A name is not that of a controller; ``http`` is not ``host:port``; a number is below 0; the election
            cannot be; ``metrics`` measures another factory, or election, of the same name.
        OSError: The address cannot be listened on.
        ModuleNotFoundError: hypercorn is not installed, and ``http`` is given.
        ExceptionGroup: Of `LeadershipLostError`, when the lease could not be kept: controllers were cancelled at once,
            and have ended; of what a starter, a controller or an informer raised, with a note that names it; of
            ``ValueError``, when two controllers have one name; of ``RuntimeError``, when the factory runs already.

    Cancellation:
        Cancels everything at once.  Only the lease is kept until the controllers have ended, and then released.

    Ownership:
        All tasks are its own, and have ended when it returns.
    """
    names = enabled_controllers(starters, enabled, disabled_by_default=disabled_by_default)
    url: str | None = None
    has_started = False

    def started() -> None:
        nonlocal has_started
        if not has_started:
            has_started = True
            task_status.started(url)

    run = ManagerRun(
        client=client,
        factory=SharedInformerFactory(client) if factory is None else factory,
        members=[ManagedController(name, starters[name]) for name in names],
        start_interval=start_interval,
        lease="" if leader_election is None else leader_election.name,
        elector=None if leader_election is None else _elector(client, leader_election),
        metrics=metrics,
        stop=trio.Event() if stop is None else stop,
        shutdown_grace=shutdown_grace,
        on_started=started,
    )
    for name in starters:
        if name not in names:
            logger.info("controller %s: disabled", name)
    if http is None:
        await run.run()
    else:
        from . import _http  # noqa: PLC0415  # needs an extra

        listener = await _http.listen(http)
        pages = _http.Pages({"/healthz": run.healthz, "/readyz": run.readyz}, metrics)
        async with trio.open_nursery() as nursery:
            url = await nursery.start(_http.serve, pages, listener)
            logger.info("serving %s", url)
            await run.run()
            nursery.cancel_scope.cancel()
    started()


def _elector(client: Client, election: LeaderElection) -> LeaderElector:
    return LeaderElector(
        client if election.client is None else election.client,
        name=election.name,
        namespace=election.namespace,
        identity=election.identity,
        options=election.options,
    )
