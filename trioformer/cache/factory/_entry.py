"""One informer in its factory: who uses it, the task that runs it, and how it ended.

A entry's task waits for an event to stop the informer, so that nobody else has to hold its cancel scope.
The event is set when the last user has left, and the leaving user waits until the entry's task is about to end: after
that event no checkpoint passes before the task and everything below it are gone.
"""

from __future__ import annotations

import logging
import math
from typing import Generic, TypeVar, final

import attrs
import trio

from ..._util import enclosing_tasks
from ...models import KubernetesObject
from ..informer._shared_informer import SharedInformer
from ..processor._processor import enclosing_handlers
from ..reflector._status import InformerPhase
from ..reflector._transform import Transform
from ..store._indexer import IndexFunc
from ._requests import FromFactory, InformerKey, InformerRequest

T = TypeVar("T", bound=KubernetesObject)

logger = logging.getLogger("trioformer.cache")


@final
@attrs.define(eq=False)
class FactoryEntry(Generic[T]):
    """An informer, and what the factory knows of it."""

    key: InformerKey
    informer: SharedInformer[T]
    resync_period: float
    transform: Transform[T] | None
    indexers: dict[str, IndexFunc[T]]
    is_supervised: bool
    """Whether a failure ends with the entry instead of leaving its task."""
    users: int = attrs.field(default=0, init=False)
    """Blocks that have not been left."""
    is_pinned: bool = attrs.field(default=False, init=False)
    """Whether somebody wants it for as long as the factory runs."""
    failure: Exception | None = attrs.field(default=None, init=False)
    started_at: float = attrs.field(default=math.inf, init=False)
    """On trio's clock; infinity before."""
    stopping: trio.Event = attrs.field(factory=trio.Event, init=False)
    gone: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Set in the last step of the entry's task."""
    _task: trio.lowlevel.Task | None = attrs.field(default=None, init=False)

    @property
    def is_unused(self) -> bool:
        """Whether nobody wants it any more."""
        return self.users == 0 and not self.is_pinned

    @property
    def has_ended(self) -> bool:
        """Whether the informer has stopped or failed."""
        return self.informer.state.phase in (InformerPhase.STOPPED, InformerPhase.FAILED)

    def agree(self, asked: InformerRequest[T]) -> None:
        """Serve a further request, which may bring indexers.

        Raises:
            IndexerError: An index of that name exists, with another function.
            ValueError: The request contradicts what is in force.
        """
        if asked.resync_period is not None and asked.resync_period != self.resync_period:
            raise self._contradiction(f"a resync period of {self.resync_period:g} s", f"{asked.resync_period:g} s")
        if not isinstance(asked.transform, FromFactory) and asked.transform != self.transform:
            in_force = "no transform" if self.transform is None else f"the transform {_name_of(self.transform)}"
            raise self._contradiction(in_force, "none" if asked.transform is None else _name_of(asked.transform))
        # The same function again is what sharing looks like; another one is the informer's to refuse.
        added = {name: func for name, func in asked.indexers.items() if self.indexers.get(name) != func}
        if added:
            self.informer.add_indexers(added)
            self.indexers |= added

    def _contradiction(self, in_force: str, asked: str) -> ValueError:
        return ValueError(
            f"the informer of {self.key} is shared and has {in_force}, not {asked}; "
            "ask for it without this option, or with a selector of its own"
        )

    async def run(self) -> None:
        """Run the informer until :attr:`stopping` is set or it fails.

        Raises:
            Exception: What ended the informer, unless it is supervised; then it is logged.
        """
        self._task = trio.lowlevel.current_task()
        self.started_at = trio.current_time()
        try:
            await self._run_until_stopped()
        except* Exception as error:  # a handler's clean-up may fail beside the Cancelled that goes on
            self.failure = error
            error.add_note(f"informer of {self.key}")
            if not self.is_supervised:
                raise
            logger.exception("the informer of %s has failed; the others go on", self.key)
        finally:
            self._task = None
            self.gone.set()

    async def _run_until_stopped(self) -> None:
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            if self.stopping.is_set():
                nursery.cancel_scope.cancel()  # it is run all the same, so that whoever waits for it hears of its end
            nursery.start_soon(self._cancel_when_stopping, nursery.cancel_scope, name=f"stopper of {self.key}")
            try:
                await self.informer.run()
            except Exception as error:  # noqa: BLE001  # raised below: from here, it would be in one more group
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _cancel_when_stopping(self, scope: trio.CancelScope) -> None:
        await self.stopping.wait()
        scope.cancel()

    async def stop(self) -> None:
        """Stop the informer, and wait until its tasks are gone; from inside a handler's call, only stop it.

        A handler could be waiting for itself, or two for each other, when both are cancelled.

        Cancellation: does not cut the wait short, as with a nursery's end.
        """
        self.stopping.set()
        if not any(enclosing_handlers()):
            with trio.CancelScope(shield=True):
                await self.gone.wait()

    async def close_unstarted(self) -> None:
        """End an informer that nobody has started or will start, so that nobody waits for it."""
        self.stopping.set()
        with trio.CancelScope(shield=True):
            await self.run()

    @property
    def is_called_from_inside(self) -> bool:
        """Whether the current task is inside of the entry's."""
        return any(task is self._task for task in enclosing_tasks())


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", function))
