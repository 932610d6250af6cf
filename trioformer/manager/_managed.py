"""What becomes of each controller: the manager writes it down, logs and health checks read it."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import attrs
import trio

from ..controller import Controller
from ._health import logger
from ._initializers import ControllerInitializer, Runnable

MemberPhase: TypeAlias = Literal[
    "not started", "starting", "skipped", "failed", "waiting to begin", "running", "stopping", "ended"
]


@final
@attrs.define(eq=False)
class ManagedController:
    """One controller that is enabled; also what its ``run`` is given as ``task_status``."""

    name: str
    starter: ControllerInitializer
    phase: MemberPhase = "not started"
    runnable: Runnable | None = None
    settled: trio.Event = attrs.field(factory=trio.Event)
    """It has begun its work, or never will."""

    @property
    def is_working(self) -> bool:
        """Whether it has been made, and not ended."""
        return self.phase in ("waiting to begin", "running", "stopping")

    def what_it_waits_for(self) -> str:
        """Say why it has not begun its work; nothing when it has."""
        if self.phase != "waiting to begin":
            return ""
        missing = self.runnable.statistics().waiting_for if isinstance(self.runnable, Controller) else ()
        return "; ".join(missing) or "it has not begun"

    def started(self, value: None = None) -> None:
        """Note that the work has begun, as ``trio.TaskStatus`` has it."""
        if self.phase == "waiting to begin":
            self.phase = "running"
            logger.info("controller %s: started", self.name)
        self.settled.set()

    async def run(self) -> None:
        """Run what the starter has made."""
        assert self.runnable is not None  # it is run when the starter has made it
        try:
            await self.runnable.run(task_status=self)
        except Exception as error:
            error.add_note(f"in controller {self.name}")
            logger.error("controller %s: failed, which ends the manager: %r", self.name, error)
            self.phase = "failed"
            raise
        else:
            if self.phase != "stopping":
                logger.info("controller %s: ended by itself", self.name)
        finally:
            if self.phase != "failed":
                self.phase = "ended"
            self.settled.set()

    async def stop(self) -> None:
        """End it in good order."""
        assert self.runnable is not None  # as above
        if not self.is_working:
            return  # it has ended meanwhile, and must not look as if it still worked
        self.phase = "stopping"
        try:
            await self.runnable.stop()
        except Exception as error:
            error.add_note(f"while controller {self.name} was stopped")
            raise
