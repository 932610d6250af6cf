"""One informer of a factory, with its users, its task and its failure.

The task of an entry stops the informer when the event ``stop_requested`` is set, so no other task has to cancel it.
The last user sets this event when it leaves, and then waits for the event ``ended``.  The task sets ``ended`` in its
last step, after its child tasks have ended and without a checkpoint afterwards.
"""

from __future__ import annotations

import logging
import math
from typing import Generic, TypeVar, final

import attrs
import trio

from ..._text import describe_error
from ..._util import enclosing_tasks
from ...models import KubernetesObject
from ..informer._shared_informer import SharedInformer
from ..processor._processor import enclosing_handlers
from ..reflector._status import InformerPhase
from ..reflector._transform import Transform
from ._requests import FromFactory, InformerKey, InformerRequest

T = TypeVar("T", bound=KubernetesObject)

logger = logging.getLogger("trioformer.cache")


@final
@attrs.define(eq=False)
class FactoryEntry(Generic[T]):
    """An informer of a factory, with its options, its users and its task."""

    key: InformerKey
    informer: SharedInformer[T]
    resync_period: float
    transform: Transform[T] | None
    is_supervised: bool
    """Whether the informer's error is kept in :attr:`failure` instead of being raised by the task."""
    users: int = attrs.field(default=0, init=False)
    """The number of open ``open_informer()`` blocks."""
    is_pinned: bool = attrs.field(default=False, init=False)
    """Whether ``informer()`` was called, so that the informer runs for as long as the factory."""
    failure: Exception | None = attrs.field(default=None, init=False)
    started_at: float = attrs.field(default=math.inf, init=False)
    """The time when the informer was started, on trio's clock; infinity before the start."""
    stop_requested: trio.Event = attrs.field(factory=trio.Event, init=False)
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    """An event that is set in the last step of the entry's task."""
    _task: trio.lowlevel.Task | None = attrs.field(default=None, init=False)

    @property
    def is_unused(self) -> bool:
        """Whether the informer is neither pinned by ``informer()`` nor used by an open block."""
        return self.users == 0 and not self.is_pinned

    @property
    def has_ended(self) -> bool:
        """Whether the informer has stopped or failed."""
        return self.informer.state.phase in (InformerPhase.STOPPED, InformerPhase.FAILED)

    def share(self, request: InformerRequest[T]) -> None:
        """Share the informer with another request, and add the request's index functions.

        Raises:
            IndexerError: An index with the same name exists with another function.
            ValueError: The resync period or the transform of the request differs from the informer's.
        """
        if request.resync_period is not None and request.resync_period != self.resync_period:
            raise self._conflict(f"a resync period of {self.resync_period:g} s", f"{request.resync_period:g} s")
        if not isinstance(request.transform, FromFactory) and request.transform != self.transform:
            current = "no transform" if self.transform is None else f"the transform {_name_of(self.transform)}"
            raise self._conflict(current, "none" if request.transform is None else _name_of(request.transform))
        if request.indexers:
            self.informer.add_indexers(request.indexers)

    def _conflict(self, current: str, requested: str) -> ValueError:
        return ValueError(
            f"the informer of {self.key} is shared and has {current}, not {requested}; "
            "omit this option, or use another selector"
        )

    async def run(self) -> None:
        """Run the informer until :attr:`stop_requested` is set or it fails.

        Raises:
            Exception: If the informer fails and the entry is not supervised.  With supervision, the failure is only
                logged.
        """
        self._task = trio.lowlevel.current_task()
        self.started_at = trio.current_time()
        try:
            await self._run_until_stopped()
        except* Exception as error:  # a handler may raise an exception besides Cancelled while it is cancelled
            self.failure = error
            error.add_note(f"informer of {self.key}")
            if not self.is_supervised:
                raise
            words = describe_error(error)
            logger.exception("the informer of %s failed: %s; the other informers continue", self.key, words)
        finally:
            self._task = None
            self.ended.set()

    async def _run_until_stopped(self) -> None:
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            if self.stop_requested.is_set():
                nursery.cancel_scope.cancel()  # the informer still runs, to notify the tasks that wait for it
            nursery.start_soon(self._cancel_when_requested, nursery.cancel_scope, name=f"stopper of {self.key}")
            try:
                await self.informer.run()
            except Exception as error:  # noqa: BLE001  # raised below, since the nursery would wrap it in a group
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _cancel_when_requested(self, scope: trio.CancelScope) -> None:
        await self.stop_requested.wait()
        scope.cancel()

    async def stop(self) -> None:
        """Stop the informer and wait until its tasks have ended; inside a call to a handler, do not wait.

        If a handler waited, it could wait for itself, or two cancelled handlers could wait for each other.

        Cancellation: the wait is shielded from cancellation.
        """
        self.stop_requested.set()
        if not any(enclosing_handlers()):
            with trio.CancelScope(shield=True):
                await self.ended.wait()

    async def close_unstarted(self) -> None:
        """Close an informer that was never started, and thereby wake the tasks that are waiting for it."""
        self.stop_requested.set()
        with trio.CancelScope(shield=True):
            await self.run()

    @property
    def is_called_from_inside(self) -> bool:
        """Whether the current task is the entry's task or a descendant of it."""
        return any(task is self._task for task in enclosing_tasks())


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", function))
