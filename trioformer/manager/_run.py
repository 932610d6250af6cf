"""One run of a manager: the order in which caches, leadership and controllers start and stop.

::

    caches ─┬─ start ───────────────────────────────────────────────────────────────────────────── stop
            └─ leadership ─┬─ acquire ───────────────────────────────────────────── release ─┘
                           └─ controllers ── start one by one ── stop is set ── drained, or cancelled ─┘

Each block is nested in the one above, so none ends before the blocks that depend on it: the nesting alone defines the
order.  It is controller-runtime's (``pkg/manager/internal.go``); ``_run_controllers.py`` adds HTTP around all of it.

``stop`` cancels only what waits: for the first lists, for the lease, for an initializer or the interval between two.
Controllers are drained instead, so the block that ``stop`` cancels never contains a running controller.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, final

import attrs
import trio
from attrs import validators

from ..cache import SharedInformerFactory
from ..client import Client
from ..controller import Controller
from ..leaderelection import LeaderElector, Leadership
from ._health import HealthCheck, logger, ping
from ._initializers import ManagerContext, Runnable
from ._managed import ManagedController

if TYPE_CHECKING:
    from ..metrics import Metrics


@final
@attrs.define(eq=False, kw_only=True)
class ManagerRun:
    """State of one call of :func:`run_controllers`, whose arguments it has."""

    client: Client
    factory: SharedInformerFactory
    controllers: Sequence[ManagedController]
    start_interval: float = attrs.field(validator=validators.ge(0))
    lease: str
    """Name of the elector's Lease; empty without an election."""
    elector: LeaderElector | None
    metrics: Metrics | None
    stop: trio.Event
    shutdown_grace: float = attrs.field(validator=validators.ge(0))
    on_started: Callable[[], None]
    """Called when everything that does not depend on the leadership has started."""
    _registrations: ExitStack = attrs.field(factory=ExitStack, init=False)
    """Unregisters from the metrics what this run has registered."""
    _waiting: trio.CancelScope | None = attrs.field(default=None, init=False)

    async def run(self) -> None:
        """Run until cancelled, stopped, or failed."""
        with self._registrations:
            if self.metrics is not None:
                if not self.metrics.is_registered(self.factory):
                    self.metrics.register_factory(self.factory)
                    self._registrations.callback(self.metrics.unregister, self.factory)
                if self.elector is not None:
                    self.metrics.register_elector(self.elector, name=self.lease)
                    self._registrations.callback(self.metrics.unregister, self.elector)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_stop)
                with self._until_stopped():
                    await nursery.start(self.factory.run)
                if self.elector is None:
                    await self._run_all()
                else:
                    await self._run_elector(self.elector)
                nursery.cancel_scope.cancel()

    # --- what stop cancels --------------------------------------------------------------------------------------------

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        """Cancel the block when ``stop`` is set; at its first checkpoint if it is set already.

        Of two nested blocks only the inner one is cancelled, and after its end neither.  So the election, which
        contains the controllers, is cancelled only while no controller runs.
        """
        with trio.CancelScope() as scope:
            if self.stop.is_set():
                scope.cancel()
            self._waiting = scope
            try:
                yield
            finally:
                self._waiting = None

    async def _watch_stop(self) -> None:
        await self.stop.wait()
        logger.info("stopping")
        if self._waiting is not None:
            self._waiting.cancel()

    # --- leading ------------------------------------------------------------------------------------------------------

    async def _run_elector(self, elector: LeaderElector) -> None:
        self.on_started()
        with self._until_stopped():
            await elector.run(self._run_all)

    # --- controllers --------------------------------------------------------------------------------------------------

    async def _run_all(self, leadership: Leadership | None = None) -> None:
        async with trio.open_nursery() as nursery:
            with self._until_stopped():
                for each in self.controllers:
                    await self._start(each, leadership, nursery)
                for each in self.controllers:
                    await each.settled.wait()
                self.on_started()
                await self.stop.wait()
            await self._drain()
            nursery.cancel_scope.cancel()

    async def _start(self, managed: ManagedController, leadership: Leadership | None, nursery: trio.Nursery) -> None:
        await trio.sleep(self.start_interval * (1 + random.random()))
        managed.phase = "starting"
        logger.info("controller %s: starting", managed.name)
        try:
            context = ManagerContext(
                client=self.client,
                factory=self.factory,
                name=managed.name,
                leadership=leadership,
                metrics=self.metrics,
            )
            runnable = await managed.initialize(context)
            if runnable is not None:
                self._register(runnable, managed)
        except Exception as error:
            managed.phase = "failed"
            error.add_note(f"in the initializer of controller {managed.name}")
            logger.error("controller %s: failed to start: %r", managed.name, error)
            raise
        managed.runnable = runnable
        if runnable is None:
            managed.phase = "skipped"
            managed.settled.set()
            logger.info("controller %s: skipped", managed.name)
        else:
            managed.phase = "waiting to start"
            nursery.start_soon(managed.run, name=f"controller {managed.name}")

    def _register(self, runnable: Runnable, managed: ManagedController) -> None:
        for other in self.controllers:
            if other.runnable is not None and other.runnable.name == runnable.name:
                raise ValueError(
                    f"the initializers of {other.name} and {managed.name} both returned a controller named "
                    f"{runnable.name!r}; use different names, because logs and metrics identify controllers by name"
                )
        if self.metrics is None or not isinstance(runnable, Controller):
            return
        if not self.metrics.is_registered(runnable):
            self.metrics.register_controller(runnable)
            self._registrations.callback(self.metrics.unregister, runnable)

    async def _drain(self) -> None:
        """Stop the controllers gracefully, or return at the deadline."""
        active = [each for each in self.controllers if each.is_active]
        unfinished = {each.name for each in active}

        async def stop(managed: ManagedController) -> None:
            await managed.stop()
            unfinished.discard(managed.name)

        with trio.move_on_after(self.shutdown_grace):
            async with trio.open_nursery() as nursery:
                for each in active:
                    nursery.start_soon(stop, each)
        if unfinished:
            names = ", ".join(sorted(unfinished))
            logger.warning("controllers not stopped within %g s are cancelled: %s", self.shutdown_grace, names)

    # --- health -------------------------------------------------------------------------------------------------------

    def healthz(self) -> Mapping[str, HealthCheck]:
        """Return the checks of ``/healthz``, for a liveness probe.

        A controller passes while it is active, which is all that kube-controller-manager checks of most controllers.
        """
        checks: dict[str, HealthCheck] = {"ping": ping}
        elector = self.elector
        if elector is not None:
            checks["leaderElection"] = lambda: (
                "" if elector.is_healthy() else "the lease expired, and the controllers still run"
            )
        return checks | {each.name: ping for each in self.controllers if each.is_active}

    def readyz(self) -> Mapping[str, HealthCheck]:
        """Return the checks of ``/readyz``; a replica that waits for the lease passes them."""
        checks: dict[str, HealthCheck] = {"ping": ping, "informer-sync": self._caches, "shutdown": self._shutdown}
        return checks | {each.name: each.not_ready_reason for each in self.controllers if each.is_active}

    def _caches(self) -> str:
        # Objects in quarantine are a problem too, but not one that another replica would not have.
        informers = self.factory.informers
        return "; ".join(
            f"{key}: {words}"
            for key, words in self.factory.problems().items()
            if not (informers[key].has_synced and informers[key].is_healthy)
        )

    def _shutdown(self) -> str:
        return "the process is shutting down" if self.stop.is_set() else ""
