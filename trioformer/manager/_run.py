"""One run of a manager: the order in which caches, leadership and controllers begin and end.

::

    caches ─┬─ begin ───────────────────────────────────────────────────────────────────────────── end
            └─ leadership ─┬─ acquire ───────────────────────────────────────────── release ─┘
                           └─ controllers ── start one by one ── stop is set ── drained, or cancelled ─┘

Each lies inside of the one above, so none can end before those that build on it: that order is the nesting of the
blocks, and nothing else.  It is controller-runtime's (``pkg/manager/internal.go``); HTTP is around all of it, in
``_run_controllers.py``.

``stop`` breaks off what only waits: for the first lists, for the lease, for a starter or the time between two.  What
works is drained instead, so the block that ``stop`` breaks off never is around controllers.
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
from ._health import Check, logger, passes
from ._initializers import ManagerContext, Runnable
from ._managed import ManagedController

if TYPE_CHECKING:
    from ..metrics import Metrics


@final
@attrs.define(eq=False, kw_only=True)
class ManagerRun:
    """What :func:`run_controllers` owns; the arguments are its own."""

    client: Client
    factory: SharedInformerFactory
    members: Sequence[ManagedController]
    start_interval: float = attrs.field(validator=validators.ge(0))
    lease: str
    """The name of the elector's Lease; empty without one."""
    elector: LeaderElector | None
    metrics: Metrics | None
    stop: trio.Event
    shutdown_grace: float = attrs.field(validator=validators.ge(0))
    on_started: Callable[[], None]
    """Called when all is up that does not depend on being the leader."""
    _measured: ExitStack = attrs.field(factory=ExitStack, init=False)
    """Lets metrics forget what they were to ask, when the run has ended."""
    _waiting: trio.CancelScope | None = attrs.field(default=None, init=False)

    async def run(self) -> None:
        """Run until cancelled, stopped, or failed."""
        with self._measured:
            if self.metrics is not None:
                if not self.metrics.is_registered(self.factory):
                    self.metrics.register_factory(self.factory)
                    self._measured.callback(self.metrics.unregister, self.factory)
                if self.elector is not None:
                    self.metrics.register_elector(self.elector, name=self.lease)
                    self._measured.callback(self.metrics.unregister, self.elector)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_stop)
                with self._until_stopped():
                    await nursery.start(self.factory.run)
                if self.elector is None:
                    await self._work()
                else:
                    await self._lead(self.elector)
                nursery.cancel_scope.cancel()

    # --- what stop breaks off -----------------------------------------------------------------------------------------

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        """A block that is left when ``stop`` is set; at its first checkpoint, if it is already.

        Of two, one inside of the other, only the inner one is left, and after its end none.  So the election, which has
        all the work inside, is left only as long as there is none.
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

    async def _lead(self, elector: LeaderElector) -> None:
        self.on_started()
        with self._until_stopped():
            await elector.run(self._work)

    # --- controllers --------------------------------------------------------------------------------------------------

    async def _work(self, leadership: Leadership | None = None) -> None:
        async with trio.open_nursery() as nursery:
            with self._until_stopped():
                for member in self.members:
                    await self._start(member, leadership, nursery)
                for member in self.members:
                    await member.settled.wait()
                self.on_started()
                await self.stop.wait()
            await self._drain()
            nursery.cancel_scope.cancel()

    async def _start(self, member: ManagedController, leadership: Leadership | None, nursery: trio.Nursery) -> None:
        await trio.sleep(self.start_interval * (1 + random.random()))
        member.phase = "starting"
        logger.info("controller %s: starting", member.name)
        try:
            context = ManagerContext(
                client=self.client,
                factory=self.factory,
                name=member.name,
                leadership=leadership,
                metrics=self.metrics,
            )
            runnable = await member.starter(context)
            if runnable is not None:
                self._take_in(runnable, member)
        except Exception as error:
            member.phase = "failed"
            error.add_note(f"in the starter of controller {member.name}")
            logger.error("controller %s: failed to start: %r", member.name, error)
            raise
        member.runnable = runnable
        if runnable is None:
            member.phase = "skipped"
            member.settled.set()
            logger.info("controller %s: skipped", member.name)
        else:
            member.phase = "waiting to begin"
            nursery.start_soon(member.run, name=f"controller {member.name}")

    def _take_in(self, runnable: Runnable, maker: ManagedController) -> None:
        for other in self.members:
            if other.runnable is not None and other.runnable.name == runnable.name:
                raise ValueError(
                    f"the starters of {other.name} and {maker.name} have both made a controller named "
                    f"{runnable.name!r}; give them different names, since logs and metrics go by them"
                )
        if self.metrics is None or not isinstance(runnable, Controller):
            return
        if not self.metrics.is_registered(runnable):
            self.metrics.register_controller(runnable)
            self._measured.callback(self.metrics.unregister, runnable)

    async def _drain(self) -> None:
        """End the controllers in good order, or at the deadline."""
        begun = [member for member in self.members if member.is_working]
        late = {member.name for member in begun}

        async def stop(member: ManagedController) -> None:
            await member.stop()
            late.discard(member.name)

        with trio.move_on_after(self.shutdown_grace):
            async with trio.open_nursery() as nursery:
                for member in begun:
                    nursery.start_soon(stop, member)
        if late:
            names = ", ".join(sorted(late))
            logger.warning("not ended within %g s, so they are cancelled: %s", self.shutdown_grace, names)

    # --- what can be asked of it --------------------------------------------------------------------------------------

    def healthz(self) -> Mapping[str, Check]:
        """Return what is to be so while the process is to live.

        A controller passes while it works: that is all that kube-controller-manager asks of most of its own.
        """
        checks: dict[str, Check] = {"ping": passes}
        elector = self.elector
        if elector is not None:
            checks["leaderElection"] = lambda: "" if elector.is_healthy() else "the lease ran out, and work goes on"
        return checks | {member.name: passes for member in self.members if member.is_working}

    def readyz(self) -> Mapping[str, Check]:
        """Return what is to be so when others may count on it; a replica that waits for the lease is ready, too."""
        checks: dict[str, Check] = {"ping": passes, "informer-sync": self._caches, "shutdown": self._shutdown}
        return checks | {member.name: member.what_it_waits_for for member in self.members if member.is_working}

    def _caches(self) -> str:
        return "; ".join(f"{key}: {words}" for key, words in self.factory.problems().items())

    def _shutdown(self) -> str:
        return "the process is shutting down" if self.stop.is_set() else ""
