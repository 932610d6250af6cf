"""The portal: a thread that runs trio, and the calls from the other threads.

The thread is a daemon, because a forgotten door must not keep the process from ending.  :mod:`atexit` ends the portal
before Python stops all daemons, so that open connections and watches are closed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple, final

import trio

from .._doors import Job, Jobs

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")

_LAST_WAIT: Final = 5.0
"""Seconds to wait for the portal when the process ends."""


class _Process:
    """What belongs to one process; a fork replaces it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # the garbage collector may close a door anywhere
        self.portal: Portal | None = None
        """The portal that new doors use, or None."""


_process = _Process()


def _after_fork() -> None:
    global _process  # noqa: PLW0603  # there is one for each process
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@final
class Latch:
    """An event that signal handlers and finalizers may wait for.

    A thread that they interrupt in :meth:`threading.Event.wait` would keep a lock that the portal needs to go on.
    """

    def __init__(self) -> None:
        self.is_set: bool = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Set the event, which is not cleared again."""
        if not self.is_set:
            self.is_set = True
            with suppress(RuntimeError):  # another thread has done it
                self._lock.release()

    def wait(self) -> None:
        """Wait until the event is set."""
        while not self.is_set:
            with self._lock:
                pass


@final
class Portal:
    """A run of trio in a thread, which ends when its last user has left.

    All methods are called in other threads.
    """

    def __init__(self) -> None:
        self._process = _process
        self._users = 0
        self._jobs = Jobs()
        self._token: trio.lowlevel.TrioToken | None = None
        self._ready = Latch()
        self._has_ended = False
        self._failure: BaseException | None = None
        """The exception that ended trio, which is broken or could not start, or None."""
        self._thread = threading.Thread(target=self._run, name="trioformer portal", daemon=True)

    # --- joining and leaving ---

    @staticmethod
    def join() -> Portal:
        """Return the portal of this process, with one more user; start its thread if it does not run.

        Raises:
            RuntimeError: The thread runs trio or an asyncio loop.
        """
        _check_thread()
        process = _process
        with process.lock:
            portal = process.portal
            if portal is None or portal._has_ended or portal._jobs.is_closing:
                portal = Portal()
                portal._thread.start()
                process.portal = portal
            portal._users += 1
        return portal

    def leave(self) -> None:
        """Remove a user; the last one ends trio, and waits until it has ended."""
        if self._is_foreign:
            return
        with self._process.lock:
            self._users -= 1
            is_last = not self._users
            if is_last and self._process.portal is self:
                self._process.portal = None
        if is_last:
            self._end()

    def _end(self, patience: float | None = None) -> None:
        self.post(self._jobs.close)
        if self._may_wait:
            self._thread.join(patience)

    @property
    def _is_foreign(self) -> bool:
        return self._process is not _process

    @property
    def _may_wait(self) -> bool:
        """Whether this thread may wait for the portal; the garbage collector may close a door in the portal itself."""
        return not self._is_foreign and threading.current_thread() is not self._thread

    def check_process(self) -> None:
        """Raise RuntimeError if this process was forked from that of the portal."""
        if self._is_foreign:
            raise RuntimeError(
                "this client or cache of trioformer.sync was opened before fork(), and its thread runs only in the "
                "parent process; open another one in the child, such as in gunicorn's post_fork()"
            )

    # --- the portal's thread ---

    def _run(self) -> None:
        try:
            trio.run(self._main, strict_exception_groups=True)
        except BaseException as error:  # noqa: BLE001  # the cause of what the calls raise
            self._failure = error
        finally:
            self._has_ended = True
            self._ready.set()
            self._jobs.abandon(self._failure)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._ready.set()
        await self._jobs.run()

    def post(self, function: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a synchronous function soon in trio, unless trio has ended.  Safe in ``__del__``."""
        if self._is_foreign:
            return
        self._ready.wait()
        if self._token is not None:
            with suppress(trio.RunFinishedError, OSError):  # OSError if trio is broken
                self._token.run_sync_soon(function, *args)

    # --- jobs: what other threads call in trio ---

    def job(self, function: Callable[[], Awaitable[T]], *events: Latch) -> tuple[Job[T], Latch]:
        """Make a job for :meth:`start`; the returned event and the given events are set when the job has ended.

        Raises:
            RuntimeError: The portal is that of another process, or the thread runs trio or an asyncio loop.
        """
        self.check_process()
        _check_thread()
        ended = Latch()

        def on_end() -> None:
            for event in (ended, *events):
                event.set()

        return Job(function, on_end, self._jobs.alive), ended

    def start(self, job: Job[Any]) -> None:
        """Start a job, or abandon it if trio has ended."""
        self.post(self._jobs.start, job)
        if self._has_ended:
            job.abandon(self._failure)

    def finish(self, job: Job[Any], ended: Latch) -> None:
        """Wait for the end of a job; cancel it if an exception such as KeyboardInterrupt arrives, and then raise it."""
        interruption: BaseException | None = None
        while self._may_wait and not ended.is_set:
            try:
                ended.wait()
            except BaseException as error:  # noqa: BLE001  # raised below
                interruption = error
                self.cancel(job)
        if interruption is not None:
            raise interruption

    def cancel(self, job: Job[Any]) -> None:
        """Cancel a job soon."""
        self.post(job.cancel)
        if self._has_ended:
            job.abandon(self._failure)

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a trio function, and return its result.

        If an exception such as KeyboardInterrupt arrives in this thread, the call is cancelled, and has ended when the
        exception is raised.
        """
        job, ended = self.job(partial(function, *args, **kwargs))
        try:
            self.start(job)
            ended.wait()
        except BaseException:
            self.cancel(job)
            self.finish(job, ended)
            raise
        return job.take_result()

    @contextmanager
    def open(self, manager: AbstractAsyncContextManager[T, bool | None]) -> Generator[T, None, None]:
        """Enter a context manager of trio in a job, which keeps it open until the end of the block."""
        values: list[T] = []
        entered = Latch()
        closing = trio.Event()

        async def hold() -> None:
            async with manager as value:
                values.append(value)
                entered.set()
                await closing.wait()

        job, ended = self.job(hold, entered)
        try:
            self.start(job)
            entered.wait()
            if values:
                yield values.pop()
        finally:
            if entered.is_set:
                self.post(closing.set)
            else:  # an exception such as KeyboardInterrupt
                self.cancel(job)
            self.finish(job, ended)
        if ended.is_set:  # false in a child process, and in the portal
            job.take_result()


@contextmanager
def portal_of_process() -> Generator[Portal, None, None]:
    """Use the portal of this process for the duration of a block."""
    portal = Portal.join()
    try:
        yield portal
    finally:
        portal.leave()


def _check_thread() -> None:
    asyncio = sys.modules.get("asyncio")
    if not trio.lowlevel.in_trio_task() and asyncio is not None and asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "trioformer.sync would block the asyncio loop of this thread; use trioformer.aio or asyncio.to_thread()"
        )
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("trioformer.sync would block trio in this thread; use trioformer.open_client()")


@atexit.register
def _at_exit() -> None:
    if (portal := _process.portal) is not None:
        warnings.warn(
            "the process ended while a client or a cache of trioformer.sync was open; leave its block, or call close()",
            ResourceWarning,
            stacklevel=2,
        )
        portal._end(_LAST_WAIT)
