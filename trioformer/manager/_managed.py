"""One controller of a manager, with its phase for logs and health checks."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import attrs
import trio

from ..controller import Controller
from ..controller._internal import as_json, journal_of
from ._health import logger
from ._initializers import ControllerInitializer, ManagerContext, Runnable

ControllerPhase: TypeAlias = Literal[
    "not started",
    "starting",
    "waiting for the lease",
    "skipped",
    "failed",
    "waiting to start",
    "running",
    "stopping",
    "ended",
]


@final
@attrs.define(eq=False)
class ManagedController:
    """An enabled controller of a manager, which is also the ``task_status`` argument of its ``run()``."""

    name: str
    initializer: ControllerInitializer
    context: ManagerContext
    is_always: bool = False
    """Whether the controller runs on each replica, not only on the leader."""
    phase: ControllerPhase = "not started"
    runnable: Runnable | None = None
    settled: trio.Event = attrs.field(factory=trio.Event)
    """An event that is set when the controller has started its work, or will never start it."""

    @property
    def is_active(self) -> bool:
        """Whether the controller was created and has not ended."""
        return self.phase in ("waiting to start", "running", "stopping")

    def not_ready_reason(self) -> str:
        """Return the reason why the controller has not started its work, or an empty string if it has started."""
        if self.phase != "waiting to start":
            return ""
        missing = self.runnable.statistics().waiting_for if isinstance(self.runnable, Controller) else ()
        return "; ".join(missing) or "it has not started"

    def journal(self) -> list[dict[str, object]]:
        """Return the entries of the controller's journal, or an empty list if it has no journal."""
        return [as_json(entry) for entry in journal_of(self.runnable)] if isinstance(self.runnable, Controller) else []

    def started(self, value: None = None) -> None:
        """Record that the controller has started its work; part of the ``trio.TaskStatus`` interface."""
        if self.phase == "waiting to start":
            self.phase = "running"
            if not isinstance(self.runnable, Controller):  # which logs it itself
                logger.info("controller %s: started", self.name)
        self.settled.set()

    async def initialize(self) -> Runnable | None:
        """Call the initializer, and return the controller that it created.

        Raises:
            TypeError: The initializer is not an async function, or returned neither a controller nor None.
        """
        initializing = self.initializer(self.context)
        if not hasattr(initializing, "__await__"):  # the error of await does not name the function
            raise TypeError(f"the initializer of controller {self.name} must be an async function")
        runnable = await initializing
        if runnable is not None and not hasattr(runnable, "run"):
            raise TypeError(
                f"the initializer of controller {self.name} must return a controller or None, "
                f"not a value of type {type(runnable).__name__}"
            )
        return runnable

    async def run(self) -> None:
        """Run the controller, and record its phase."""
        assert self.runnable is not None  # the initializer has returned it
        try:
            await self.runnable.run(task_status=self)
        except Exception as error:
            error.add_note(f"in controller {self.name}")
            logger.error("controller %s: failed, stopping the manager: %r", self.name, error)
            self.phase = "failed"
            raise
        else:
            if self.phase != "stopping":
                logger.info("controller %s: ended without being stopped", self.name)
        finally:
            if self.phase != "failed":
                self.phase = "ended"
            self.settled.set()

    async def stop(self) -> None:
        """Stop the controller gracefully, and record its phase."""
        assert self.runnable is not None  # as above
        if not self.is_active:
            return  # the controller has ended, and its phase must not change
        self.phase = "stopping"
        try:
            await self.runnable.stop()
        except Exception as error:
            error.add_note(f"while controller {self.name} was stopped")
            raise
