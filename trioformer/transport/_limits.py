"""Limits of what a server may send, so that a hostile or broken one neither fills the memory nor stalls the program.

The defaults are far above what a cluster sends.
Each part of the transport and of the client checks the limits of what it reads, at the least once for each chunk.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, final

import attrs
import trio

from ..errors import LimitExceededError

MIB: Final = 1024 * 1024


def _check_count(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"Limits.{attribute.name} must be a positive int, not {value!r}")


def _check_period(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if type(value) not in (int, float) or not value > 0:
        raise ValueError(f"Limits.{attribute.name} must be a positive number of seconds, not {value!r}")


def _count(default: int) -> int:
    return attrs.field(default=default, validator=_check_count)


def _period(default: float) -> float:
    return attrs.field(default=default, validator=_check_period)


@final
@attrs.frozen(kw_only=True)
class Limits:
    """Limits of what a server may send; what exceeds one raises :class:`~trioformer.errors.LimitExceededError`.

    No honest cluster reaches a default.
    A program whose server is right all the same raises that limit::

        from trioformer.transport import Limits

        async with open_client(limits=Limits(list_pages=1_000_000)) as client:
            ...

    Raises:
        ValueError: A value is not positive, or not of its type.
    """

    response_bytes: int = _count(8 * MIB)
    """Bytes of a complete response, such as one object, or the list of all resources of a server.

    etcd refuses requests of more than 1.5 MB unless it is configured otherwise.
    Of the body of an error, the first 256 KiB are read, and the rest is ignored.
    """
    discovery_bytes: int = _count(2 * MIB)
    """Bytes of the resource list of one version of an API group: about 300 for each resource."""
    log_bytes: int = _count(256 * MIB)
    """Bytes of the log of a container that is read as a whole; a log that is followed has none.

    A node keeps 10 MiB of a log in one file, unless it is configured otherwise.
    """
    list_bytes: int = _count(4096 * MIB)
    """Bytes of one page of a list; a list without pages is one page.

    150,000 pods, the most that Kubernetes supports, are 1.5 GB.
    """
    item_bytes: int = _count(8 * MIB)
    """Bytes of one object in a list.

    An informer puts a larger object in quarantine, by its key, and takes the others.
    A scan of this many bytes holds up other tasks for 40 ms at worst.
    """
    undecodable_items: int = _count(10_000)
    """Objects of a list that are reported because they cannot be decoded; each takes memory, and may have two bytes.

    A list in which more are bad, such as all those of a kind whose conversion is broken, fails with an error.
    """
    list_pages: int = _count(100_000)
    """Pages of one list: 50 million objects in pages of the usual size."""
    frame_bytes: int = _count(8 * MIB)
    """Bytes of one event of a watch; client-go reads 16 MB (``streaming.ErrObjectTooLarge``), and no more either.

    An informer puts the object of a larger event in quarantine, by its key, and takes the other events.
    """
    header_bytes: int = _count(64 * 1024)
    """Bytes of the status line and the headers of a response, and of the trailers after a body.

    nginx allows 8 KiB by default.
    """
    headers: int = _count(1_000)
    """Lines of the same; an API server sends about ten."""
    interim_responses: int = _count(16)
    """Responses of codes 100 to 199 before the one to a request; Go's client allows five, and API servers send none."""
    header_period: float = _period(60.0)
    """Seconds in which the status line and the headers must arrive, once they have begun; not for what follows them."""
    body_period: float = _period(120.0)
    """Seconds of waiting for a body in which :attr:`body_progress` bytes of it must arrive; not for watches.

    Between two bytes a server may take 90 s.
    The time that the program takes does not count, and a server is not blamed while other tasks hold up the program.
    """
    body_progress: int = _count(4096)
    """Bytes of a body that must arrive in :attr:`body_period`, unless the body ends: 34 a second."""


DEFAULT_LIMITS: Final = Limits()


def check_limits(limits: object) -> None:
    """Check the type of the limits that a program has given.

    Raises:
        TypeError: They are a dictionary, for example.
    """
    if not isinstance(limits, Limits):
        name = type(limits).__name__
        raise TypeError(f"limits must be Limits(...) of trioformer.transport, not an object of {name}")


class LimitPassedError(Exception):
    """A limit is exceeded below httpx, where the name of the server is not known; becomes a LimitExceededError.

    Attributes:
        limit: The name of the field of :class:`Limits`.
        value: Its value.
        what: What has exceeded it.
    """

    def __init__(self, limit: str, value: float, what: str) -> None:
        super().__init__(what)
        self.limit: str = limit
        self.value: float = value
        self.what: str = what


def limit_exceeded(where: str, limits: Limits, limit: str, what: str) -> LimitExceededError:
    """Make the error for a limit that is exceeded.

    Args:
        where: The server or the operation.
        limits: The limits in force.
        limit: The name of the field.
        what: What has exceeded it.
    """
    return limit_error(where, limit, getattr(limits, limit), what)


def limit_error(where: str, limit: str, value: float, what: str) -> LimitExceededError:
    """Make the error for a limit whose value is known."""
    is_minimum = limit == "body_progress"
    than, change = ("less than", "lower it, or raise body_period") if is_minimum else ("more than", "raise it")
    advice = f"if the server is right, {change}: open_client(..., limits=Limits({limit}=…))"
    prefix = f"{where}: " if where else ""
    return LimitExceededError(f"{prefix}{what}, {than} Limits.{limit} ({value:.15g}); {advice}", limit=limit)


_LATE: Final = 0.1
"""Seconds after a deadline at which it must be noticed; otherwise this program was held up."""


@final
class Patience:
    """Until when a part of a response must arrive.

    While other tasks hold up the program, or the whole process is stopped, the server cannot be blamed.
    So a deadline that is noticed late, or with data at hand, is followed by another period.

    Args:
        period: Seconds from now.
        error: Makes the error of a part that has not arrived.

    Attributes:
        deadline: When it must have arrived.
    """

    __slots__ = ("_error", "_period", "deadline")

    def __init__(self, period: float, error: Callable[[], LimitPassedError]) -> None:
        self._period = period
        self._error = error
        self.deadline: float = trio.current_time() + period

    def extend(self, *, has_data: bool) -> None:
        """Begin another period, after the deadline.

        Args:
            has_data: Whether there is something to receive.

        Raises:
            LimitPassedError: The server is too slow.
        """
        now = trio.current_time()
        if not has_data and now <= self.deadline + _LATE:
            raise self._error()
        self.deadline = now + self._period


class BodyReceiver:
    """A connection that applies the deadline of the body which it receives.

    Attributes:
        body_patience: The deadline; None until the next request if it has none.
    """

    body_patience: Patience | None = None


@final
class BodyMeter:
    """Measures one body: how long it is, and how fast it arrives while the program waits for it.

    Args:
        limits: The limits.
        limit: The name of the field that limits the bytes.

    Attributes:
        patience: The deadline of :meth:`receive`.
        is_watched: Whether whoever waits for the socket applies the deadline, which knows whether data is at hand.
    """

    __slots__ = ("_left", "_limit", "_limits", "_progress", "_wait", "is_watched", "patience")

    def __init__(self, limits: Limits, limit: str) -> None:
        self._limits = limits
        self._limit = limit
        self._left: int = getattr(limits, limit)
        self._progress = 0
        self._wait = limits.body_period
        self.patience: Patience = Patience(limits.body_period, self._too_slow)
        self.is_watched: bool = False

    async def receive(self, receive: Callable[[], Awaitable[bytes]]) -> bytes:
        """Receive the next bytes.

        Raises:
            LimitPassedError: The body arrives too slowly; ``receive`` was cancelled.
        """
        patience = self.patience
        patience.deadline = trio.current_time() + self._wait
        data = b""
        if self.is_watched:
            data = await receive()
        else:
            with trio.CancelScope(deadline=patience.deadline) as scope:
                data = await receive()
            if scope.cancelled_caught:
                raise self._too_slow()
        self._progress += len(data)
        self._wait = patience.deadline - trio.current_time()
        # Data that was received after the deadline may have waited for this program.
        if self._progress >= self._limits.body_progress or self._wait <= 0:
            self._progress, self._wait = 0, self._limits.body_period
        return data

    def _too_slow(self) -> LimitPassedError:
        what = f"the body arrives too slowly: {self._progress} bytes in {self._limits.body_period:g} s"
        return LimitPassedError("body_progress", self._limits.body_progress, what)

    def check(self, data: bytes) -> None:
        """Count bytes that have been received.

        Raises:
            LimitPassedError: The body is too long.
        """
        self._left -= len(data)
        if self._left < 0:
            raise LimitPassedError(self._limit, getattr(self._limits, self._limit), "the body is too long")


@final
class Bounded:
    """Limit the time of a block, and raise the exceptions that httpcore expects of a backend.

    A class, because each request has three such blocks, and a generator with ``fail_after`` costs three times as much.
    """

    __slots__ = ("_broken", "_scope", "_too_slow")

    def __init__(self, patience: float | None, too_slow: type[Exception], broken: type[Exception]) -> None:
        is_limited = patience is not None and patience != math.inf
        self._scope = trio.move_on_after(patience) if is_limited else None  # type: ignore[arg-type]  # it is not None
        self._too_slow = too_slow
        self._broken = broken

    def __enter__(self) -> None:
        if self._scope is not None:
            self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._scope is not None:
            self._scope.__exit__(kind, error, traceback)
            if self._scope.cancelled_caught:
                too_slow = trio.TooSlowError()
                raise self._too_slow(too_slow) from too_slow
        if isinstance(error, OSError | trio.BrokenResourceError | trio.ClosedResourceError | ValueError):
            # An ssl.SSLError is an OSError.  A ValueError, such as a UnicodeError, is about a name for DNS or TLS.
            raise self._broken(error) from error
