"""Run tar in a container, and run the local part of a copy in a thread."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, final

import trio

from ..._text import one_line
from ..._util import raise_ungrouped
from ...errors import CopyFailedError, StatusError
from .._processes import PodProcess

T = TypeVar("T")

_KEPT: Final = 4_096
"""The number of bytes of standard error that are kept."""
_SHOWN: Final = 500
_NOT_FOUND: Final = ("executable file not found", "no such file or directory", "not found")


@final
class StandardError:
    """A collector that keeps the end of a process's standard error."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._on_end: Callable[[], object] | None = None
        self.has_ended = trio.Event()

    @property
    def text(self) -> str:
        """The end of the standard error as one line."""
        return one_line(bytes(self._data[-_SHOWN:]).decode(errors="replace"))

    def call_at_end(self, function: Callable[[], object]) -> None:
        """Register a function to call when the process has ended."""
        if self.has_ended.is_set():
            function()
        self._on_end = function

    async def collect(self, stream: trio.abc.ReceiveStream) -> None:
        """Collect the standard error until the process or the connection ends."""
        try:
            async for data in stream:
                self._data += data
                del self._data[:-_KEPT]
        except trio.BrokenResourceError:
            pass  # wait() of the process raises the reason
        self.has_ended.set()
        if self._on_end is not None:
            self._on_end()


async def run_beside(process: PodProcess, function: Callable[[StandardError], Awaitable[T]]) -> T:
    """Call a function while collecting a process's standard error; exceptions are not wrapped in groups."""
    errors = StandardError()
    result: T | None = None
    error: Exception | None = None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(errors.collect, process.stderr)
            try:
                result = await function(errors)
            except Exception as exc:  # noqa: BLE001  # raised below
                error = exc
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        await raise_ungrouped(group)
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # there is no error


async def check_end(process: PodProcess, errors: StandardError, where: str, needs: str) -> None:
    """Wait until the process ends, and check that it succeeded.

    Raises:
        CopyFailedError: The process failed or could not be started.
        ConnectionFailedError: The connection ended before the process did.
    """
    cause: StatusError | None = None
    try:
        code = await process.wait()
        problem = f"tar failed with exit code {code}" if code else ""
        is_missing = code in (126, 127)
    except StatusError as exc:
        cause = exc
        problem = f"tar failed: {one_line(exc.status_message, longest=_SHOWN)}"
        is_missing = any(each in exc.status_message for each in _NOT_FOUND)
    if not problem:
        return
    await errors.has_ended.wait()
    if errors.text:
        problem = f"{problem}: {errors.text}"
    if is_missing:
        problem = f"{problem}; copying requires {needs} in the container"
    raise CopyFailedError(f"{where}: {problem}") from cause


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in a thread outside trio's thread limit, because the function waits for the network.

    Cancellation:
        ``trio.Cancelled`` is raised at the next ``trio.from_thread.run()`` in the function.  Then ``run_in_thread``
        waits until the function ends.
    """
    return await trio.to_thread.run_sync(function, limiter=trio.CapacityLimiter(1))


def split_path(path: str) -> tuple[str, str]:
    """Split a path in a container into a directory and a name, both of which are safe as arguments.

    The name is ``"."`` if the path, such as ``/`` or ``..``, does not end with a name.
    """
    stripped = path.rstrip("/") or "/"
    directory, name = posixpath.split(stripped)
    if name in ("", ".", ".."):
        return safe_argument(stripped), "."
    return safe_argument(directory or "."), name


def safe_argument(path: str) -> str:
    """Return a form of a path that a program cannot mistake for an option."""
    return f"./{path}" if path.startswith("-") else path
