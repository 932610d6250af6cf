"""The entry point of the manager: :func:`run_controllers`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from .._listeners import listen
from .._suggestions import describe
from .._surroundings import as_operator, is_simulated
from .._util import open_serving_nursery
from ..cache import SharedInformerFactory
from ..cache._internal import undivided
from ..client import Client
from ..client._internal import open_separate_client
from ..controller import RetryAfter
from ..leaderelection import LeaderElector
from ._enabled import check_controller_name, check_known, enabled_controllers
from ._health import HealthCheck, logger
from ._http import Endpoints, serve, tls_contexts, warn_of_readable_tokens
from ._http_options import HTTPOptions
from ._initializers import ControllerInitializer, LeaderElection, ManagerContext, Runnable
from ._managed import ManagedController
from ._run import ManagerRun

if TYPE_CHECKING:
    from ..metrics import Metrics
    from ..sharding import Shares
    from ..sharding._internal import OpenShares
    from ..webhooks import WebhookServer

WEBHOOKS: Final = "webhooks"
"""The name of the readiness check of the webhooks, and of the controller that rotates their certificate."""


async def run_controllers(
    client: Client,
    initializers: Mapping[str, ControllerInitializer],
    *,
    enabled: str = "*",
    disabled_by_default: Collection[str] = (),
    always: Collection[str] = (),
    start_interval: float = 0.0,
    http: str | HTTPOptions | None = None,
    checks: Mapping[str, HealthCheck] | None = None,
    live_checks: Mapping[str, HealthCheck] | None = None,
    leader_election: LeaderElection | None = None,
    warm_up: bool = False,
    shares: Shares | None = None,
    metrics: Metrics | None = None,
    webhooks: WebhookServer | None = None,
    factory: SharedInformerFactory | None = None,
    stop: trio.Event | None = None,
    shutdown_grace: float = 30.0,
    task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run controllers until they are stopped or cancelled.

    The manager starts the HTTP server, the factory, the event recorders, the leader election and the controllers, in
    this order.  The controllers are started one after another.  Everything is stopped in reverse order.

    ::

        async def start_pods(context: ManagerContext) -> Controller:
            controller = Controller(context.name, reconcile, observer=context.controller_observer())
            controller.watch(context.factory.informer(Pod))
            return controller

        await run_controllers(client, {"pods": start_pods}, http="127.0.0.1:8080", stop=stop)

    For each controller, the log says whether it was started, was skipped, is disabled, or has failed. Controllers do
    not wait for the previous controller to start its work.
    The manager ends if an initializer, a controller or one of the factory's informers raises an exception. If a
    controller returns without being stopped, the other controllers continue.

    Source: controller-runtime ``pkg/manager/internal.go`` for the order, and kube-controller-manager
        (``app/controllermanager.go``) for everything else.

    Args:
        client: The client that all controllers share.  The client must stay open until this function returns.
        initializers: A mapping of controller names to functions that create the controllers.  The controllers start in
            the order of the mapping.
        enabled: A list of the controllers to run, such as ``"*,-foo"``.  ``foo`` enables the controller ``foo``, and
            ``-foo`` disables it; the first of these items decides.  ``*`` enables all other controllers, except those
            in ``disabled_by_default``.
        disabled_by_default: The names of controllers that ``*`` does not enable.
        always: The names of controllers that run on each replica, not only on the leader, for example because they
            serve requests from the caches.
        start_interval: The minimum time to wait before each controller starts, in seconds.  The actual time is random,
            up to twice as long, so that not all controllers send list requests at the same time.
        http: The address of the HTTP server, as ``host:port``.  The server serves ``/healthz``, ``/readyz`` and,
            with ``metrics``, ``/metrics``.  Use ``:port`` to listen on all interfaces, port 0 to listen on a free
            port, and :class:`HTTPOptions` for TLS and authentication.  The default, None, starts no server.
        checks: A mapping of names to additional checks for ``/readyz``, for example a check of a remote system.  A
            check is a synchronous function that returns the reason for a failure, or an empty string.  An exception is
            also a failure.
        live_checks: A mapping of names to additional checks for ``/healthz``.  If ``/healthz`` is the liveness probe,
            the kubelet restarts the container after a failure.
        leader_election: The options for a leader election.  If this argument is given, the controllers run only while
            this process holds the Lease.
        warm_up: Whether to call the initializers before the lease is acquired.  A replica that is waiting for the lease
            then fills its caches, and its controllers start immediately when it becomes the leader.  With ``warm_up``,
            initializers must not write to the API server.
        shares: How the objects of the controllers are divided between the replicas.  The controllers run on each
            replica, and reconcile the objects in the ranges that the replica owns.  With ``leader_election``, only the
            controllers in ``always`` may reconcile divided kinds.  ``/readyz`` has a check named ``shares``.
        metrics: The metrics for the factory, the election and each :class:`~trioformer.controller.Controller`, which
            are measured until this function returns.  A factory or controller that was registered earlier stays
            registered.
        webhooks: The webhooks, which each replica serves until it is stopped, even if it is not the leader.  The
            server starts before the factory, because lists may need a conversion.  ``/readyz`` has a check named
            ``webhooks``.
        factory: The factory of shared informers, which this function runs.  The default, None, creates a factory.
            Informers that were requested earlier are also synced while a replica waits for the lease.  With
            ``shares``, it must not have informers.
        stop: An event that shuts the manager down gracefully when it is set.  The manager then stops waiting for the
            lease or for caches, and controllers finish their running calls to ``reconcile``.
        shutdown_grace: How long controllers and calls of webhooks may take to shut down gracefully before they are
            cancelled, in seconds.
        task_status: Used by ``nursery.start()``, which returns the URL of the HTTP server, or None, when all
            controllers have started their work.  With leader election, ``nursery.start()`` returns when this process
            has become a candidate.  ``nursery.start()`` also returns if the manager is stopped earlier.

    Raises:
        ValueError: A controller name is unknown or not valid, ``http`` is not of the form ``host:port``, a number is
            negative, the leader election is not valid, or ``metrics`` already has a factory or an election with the
            same name.
        TypeError: ``webhooks`` is not a WebhookServer.
        ConfigError: The certificate or the key of ``http`` or ``webhooks`` cannot be read or is not valid.
        ListenError: A server cannot listen on the address of ``http`` or ``webhooks``.
        RuntimeError: The factory is already running, or has informers although ``shares`` is given.
        ExceptionGroup: An initializer, a controller or an informer raised an exception.  A note names the component
            that failed.  The
            group contains a `LeadershipLostError` if the lease was lost, in which case all controllers were cancelled
            immediately.  The group contains a ``ValueError`` if two controllers have the same name.

    Cancellation:
        Everything is cancelled immediately.  The lease is released when the controllers have ended.

    Ownership:
        All tasks of the manager have ended when this function returns.
    """
    names = enabled_controllers(initializers, enabled, disabled_by_default=disabled_by_default)
    check_known(always, initializers, "always")
    checks, live_checks = checks or {}, live_checks or {}
    if webhooks is not None:
        if not hasattr(webhooks, "not_ready_reason"):
            raise TypeError(f"webhooks= requires a WebhookServer, not {describe(webhooks)}")
        if WEBHOOKS in checks or WEBHOOKS in initializers:
            raise ValueError(f"{WEBHOOKS!r} is the check of webhooks=; rename your check or controller")
        checks = {WEBHOOKS: webhooks.not_ready_reason, **checks}
    for name in (*checks, *live_checks):
        check_controller_name(name, "name for a check")
        if name in initializers:
            raise ValueError(f"{name!r} is not a valid name for a check: a controller has this name")
    if webhooks is not None and webhooks.service is not None and not is_simulated():
        initializers = {**initializers, WEBHOOKS: partial(_start_rotation, webhooks)}
        names = (*names, WEBHOOKS)  # even if enabled= does not name it
    factory = SharedInformerFactory(client) if factory is None else factory
    url: str | None = None
    has_started = False

    def started() -> None:
        nonlocal has_started
        if not has_started:
            has_started = True
            task_status.started(url)

    async with (
        _open_elector(client, leader_election) as elector,
        _prepare_shares(client, shares, factory, shutdown_grace) as opened,
    ):

        def managed(name: str) -> ManagedController:
            context = ManagerContext(client=client, factory=factory, name=name, metrics=metrics, shares=opened)
            return ManagedController(name, initializers[name], context, is_always=name in always)

        run = ManagerRun(
            client=client,
            factory=factory,
            controllers=[managed(name) for name in names],
            start_interval=start_interval,
            lease="" if leader_election is None else leader_election.name,
            elector=elector,
            shares=opened,
            metrics=metrics,
            stop=trio.Event() if stop is None else stop,
            shutdown_grace=shutdown_grace,
            checks=checks,
            live_checks=live_checks,
            warm_up=warm_up,
            on_started=started,
        )
        for name in initializers:
            if name not in names:
                logger.info("controller %s: disabled", name)
        with as_operator():
            async with _serving(http, run, metrics) as url, _serving_webhooks(webhooks, run):
                await run.run()
    started()


@asynccontextmanager
async def _serving(
    http: str | HTTPOptions | None, run: ManagerRun, metrics: Metrics | None
) -> AsyncGenerator[str | None, None]:
    """Serve health and metrics during the block, and yield the URL."""
    if http is None or is_simulated():
        yield None
        return
    options = http if isinstance(http, HTTPOptions) else HTTPOptions(http)
    tls = tls_contexts(options)
    listener = await listen(options.bind)
    endpoints = Endpoints({"/healthz": run.healthz, "/readyz": run.readyz}, metrics, options, run.journals)
    async with open_serving_nursery() as nursery:
        url: str = await nursery.start(partial(serve, endpoints, listener, tls=tls))
        logger.info("serving %s", url)
        warn_of_readable_tokens(options, listener)
        yield url


@asynccontextmanager
async def _serving_webhooks(server: WebhookServer | None, run: ManagerRun) -> AsyncGenerator[None, None]:
    """Serve webhooks during the block.  After the block, ``stop`` is set, and the server ends by itself."""
    if server is None or is_simulated():
        yield
        return
    ended = trio.Event()

    async def serve_until_stopped(*, task_status: trio.TaskStatus[str]) -> None:
        await server.run(run.client, stop=run.stop, shutdown_grace=run.shutdown_grace, task_status=task_status)
        ended.set()

    async with open_serving_nursery() as nursery:
        logger.info("serving webhooks on %s", await nursery.start(serve_until_stopped))
        yield
        await ended.wait()


async def _start_rotation(server: WebhookServer, context: ManagerContext) -> Runnable:
    """Return the controller that makes the certificate of the webhooks and installs them; an initializer."""

    def check_leader() -> None:
        if context.leadership is not None and not context.leadership.is_held:
            raise RetryAfter(1, "another process may lead")

    with undivided(context.factory):  # it reads all objects that concern it, on the leader
        return server.rotation(context.client, context.factory, check_leader)


@asynccontextmanager
async def _prepare_shares(
    client: Client, shares: Shares | None, factory: SharedInformerFactory, grace: float
) -> AsyncGenerator[OpenShares | None, None]:
    """Divide the informers of the factory, if shares are given."""
    if shares is None:
        yield None
        return
    from ..sharding._internal import prepare_shares  # noqa: PLC0415  # few programs need it

    async with prepare_shares(client, shares, factory, grace) as opened:
        yield opened


@asynccontextmanager
async def _open_elector(client: Client, election: LeaderElection | None) -> AsyncGenerator[LeaderElector | None, None]:
    """Create the elector, and open a separate client if none was given."""
    async with AsyncExitStack() as stack:
        elector: LeaderElector | None = None
        if election is not None:
            own = election.client
            if own is None:
                own = await stack.enter_async_context(open_separate_client(client, purpose="leader-election"))
            elector = LeaderElector(
                own,
                name=election.name,
                namespace=election.namespace,
                identity=election.identity,
                options=election.options,
            )
        yield elector
