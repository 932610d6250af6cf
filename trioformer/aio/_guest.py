"""Trio as a guest of an asyncio loop: one guest run for all doors of the loop.

Trio's tasks and the host's tasks run in the same thread, in turns.  While trio has nothing to do, a thread waits for
its I/O.

It ends when the last door is left, or when the loop ends or is closed with an open door.

Source: ``trio.lowlevel.start_guest_run``, and its chapter in trio's reference.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar, final

import trio
from outcome import Error, Outcome

from .._doors import Job, Jobs

T = TypeVar("T")
P = ParamSpec("P")

_TRIO_RUNS: Final = (
    "trio already runs in this thread; use trioformer.open_client() and the other functions of trioformer in place of "
    "trioformer.aio"
)
_FOREVER: Final = 10 * 365 * 86_400.0
"""Seconds until a timer that only ends with its loop."""


class _Thread(threading.local):
    guest: Guest | None = None
    """The guest that runs in this thread."""


_thread: Final = _Thread()


@final
class Guest:
    """A run of trio in an asyncio loop, which ends when its last user has left.

    The constructor is called by :meth:`join`, in the loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread: int = threading.get_ident()
        self._jobs = Jobs()
        self._users = 0
        self._ticks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._ended = loop.create_future()
        self.has_ended: bool = False
        self._error: BaseException | None = None
        """The error that ended trio, such as ``trio.TrioInternalError``."""
        self._hosted: set[trio.Event] = set()
        self._hooks = sys.get_asyncgen_hooks()
        self._watch = self._until_shutdown()
        # asyncio forgets its timers when the loop is closed, which deletes the argument of this one
        self._timer = weakref.ref(loop.call_later(_FOREVER, lambda _: None, _AtDeletion(self._loop_closed)))

    # --- joining and leaving ---

    @staticmethod
    async def join() -> Guest:
        """Return the guest of the running loop, with one more user; start trio if it does not run.

        Raises:
            RuntimeError: No asyncio loop is running, or trio runs in this thread already.
        """
        while (guest := _thread.guest) is not None and guest.loop is _running_loop():
            if not guest.is_ending:
                guest._users += 1
                return guest
            await asyncio.wait([guest._ended])
        if guest is not None:
            raise RuntimeError(
                "trio still runs in this thread, as a guest of another event loop that has stopped with an open door, "
                "or that ran when this process was forked; close the door or that loop first, or start processes with "
                "'spawn'"
            )
        if trio.lowlevel.in_trio_run():
            raise RuntimeError(_TRIO_RUNS)
        guest = _thread.guest = Guest(_running_loop())
        guest._users = 1
        guest._start()
        await anext(guest._watch)
        return guest

    def _start(self) -> None:
        with _own_sigint():
            trio.lowlevel.start_guest_run(
                self._jobs.run,
                run_sync_soon_threadsafe=self._tick_from_thread,
                run_sync_soon_not_threadsafe=self._tick_soon,
                done_callback=self._on_end,
                host_uses_signal_set_wakeup_fd=True,
                strict_exception_groups=True,
            )
        self._hooks = sys.get_asyncgen_hooks()

    async def leave(self) -> None:
        """Remove a user; the last one ends trio, and waits until it has ended even if it is cancelled.

        Raises:
            trio.TrioInternalError: Trio had ended before, because it is broken.
        """
        self._users -= 1
        if not self._users:
            self._end()
            await finish(self._ended)
            with suppress(RuntimeError):  # the loop is closing it
                await self._watch.aclose()
            if self._error is not None:
                raise self._error

    @property
    def is_ending(self) -> bool:
        """Whether trio is ending or has ended, so that no jobs can be started."""
        return self._jobs.is_closing or self.has_ended

    def _end(self) -> None:
        if not self.is_ending:
            self._jobs.close()

    def _on_end(self, outcome: Outcome[Any]) -> None:
        """Note that trio has ended.  The outcome is an error only if trio itself is broken."""
        self.has_ended = True
        if _thread.guest is self:
            _thread.guest = None
        if isinstance(outcome, Error):
            self._error = outcome.error
        self._jobs.abandon(self._error)
        timer = self._timer()
        if timer is not None:
            timer.cancel()
        _resolve(self._ended)

    async def _until_shutdown(self) -> AsyncGenerator[None, None]:
        """An asynchronous generator that ``loop.shutdown_asyncgens()`` closes, as asyncio.run() does at its end."""
        try:
            yield
        finally:
            if not self.has_ended:
                if _thread.guest is self:
                    self._end()
                    await finish(self._ended)
                _warn_of_open_door()

    # --- the turns of trio ---

    def _tick_soon(self, tick: Callable[[], object]) -> None:
        self._ticks.put(tick)
        if not self.loop.is_closed():
            self.loop.call_soon(self._tick)

    def _tick_from_thread(self, tick: Callable[[], object]) -> None:
        self._ticks.put(tick)
        try:
            self.loop.call_soon_threadsafe(self._tick)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def _tick(self) -> None:
        sys.set_asyncgen_hooks(*self._hooks)  # each run of the loop has replaced trio's by its own
        self._ticks.get_nowait()()

    def _loop_closed(self) -> None:
        """Finish trio without the loop, which has been closed.

        Trio's sockets are closed, and its tasks end.  The host's tasks never run again.
        """
        if self.has_ended:
            return
        if _thread.guest is self:
            hooks = sys.get_asyncgen_hooks()
            self._end()
            for event in self._hosted:
                event.set()
            while trio.lowlevel.in_trio_run():
                self._ticks.get()()
            sys.set_asyncgen_hooks(*hooks)  # trio has set those of the loop
        _warn_of_open_door()

    # --- jobs: what the host calls in trio ---

    def start(self, function: Callable[[], Awaitable[T]]) -> tuple[Job[T], asyncio.Future[None]]:
        """Start a job; the future is done when the job has ended.

        Raises:
            RuntimeError: The caller does not run in the guest's loop.
        """
        if trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "a client or cache of trioformer.aio was used in a trio function; pass the function trio's own"
            )
        if self.loop is not _running_loop():
            raise RuntimeError(
                "this client or cache belongs to another asyncio loop; use it in the loop that opened it"
            )
        ended = self.loop.create_future()
        job = Job(function, partial(_resolve, ended), self._jobs.alive)
        self._jobs.start(job)
        return job, ended

    async def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a trio function, and return its result.

        Cancellation: the call is cancelled too, and has ended when this method raises ``CancelledError``.
        """
        job, ended = self.start(partial(function, *args, **kwargs))
        try:
            await finish(ended, job.cancel)
        except asyncio.CancelledError:
            if job.error is not None and not isinstance(job.error, trio.ClosedResourceError):
                job.take_result()
            raise
        return job.take_result()

    async def open(self, manager: AbstractAsyncContextManager[T, bool | None], stack: AsyncExitStack) -> T:
        """Enter a context manager of trio in a job, which keeps it open until a stack is closed."""
        opened: asyncio.Future[T] = self.loop.create_future()
        closing = trio.Event()

        async def hold() -> None:
            async with manager as value:
                if not opened.done():
                    opened.set_result(value)
                await closing.wait()

        job, ended = self.start(hold)
        try:
            futures: tuple[asyncio.Future[Any], ...] = (opened, ended)
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            job.cancel()
            await finish(ended)
            raise
        if not opened.done():
            job.take_result()

        async def close(_: object, error: BaseException | None, traceback: object) -> None:
            if not job.has_ended:
                closing.set()
            await finish(ended, job.cancel)
            if error is None or job.error is not None:
                job.take_result()

        stack.push_async_exit(close)
        return opened.result()

    # --- what trio calls in the host ---

    def hosted(self, function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return a trio function that calls an asyncio function in a task of the host, and waits for its end.

        Cancellation: the asyncio task is cancelled, and has ended when the function raises ``trio.Cancelled``.
        """
        # a controller's functions may be converted again
        inner: Callable[P, Coroutine[Any, Any, T]] = getattr(function, "asyncio_function", function)

        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            # not loop.create_task(), which may begin the task here, where libraries see trio
            task = asyncio.Task(inner(*args, **kwargs), loop=self.loop)
            done = trio.Event()
            task.add_done_callback(lambda _: done.set())
            self._hosted.add(done)
            try:
                await done.wait()
            except trio.Cancelled:
                if not self.loop.is_closed():
                    task.cancel()
                    with trio.CancelScope(shield=True):
                        await done.wait()
                if not task.done() or task.cancelled() or not task.exception():
                    raise
            finally:
                self._hosted.discard(done)
                if task.done() and not task.cancelled():
                    task.exception()  # so that asyncio does not log it
            if not task.done():
                raise trio.ClosedResourceError("the event loop was closed while an asyncio function was running")
            if task.cancelled():
                raise RuntimeError(f"{inner!r} was cancelled by the asyncio program")
            return task.result()

        call.asyncio_function = inner  # type: ignore[attr-defined]
        return call


@final
class Opening(AbstractAsyncContextManager[T, bool | None]):
    """A context manager without an asynchronous generator.

    ``asyncio.run()`` ends by closing all generators at once, which fails for those that wait for each other.

    Args:
        enter: A function that returns the value of the block, and pushes onto a stack what is to do at its end.
    """

    def __init__(self, enter: Callable[[AsyncExitStack], Awaitable[T]]) -> None:
        self._enter = enter
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> T:
        try:
            return await self._enter(self._stack)
        except BaseException:
            await self._stack.__aexit__(*sys.exc_info())
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)


def guest_of_loop() -> Opening[Guest]:
    """Use the guest of the running loop for the duration of a block."""

    async def enter(stack: AsyncExitStack) -> Guest:
        guest = await Guest.join()
        stack.push_async_callback(guest.leave)
        return guest

    return Opening(enter)


async def finish(future: asyncio.Future[None], on_cancel: Callable[[], object] | None = None) -> None:
    """Wait until a future is done, even if the task is cancelled, and then raise the ``CancelledError``.

    Args:
        future: The future to wait for.
        on_cancel: A function to call when the task is cancelled.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        if trio.lowlevel.in_trio_run():
            raise RuntimeError(_TRIO_RUNS) from None
        raise RuntimeError("trioformer.aio requires a running asyncio loop; call it in asyncio.run(main())") from None


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done() and not future.get_loop().is_closed():
        future.set_result(None)


def _warn_of_open_door() -> None:
    warnings.warn(
        "an asyncio loop ended while a client or a cache of trioformer.aio was open; leave its `async with` block, or "
        "call aclose(), before",
        ResourceWarning,
        stacklevel=2,
    )


@final
class _AtDeletion:
    """An object that calls a function when it is deleted."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call()


@contextmanager
def _own_sigint() -> Iterator[None]:
    """Keep trio from installing its handler of SIGINT: Ctrl-C belongs to the host.

    Trio installs its handler only in place of Python's own.
    """
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, partial(signal.default_int_handler))  # the same, but not Python's own
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        yield
