"""Jobs, which are calls of trio functions by a program outside of trio."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar, final

import trio

T = TypeVar("T")


@final
class Job(Generic[T]):
    """A call of a trio function.

    All methods except the constructor are called in trio's thread, by a task or by a callback of the host's loop.

    Args:
        function: The function to call, without arguments.
        on_end: A function that is called when the job has ended, once.
        alive: A set that contains the job until it has ended.
    """

    def __init__(self, function: Callable[[], Awaitable[T]], on_end: Callable[[], None], alive: set[Job[Any]]) -> None:
        self._function = function
        self._on_end = on_end
        self._alive = alive
        alive.add(self)
        self._scope = trio.CancelScope()
        self._context = contextvars.copy_context()
        self._results: list[T] = []
        """The result, until it is taken."""
        self.error: BaseException | None = None
        """The exception that ended the job, or None."""
        self.is_known: bool = False
        """Whether the job has arrived in trio."""
        self.has_ended: bool = False

    def start(self, nursery: trio.Nursery) -> None:
        """Start the job in a nursery, with the context variables of the caller that created the job."""
        self._context.run(partial(nursery.start_soon, self._run, name=self._function))

    async def _run(self) -> None:
        try:
            with self._scope:
                self._results.append(await self._function())
        except trio.Cancelled:
            self.error = _stopped()
        except BaseExceptionGroup as group:
            self.error = group.split(trio.Cancelled)[1] or _stopped()
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is taken
            self.error = error
        self._end()

    def _end(self) -> None:
        self.has_ended = True
        self._alive.discard(self)
        on_end = self._on_end
        del self._on_end  # it may refer to the job, and only the garbage collector frees cycles
        on_end()

    def cancel(self) -> None:
        """Cancel the job, which ends when its function has returned; does nothing if it has ended."""
        if not self.is_known:  # Ctrl-C may have interrupted the caller before it had sent the job to trio
            self.abandon()
        elif not self.has_ended:
            self._scope.cancel()

    def abandon(self, cause: BaseException | None = None) -> None:
        """End the job, which has not been started or whose run has died; does nothing if it has ended."""
        if not self.has_ended:
            self.error = _stopped()
            self.error.__cause__ = cause
            self._end()

    def take_result(self) -> T:
        """Return the result of the job, which has ended, or raise its exception.

        Raises:
            trio.ClosedResourceError: The job was cancelled.
        """
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
        if not self._results:
            raise _stopped()
        return self._results.pop()


def _stopped() -> trio.ClosedResourceError:
    return trio.ClosedResourceError("the call was cancelled, because its door is closing or has been closed")


@final
class Jobs:
    """The jobs of one run of trio, and the task that starts them in a nursery of its own."""

    def __init__(self) -> None:
        self._new: list[Job[Any]] = []
        self.alive: set[Job[Any]] = set()
        """The jobs that have not ended; some have not been started."""
        self._changed = trio.Event()
        self.is_closing: bool = False

    async def run(self) -> None:
        """Start jobs until :meth:`close` is called, then cancel the jobs that still run."""
        async with trio.open_nursery() as nursery:
            while not self.is_closing:
                # no checkpoint between emptying the list and creating the next event
                for job in self._new:
                    job.start(nursery)
                self._new.clear()
                self._changed = trio.Event()
                await self._changed.wait()
            nursery.cancel_scope.cancel()

    def start(self, job: Job[Any]) -> None:
        """Start a job soon.  Called in trio's thread."""
        job.is_known = True
        if self.is_closing:
            job.abandon()
        else:
            self._new.append(job)
            self._changed.set()

    def close(self) -> None:
        """End :meth:`run` soon.  Called in trio's thread."""
        self.is_closing = True
        self._changed.set()

    def abandon(self, cause: BaseException | None) -> None:
        """End the jobs that have not ended.  Called when trio has ended."""
        for job in tuple(self.alive):
            job.abandon(cause)
