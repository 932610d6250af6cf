"""The entry point of the manager: :func:`run_controllers`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from .._util import open_serving_nursery
from ..cache import SharedInformerFactory
from ..client import Client
from ..client._internal import open_separate_client
from ..leaderelection import LeaderElector
from ._enabled import check_controller_name, check_known, enabled_controllers
from ._health import HealthCheck, logger
from ._http import Endpoints, listen, serve, tls_context, warn_of_readable_tokens
from ._http_options import HTTPOptions
from ._initializers import ControllerInitializer, LeaderElection, ManagerContext
from ._managed import ManagedController
from ._run import ManagerRun

if TYPE_CHECKING:
    from ..metrics import Metrics


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
    metrics: Metrics | None = None,
    factory: SharedInformerFactory | None = None,
    stop: trio.Event | None = None,
    shutdown_grace: float = 30.0,
    task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run named controllers until stopped.

    It starts HTTP, the factory, the event recorders, the election, and the controllers one by one, in this order, and
    stops them in reverse order.

    ::

        async def start_pods(context: ManagerContext) -> Controller:
            controller = Controller(context.name, reconcile, observer=context.controller_observer())
            controller.watch(context.factory.informer(Pod))
            return controller

        await run_controllers(client, {"pods": start_pods}, http="127.0.0.1:8080", stop=stop)

    Each controller is logged as started, skipped, disabled, or failed.
    A controller that has not started its work, for example because its caches are not synced, does not delay the next
    one.  An error of an initializer, a controller or one of the factory's informers ends the manager.
    If a controller returns without being stopped, the others continue.

    Source: controller-runtime ``pkg/manager/internal.go`` for the order; kube-controller-manager
    (``app/controllermanager.go``) for the initializers, the list, the interval and the health checks.

    Args:
        client: The client; it must stay open until this has returned.
        initializers: Functions that create the controllers, by controller name, in the order in which they start.
        enabled: Which controllers to run, such as ``"*,-foo"``; see :func:`enabled_controllers`.
        disabled_by_default: Names of controllers that ``*`` does not enable.
        always: Names of controllers that run on each replica, even if it does not lead, such as one that serves
            requests from the caches.
        start_interval: Seconds to wait before each start, multiplied by a random factor between 1 and 2, so that not
            all controllers list at the same time.
        http: The ``host:port`` for ``/healthz``, ``/readyz`` and, with metrics, ``/metrics``; ``:port`` for all
            interfaces, and port 0 for a free one.  :class:`HTTPOptions` adds TLS and authentication.  None for no
            server.
        checks: Further checks of ``/readyz`` by name, for example of a remote system.  Each is a plain function that
            returns the reason of a failure, or an empty string; an exception is also a failure.
        live_checks: Further checks of ``/healthz``.  The kubelet restarts the pod if one fails.
        leader_election: Run the controllers only while this process holds the Lease.
        warm_up: Call the initializers before the lease is acquired, so that the caches of a replica that waits are
            filled, and its controllers start at once when it leads.  Initializers must not write then.
        metrics: Measures the factory, the election and each :class:`~trioformer.controller.Controller` until this
            returns; a factory or controller that is registered before stays registered.
        factory: The shared informers, which are run here; None makes a factory.  Informers that were requested before
            are also synced while a replica waits for the lease.
        stop: Set it to shut down gracefully: waiting for a lease or a cache ends immediately, and controllers finish
            the reconciles that are running.
        shutdown_grace: Seconds after which controllers that are still running are cancelled.
        task_status: Receives the URL of ``http``, or None, when all controllers have started their work, or with leader
            election, when this process is a candidate; or when it is stopped before.

    Raises:
        ValueError: A controller name is unknown or not valid; ``http`` is not ``host:port``; a number is negative; the
            election is not valid; ``metrics`` has another factory or election of the same name.
        ConfigError: The certificate or the key of ``http`` cannot be read or is not valid.
        ListenError: The address cannot be listened on.
        RuntimeError: The factory is already running.
        ExceptionGroup: Of `LeadershipLostError`, when the lease could not be kept: the controllers were cancelled
            immediately, and have ended; of the exceptions of initializers, controllers and informers, with notes that
            name them; of ``ValueError``, if two controllers have the same name.

    Cancellation:
        Cancels everything immediately, except the lease: it is released when the controllers have ended.

    Ownership:
        It owns all tasks, and they have ended when it returns.
    """
    names = enabled_controllers(initializers, enabled, disabled_by_default=disabled_by_default)
    check_known(always, initializers, "always")
    checks, live_checks = checks or {}, live_checks or {}
    for name in (*checks, *live_checks):
        check_controller_name(name, "name of a check")
        if name in initializers:
            raise ValueError(f"{name!r} is not a valid name of a check: a controller has it")
    factory = SharedInformerFactory(client) if factory is None else factory
    url: str | None = None
    has_started = False

    def started() -> None:
        nonlocal has_started
        if not has_started:
            has_started = True
            task_status.started(url)

    def managed(name: str) -> ManagedController:
        context = ManagerContext(client=client, factory=factory, name=name, metrics=metrics)
        return ManagedController(name, initializers[name], context, is_always=name in always)

    async with _open_elector(client, leader_election) as elector:
        run = ManagerRun(
            client=client,
            factory=factory,
            controllers=[managed(name) for name in names],
            start_interval=start_interval,
            lease="" if leader_election is None else leader_election.name,
            elector=elector,
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
        if http is None:
            await run.run()
        else:
            options = http if isinstance(http, HTTPOptions) else HTTPOptions(http)
            tls = tls_context(options)
            listener = await listen(options.bind)
            endpoints = Endpoints({"/healthz": run.healthz, "/readyz": run.readyz}, metrics, options)
            async with open_serving_nursery() as nursery:
                url = await nursery.start(partial(serve, endpoints, listener, tls=tls))
                logger.info("serving %s", url)
                warn_of_readable_tokens(options, listener)
                await run.run()
    started()


@asynccontextmanager
async def _open_elector(client: Client, election: LeaderElection | None) -> AsyncGenerator[LeaderElector | None, None]:
    """Make the elector, and open a separate client if none was given."""
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
