"""One run of a manager, which starts and stops caches, leadership and controllers in the right order.

::

    caches ─┬─ start ──────────────────────────────────────────────────────────────────────────────── stop
            └─ event recorders ─┬─ start ──────────────────────────────────────────── write the rest ─┘
                                ├─ controllers of each replica ──────────── drained, or cancelled ─┘
                                └─ leadership ─┬─ acquire ────────────────────────────── release ─┘
                                               └─ controllers ── start one by one ── drained, or cancelled ─┘

Each block is nested inside the block that it depends on, so a block ends only after its dependents.  The order is the
same as in controller-runtime (``pkg/manager/internal.go``).  The HTTP server in ``_run_controllers.py`` encloses the
whole run.

The event ``stop`` cancels only blocks that wait for the first lists, the lease, an initializer, or the interval
between two controllers. Such a block never contains a running controller, because running controllers are drained
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, final

import attrs
import trio
from attrs import validators

from .._surroundings import new_generator
from .._util import open_serving_nursery
from ..cache import SharedInformerFactory
from ..client import Client
from ..controller import Controller
from ..controller._internal import is_divided
from ..events import EventRecorder
from ..leaderelection import LeaderElector, Leadership
from ._health import HealthCheck, logger, ping, run_check
from ._initializers import Runnable
from ._managed import ManagedController

if TYPE_CHECKING:
    from ..metrics import Metrics
    from ..sharding._internal import OpenShares


@final
@attrs.define(eq=False)
class Group:
    """A group of controllers that start together, either on each replica or only on the leader."""

    controllers: Sequence[ManagedController]
    waiting: trio.CancelScope | None = None
    """The cancel scope that ``stop`` cancels, or None if nothing waits."""


@final
@attrs.define(eq=False, kw_only=True)
class ManagerRun:
    """The state and the arguments of one call to :func:`run_controllers`."""

    client: Client
    factory: SharedInformerFactory
    controllers: Sequence[ManagedController]
    start_interval: float = attrs.field(validator=validators.ge(0))
    lease: str
    """The name of the Lease, or an empty string without leader election."""
    elector: LeaderElector | None
    shares: OpenShares | None
    metrics: Metrics | None
    stop: trio.Event
    shutdown_grace: float = attrs.field(validator=validators.ge(0))
    checks: Mapping[str, HealthCheck]
    """The caller's additional checks for ``/readyz``."""
    live_checks: Mapping[str, HealthCheck]
    """The caller's additional checks for ``/healthz``."""
    warm_up: bool
    """Whether initializers are called before the lease is acquired."""
    on_started: Callable[[], None]
    """A function that is called when everything that does not depend on the leadership has started."""
    _registrations: ExitStack = attrs.field(factory=ExitStack, init=False)
    """The callbacks that unregister this run's objects from the metrics."""
    _leading: Group = attrs.field(init=False)
    _always: Group = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # Without an election there is only one group, so that the controllers start in the order of the caller.
        is_apart = {each.name: self.elector is not None and each.is_always for each in self.controllers}
        self._leading = Group([each for each in self.controllers if not is_apart[each.name]])
        self._always = Group([each for each in self.controllers if is_apart[each.name]])

    async def run(self) -> None:
        """Run until the manager is cancelled, is stopped or fails."""
        with self._registrations:
            if self.metrics is not None:
                if not self.metrics.is_registered(self.factory):
                    self.metrics.register_factory(self.factory)
                    self._registrations.callback(self.metrics.unregister, self.factory)
                if self.elector is not None:
                    self.metrics.register_elector(self.elector, name=self.lease)
                    self._registrations.callback(self.metrics.unregister, self.elector)
                if self.shares is not None:
                    self.metrics.register_shares(self.shares, name=self.shares.shares.name)
                    self._registrations.callback(self.metrics.unregister, self.shares)
            async with open_serving_nursery() as nursery:
                nursery.start_soon(self._watch_stop)
                with self._until_stopped(self._leading):
                    await nursery.start(self.factory.run)
                await self._run_recorded()

    async def _run_recorded(self) -> None:
        """Run the controllers inside the event recorders, which end after the controllers, even after cancellation."""
        scopes = [trio.CancelScope(shield=True) for _ in self.controllers]

        async def record(recorder: EventRecorder, scope: trio.CancelScope) -> None:
            with scope:
                await recorder.run()

        async with open_serving_nursery() as nursery:
            for each, scope in zip(self.controllers, scopes, strict=True):
                nursery.start_soon(record, each.context.recorder, scope, name=f"events of controller {each.name}")
            try:
                await self._run_groups()
            finally:
                for scope in scopes:
                    scope.cancel()

    async def _run_groups(self) -> None:
        async with open_serving_nursery() as nursery:
            if self.shares is not None:
                nursery.start_soon(self._run_shares, self.shares)
            await self._run_both_groups()
            if self.shares is not None:
                await self.shares.ownership.leave()

    async def _run_shares(self, shares: OpenShares) -> None:
        """Own ranges when the controllers have started, so that the caches of a range are known before its lists."""
        for each in (self._leading if self.elector is None else self._always).controllers:
            await each.settled.wait()
        await shares.ownership.run()

    async def _run_both_groups(self) -> None:
        async with trio.open_nursery() as nursery:
            if self._always.controllers:
                nursery.start_soon(self._run_group, self._always)
            if self.elector is None:
                await self._run_group(self._leading)
            else:
                await self._run_elector(self.elector)

    # --- what stop cancels --------------------------------------------------------------------------------------------

    @contextmanager
    def _until_stopped(self, group: Group) -> Iterator[None]:
        """Cancel the block when ``stop`` is set, or at its first checkpoint if ``stop`` is already set.

        If two blocks of a group are nested, only the inner block can be cancelled.  After the inner block has ended,
        neither block can be cancelled.  So the leader election, which encloses the controllers, is cancelled only
        while no controller
        is running.
        """
        with trio.CancelScope() as scope:
            if self.stop.is_set():
                scope.cancel()
            group.waiting = scope
            try:
                yield
            finally:
                group.waiting = None

    async def _watch_stop(self) -> None:
        await self.stop.wait()
        logger.info("stopping")
        for group in (self._always, self._leading):
            if group.waiting is not None:
                group.waiting.cancel()

    # --- leading ------------------------------------------------------------------------------------------------------

    async def _run_elector(self, elector: LeaderElector) -> None:
        self.on_started()
        with self._until_stopped(self._leading):
            if self.warm_up:
                for each in self._leading.controllers:
                    await self._initialize(each)
            await elector.run(partial(self._run_group, self._leading))

    # --- controllers --------------------------------------------------------------------------------------------------

    async def _run_group(self, group: Group, leadership: Leadership | None = None) -> None:
        async with trio.open_nursery() as nursery:
            with self._until_stopped(group):
                for each in group.controllers:
                    each.context.leadership = leadership
                    await self._start(each, nursery)
                for each in group.controllers:
                    await each.settled.wait()
                if group is self._leading:
                    self.on_started()
                await self.stop.wait()
            await self._drain(group)
            nursery.cancel_scope.cancel()

    async def _start(self, managed: ManagedController, nursery: trio.Nursery) -> None:
        await trio.sleep(self.start_interval * (1 + new_generator().random()))
        if managed.phase == "not started":
            await self._initialize(managed)
        if managed.runnable is not None:
            managed.phase = "waiting to start"
            nursery.start_soon(managed.run, name=f"controller {managed.name}")

    async def _initialize(self, managed: ManagedController) -> None:
        managed.phase = "starting"
        try:
            runnable = await managed.initialize()
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
            managed.phase = "waiting for the lease"  # or started at once

    def _register(self, runnable: Runnable, managed: ManagedController) -> None:
        for other in self.controllers:
            if other.runnable is not None and other.runnable.name == runnable.name:
                raise ValueError(
                    f"the initializers of {other.name} and {managed.name} both returned a controller named "
                    f"{runnable.name!r}; use different names, because logs and metrics identify controllers by name"
                )
        if not isinstance(runnable, Controller):
            return
        if self.shares is not None and not managed.is_always and is_divided(runnable) == (self.elector is not None):
            if self.elector is None:
                problem = "watches no divided kind and would work on each replica; use leader_election=, or"
            else:
                problem = "would reconcile a divided kind only on the leader;"
            raise ValueError(f"controller {managed.name} {problem} add it to always=")
        if self.metrics is None:
            return
        if not self.metrics.is_registered(runnable):
            self.metrics.register_controller(runnable)
            self._registrations.callback(self.metrics.unregister, runnable)

    async def _drain(self, group: Group) -> None:
        """Stop the controllers of a group gracefully, or return at the deadline."""
        active = [each for each in group.controllers if each.is_active]
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
            logger.warning("cancelling controllers that did not stop within %g s: %s", self.shutdown_grace, names)

    # --- health -------------------------------------------------------------------------------------------------------

    def journals(self) -> dict[str, object]:
        """Return the journals of the controllers that keep one, by the name of the controller."""
        return {each.name: found for each in self.controllers if (found := each.journal())}

    def healthz(self) -> Mapping[str, HealthCheck]:
        """Return the current checks for ``/healthz``, which is for liveness probes.

        The check of a controller passes while the controller is active.  For most controllers, kube-controller-manager
        has only this check.
        """
        checks: dict[str, HealthCheck] = {"ping": ping}
        elector = self.elector
        if elector is not None:
            checks["leaderElection"] = lambda: (
                "" if elector.is_healthy() else "the lease expired, and the controllers still run"
            )
        checks |= {each.name: ping for each in self.controllers if each.is_active}
        return checks | {name: partial(run_check, check) for name, check in self.live_checks.items()}

    def readyz(self) -> Mapping[str, HealthCheck]:
        """Return the current checks for ``/readyz``, which pass on a replica that waits for the lease."""
        checks: dict[str, HealthCheck] = {"ping": ping, "informer-sync": self._caches, "shutdown": self._shutdown}
        if self.shares is not None:
            checks["shares"] = self.shares.ownership.not_ready_reason
        checks |= {each.name: each.not_ready_reason for each in self.controllers if each.is_active}
        return checks | {name: partial(run_check, check) for name, check in self.checks.items()}

    def _caches(self) -> str:
        # Objects in quarantine are also a problem, but all replicas have the same problem.
        informers = self.factory.informers
        return "; ".join(
            f"{key}: {words}"
            for key, words in self.factory.problems().items()
            if not (informers[key].has_synced and informers[key].is_healthy)
        )

    def _shutdown(self) -> str:
        return "the process is shutting down" if self.stop.is_set() else ""
