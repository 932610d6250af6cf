"""Read the lines of a followed log.

The API server forwards a log request to the kubelet on the node.
The response ends normally when the container ends.  The response also ends normally if the connection between API
server and kubelet breaks, or if the API server stops.
So after each response, this module reads the pod.  If the container is still running, its log is followed again from
the last line.  If the container has ended, the rest of its log is read once.
The container may restart between the two requests, and the pod's status is updated with a delay.
So after a repeated request, the pod is read again before any line of the response is returned.

All these steps run in the task that reads the lines, as in a resuming watch.
"""

from __future__ import annotations

import enum
import logging
import math
import random
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
import trio

from .._retry import (
    REQUEST_ERRORS,
    Outcome,
    Pacing,
    Wait,
    WatchErrorHandler,
    is_permanent,
    log_failure,
    outcome_of,
    retry_after,
)
from .._surroundings import new_generator
from .._util import NoPublicConstructor, Slices
from ..errors import BadRequestError, ConnectionFailedError, NotFoundError, TrioformerError
from ..transport._internal import ByteStream
from ._log_lines import LineSplitter, LogLine, Piece, ReceivedLines, split_stamp
from ._log_requests import (
    Instance,
    LogTarget,
    check_max_line_bytes,
    default_container,
    lost,
    replaced,
    several_containers,
)

if TYPE_CHECKING:
    from ..models.core_v1 import Pod

MAX_REJECTIONS: Final = 5
"""The maximum number of consecutive requests that fail while the container is running according to its status."""

STATUS_DELAY: Final = 1.0
"""The number of seconds after which the status of a pod shows a change on the node."""

logger = logging.getLogger("trioformer.pods")


class _Phase(enum.Enum):
    CONNECTING = "connecting"
    CONFIRMING = "reading the pod again"
    READING = "following"
    WAITING = "waiting"
    CHECKING = "reading the pod"
    ENDED = "ended"
    FAILED = "failed"
    CLOSED = "closed"


_FLAGS: Final[Mapping[Instance, Mapping[str, str]]] = {
    Instance.RUNNING: {"follow": "true"},
    Instance.REPLACED: {"previous": "true"},
}
"""The query parameters for each state of the instance.  In a state without an entry, the rest of the log is
requested."""


OpenLog: TypeAlias = Callable[[Mapping[str, str]], AbstractAsyncContextManager[ByteStream]]
"""A function that opens the body of a log, or raises an error if the response is not successful."""


@final
@attrs.define(eq=False, repr=False)
class LogLines(metaclass=NoPublicConstructor):
    """The lines of a followed log, opened and closed by :func:`follow_logs`.

    ``async for line in lines`` iterates over the lines until the container ends.  Only one task may
    read at a time.
    Each line is returned exactly once, in the order of the log.
    """

    _where: str
    _open: OpenLog
    _get: Callable[[], Awaitable[Pod]]
    _wait_to_retry: Callable[[float], Awaitable[None]]
    _params: dict[str, str]
    """The query parameters of the first request."""
    _name: str
    _namespace: str
    _target: LogTarget
    _max_line_bytes: int
    _on_retry: WatchErrorHandler | None
    _random: random.Random = attrs.field(factory=new_generator, init=False)
    _pacing: Pacing = attrs.field(init=False)
    _splitter: LineSplitter = attrs.field(init=False)
    _received: ReceivedLines = attrs.field(factory=ReceivedLines, init=False)
    _slices: Slices = attrs.field(factory=Slices, init=False)
    _phase: _Phase = attrs.field(default=_Phase.CONNECTING, init=False)
    _body: ByteStream | None = attrs.field(default=None, init=False)
    _connection: AsyncExitStack | None = attrs.field(default=None, init=False)
    _lines: deque[LogLine] = attrs.field(factory=deque, init=False)
    """Received lines that the program has not read yet."""
    _last: list[Piece] = attrs.field(factory=list, init=False)
    """The last line of the last response if it had no line end."""
    _stamp: tuple[int, str] = attrs.field(default=(-1, ""), init=False)
    """The time of the current line, which all its pieces share."""
    _found: Instance = attrs.field(default=Instance.RUNNING, init=False)
    """The state of the instance, which decides the next request."""
    _opened_at: float = attrs.field(default=math.inf, init=False)
    """The time of the first request."""
    _silent_since: float = attrs.field(default=math.inf, init=False)
    """The time of the first request that returned no line for a while, so that no line can be older."""
    _answered_at: float = attrs.field(default=-math.inf, init=False)
    """The time when the last response started."""
    _was_accepted: bool = attrs.field(default=False, init=False)
    """Whether a request has succeeded."""
    _rejections: int = attrs.field(default=0, init=False)
    _has_unstamped: bool = attrs.field(default=False, init=False)
    _is_reading: bool = attrs.field(default=False, init=False)
    _error: Exception | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._pacing = Pacing(None, self._random)
        self._splitter = LineSplitter(self._max_line_bytes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._where}: {self._phase.value}>"

    def __aiter__(self) -> LogLines:
        return self

    async def __anext__(self) -> LogLine:
        if not self._lines:
            self._lines.extend(await self._receive())
            if not self._lines:
                raise StopAsyncIteration
        elif self._slices.is_over():
            await self._slices.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        return self._lines.popleft()

    async def receive_batch(self) -> list[LogLine]:
        """Wait for lines, and return all received lines, or an empty list at the end of the log.

        Raises:
            BadRequestError: The container does not exist or has not started yet, or the pod is not assigned to a node
                yet.
            InternalServerError: The API server could not connect to the node for the first request.
            StatusError: The server rejected the request, and a retry cannot help, for example because a permission is
                missing.
            ConnectionFailedError: The connection broke, and the lines have no timestamps to resume from.
            trio.ClosedResourceError: The block has ended.
            trio.BusyResourceError: Another task is receiving.

        Cancellation:
            Closes the connection, but no line is lost.  The next read resumes after the last line, at least one second
            after the last request.
        """
        if self._lines:
            await trio.lowlevel.checkpoint_if_cancelled()
            lines = list(self._lines)
            self._lines.clear()
            return lines
        return await self._receive()

    async def _receive(self) -> list[LogLine]:
        if self._is_reading:
            raise trio.BusyResourceError("another task is already receiving the lines of this log")
        self._is_reading = True
        try:
            while True:
                await trio.lowlevel.checkpoint_if_cancelled()
                self._require_open()
                if self._error is not None:
                    raise self._error
                if self._phase is _Phase.ENDED:
                    return []
                if lines := await self._step():
                    return lines
        finally:
            self._is_reading = False

    async def _step(self) -> list[LogLine]:
        """Execute one step of the loop: wait, connect, read, or check the pod."""
        try:
            match self._phase:
                case _Phase.WAITING:
                    await self._pacing.sleep(self._wait_to_retry)
                    self._move(_Phase.CHECKING)
                case _Phase.CHECKING:
                    return await self._check()
                case _Phase.CONNECTING:
                    await self._connect()
                case _Phase.CONFIRMING:
                    await self._confirm()
                case _:
                    body = self._body
                    assert body is not None
                    data = await body.receive_some()
                    # no checkpoint between receiving the bytes and remembering the lines
                    return self._take(self._splitter.feed(data)) if data else await self._handle_end(body)
        except REQUEST_ERRORS as error:
            await self._disconnect()
            return self._handle_failure(error)
        except BaseException:
            if self._phase is _Phase.CONFIRMING:
                raise  # the body was not touched, and can be read later
            # Usually Cancelled, after which the body cannot be read.
            await self._disconnect()
            self._pacing.limit_rate()
            if self._phase in (_Phase.READING, _Phase.CHECKING):
                self._phase = _Phase.WAITING
            raise
        return []

    def _move(self, phase: _Phase) -> None:
        """Enter a phase, unless the block has ended during a wait."""
        self._require_open()
        self._phase = phase

    def _require_open(self) -> None:
        if self._phase is _Phase.CLOSED:
            raise trio.ClosedResourceError("these lines are closed: their `async with` block has ended")

    async def _connect(self) -> None:
        await self._pacing.sleep(self._wait_to_retry)
        self._require_open()
        self._pacing.record_request()
        is_first = self._opened_at == math.inf
        if is_first:
            # Before the response: a kubelet sends its headers together with the first line.
            self._opened_at = trio.current_time()
        params = self._params if is_first else self._resumed_params()
        connection = AsyncExitStack()
        body = await connection.enter_async_context(self._open({**params, **_FLAGS.get(self._found, {})}))
        # no checkpoint between opening the connection and storing it
        self._body, self._connection = body, connection
        self._require_open()
        self._answered_at = trio.current_time()
        self._was_accepted = True
        self._splitter.clear()
        self._pacing.record_accepted()
        if not is_first:
            self._received.begin_repetition()
        if is_first or self._found is Instance.FINISHED:
            self._begin_reading()
        else:
            self._phase = _Phase.CONFIRMING

    def _resumed_params(self) -> dict[str, str]:
        """Return query parameters for a request that misses no line."""
        own = {key: value for key, value in self._params.items() if key in ("container", "timestamps")}
        if since := self._received.since:
            return own | {"sinceTime": since}
        # Nothing was received so far: every line that the first request did not exclude is new.
        now, tail = trio.current_time(), self._params.get("tailLines")
        begin = self._opened_at if tail == "0" else self._silent_since
        if tail is not None and begin != math.inf:
            return own | {"sinceSeconds": str(math.ceil(now - begin) + 1)}
        if (seconds := self._params.get("sinceSeconds")) is not None:
            return self._params | {"sinceSeconds": str(int(seconds) + math.ceil(now - self._opened_at) + 1)}
        return dict(self._params)

    async def _disconnect(self) -> None:
        if self._phase is _Phase.READING and not self._received.since and not self._pacing.is_very_short:
            self._silent_since = min(self._silent_since, trio.current_time() - self._pacing.duration)
        connection, self._connection, self._body = self._connection, None, None
        if connection is not None:
            await connection.aclose()

    # --- received lines ---

    def _take(self, pieces: list[Piece]) -> list[LogLine]:
        """Convert pieces to lines, and return only the new lines."""
        lines: list[LogLine] = []
        for piece in pieces:
            data = piece.data
            if piece.index == 0:
                instant, stamp, data = split_stamp(data)
                self._stamp = instant, stamp
                self._has_unstamped |= instant < 0
            instant, stamp = self._stamp
            if instant >= 0 and not self._received.is_new(instant, (data, piece.index)):
                continue
            lines.append(
                LogLine(
                    data=data,
                    timestamp=stamp,
                    pod=self._name,
                    namespace=self._namespace,
                    container=self._target.container,
                    is_cut=not piece.is_last,
                )
            )
        if lines:
            self._rejections = 0
            self._pacing.record_delivery()
        return lines

    async def _handle_end(self, body: ByteStream) -> list[LogLine]:
        """Handle the end of a response."""
        await self._disconnect()
        self._require_open()
        if body.is_cut_off:
            what = "the stream ended because the client certificate changed"
            return self._handle_failure(ConnectionFailedError(f"{self._where}: {body.server}: {what}"))
        if self._found is not Instance.RUNNING:
            return self._end(self._splitter.end())
        self._last = self._splitter.end()
        self._pacing.set_wait(Wait.PAUSE)
        self._phase = _Phase.CHECKING
        return []

    def _end(self, pieces: list[Piece]) -> list[LogLine]:
        lines = self._take(pieces)
        self._phase = _Phase.ENDED
        return lines

    def _end_without_rest(self, found: Instance) -> list[LogLine]:
        if found is Instance.LOST:
            self._report(lost(self._where, self._name))
        return self._end(self._last)

    # --- the pod ---

    async def _find(self) -> Instance:
        """Read the pod, and return the state of the instance."""
        try:
            found = self._target.find_in(await self._get())
        except NotFoundError as error:
            if error.is_unexpected_server_error:
                raise
            found = Instance.GONE
        self._require_open()
        return found

    async def _check(self) -> list[LogLine]:
        """Choose the next request depending on the status of the pod."""
        self._pacing.record_request()
        found = await self._find()
        if found in (Instance.GONE, Instance.ANOTHER, Instance.LOST):
            return self._end_without_rest(found)
        if found is Instance.RUNNING and self._has_unstamped and not self._received.since:
            what = "the connection broke, and the lines have no timestamps to resume from"
            self._fail(ConnectionFailedError(f"{self._where}: {what}"))
            return []
        self._found, self._phase = found, _Phase.CONNECTING
        return []

    async def _confirm(self) -> None:
        """Check that the response is from the log of the followed instance."""
        await trio.sleep_until(self._answered_at + STATUS_DELAY)
        self._require_open()
        found = await self._find()
        if found in (Instance.ANOTHER, Instance.LOST):
            self._phase = _Phase.CHECKING
        elif found is Instance.REPLACED and self._found is not found:
            self._found, self._phase = found, _Phase.CONNECTING
        else:
            self._begin_reading()
            return
        await self._disconnect()

    def _begin_reading(self) -> None:
        self._phase = _Phase.READING
        if self._found is Instance.RUNNING:
            self._last = []

    # --- failures ---

    def _handle_failure(self, error: TrioformerError) -> list[LogLine]:
        """Schedule a retry after an error, or raise the error if a retry cannot help."""
        self._require_open()
        # The first request is retried only if no response arrived.
        if not (self._was_accepted or outcome_of(error) is Outcome.LOST):
            self._fail(error)
            raise error
        is_refused = isinstance(error, BadRequestError | NotFoundError) and self._phase is _Phase.CONNECTING
        if is_refused and self._found is not Instance.RUNNING:
            return self._end(self._last)  # the node has removed the log
        self._rejections += is_refused
        if self._rejections > MAX_REJECTIONS or (is_permanent(error) and not is_refused):
            self._fail(error)
            raise error
        self._pacing.set_wait(
            Wait.RECONNECT if outcome_of(error) is Outcome.LOST else Wait.BACK_OFF, retry_after(error, self._random)
        )
        self._phase = _Phase.WAITING
        self._report(error)
        return []

    def _report(self, error: TrioformerError) -> None:
        if self._on_retry is not None:
            self._on_retry(error)
        else:
            log_failure(logger, error)

    def _fail(self, error: Exception) -> None:
        self._error, self._phase = error, _Phase.FAILED

    async def _aclose(self) -> None:
        self._phase = _Phase.CLOSED
        await self._disconnect()


@asynccontextmanager
async def open_log_lines(
    *,
    where: str,
    open_log: OpenLog,
    get: Callable[[], Awaitable[Pod]],
    get_once: Callable[[], Awaitable[Pod]],
    wait_to_retry: Callable[[float], Awaitable[None]],
    params: dict[str, str],
    name: str,
    namespace: str,
    uid: str,
    restart_count: int | None,
    max_line_bytes: int,
    on_retry: WatchErrorHandler | None,
) -> AsyncGenerator[LogLines, None]:
    """Read the pod, and yield the lines of a log; see :func:`follow_logs`."""
    check_max_line_bytes(max_line_bytes)
    pod = await get()
    container = params.get("container") or default_container(pod)
    if container is None:
        raise several_containers(where, pod)
    target = LogTarget.of(pod, container)
    restarts = target.restarts if restart_count is None else restart_count
    target = attrs.evolve(target, uid=uid or target.uid, restarts=restarts)
    found = target.find_in(pod)
    if found is Instance.ANOTHER:
        raise replaced(where, name)
    params = params | {"container": container, "timestamps": "true"}
    lines = LogLines._create(
        where, open_log, get_once, wait_to_retry, params, name, namespace, target, max_line_bytes, on_retry
    )
    if found is Instance.REPLACED:
        lines._found = found
    elif found is Instance.LOST:
        lines._phase = _Phase.CHECKING  # the first read reports it
    try:
        yield lines
    finally:
        await lines._aclose()
