"""How a reflector behaves, and what it says of itself."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Literal, TypeAlias, final

import attrs

from ..._retry import LONGEST_SILENCE, BackoffPolicy
from ...client import Undecodable

WatchErrorHandler: TypeAlias = Callable[[Exception], None]
"""Told of every failure that the reflector goes on from; must be quick."""

UndecodableHandler: TypeAlias = Callable[[Undecodable], None]
"""Told of every object that the reflector leaves out because it does not decode; must be quick."""

Phase: TypeAlias = Literal[
    "not started",
    "connecting",
    "listing",
    "streaming",
    "waiting for bookmark",
    "watching",
    "backing off",
    "stopped",
    "failed",
]
"""What an informer is doing, from its start to its end."""

SHORTEST_SILENCE = 20.0
"""Seconds below which watches would be made anew all the time."""

logger = logging.getLogger("trioformer.cache")


def _log_undecodable(lost: Undecodable) -> None:
    # Never its bytes: they may be a secret's.
    logger.warning("%s %s does not decode and is left out: %s", lost.kind, lost.key or "without a key", lost.error)


@final
@attrs.frozen(kw_only=True)
class ReflectorOptions:
    """How a reflector behaves, above all when things go wrong."""

    backoff: BackoffPolicy = attrs.field(factory=BackoffPolicy)
    """The delays between tries."""
    grace_period: float = 30.0
    """Before the first sync: seconds of nothing but answers that waiting does not mend, before one is raised."""
    retry_forever: bool = False
    """Never raise them; client-go's behaviour."""
    stream_lists: bool = True
    """Ask for the first list as a stream (KEP-3157, client-go's ``WatchListClient``) where the server has that."""
    internal_error_retry: float = 0.0
    """Seconds for which internal errors in a running watch are answered by watching again instead of a new list."""
    max_silence: float = attrs.field(
        default=LONGEST_SILENCE,
        validator=[attrs.validators.ge(SHORTEST_SILENCE), attrs.validators.le(LONGEST_SILENCE)],
    )
    """Seconds without a word after which a watch is broken and resumed, once it is known that bookmarks come.

    Below the default the guard no longer waits for bookmarks; instead each watch is asked to be a little shorter than
    this, which costs one cheap request every ``max_silence`` seconds.
    """
    stale_after: float = 120.0
    """Seconds without an open watch after which an informer is not healthy any more."""
    watch_error_handler: WatchErrorHandler | None = None
    """Told of every failure; by default they are logged."""
    undecodable_handler: UndecodableHandler = _log_undecodable
    """Told of every object that does not decode; by default its key is logged, and never its bytes."""


@final
@attrs.frozen
class ReflectorStatistics:
    """What a reflector is doing, and how well."""

    state: Phase
    """What it is doing."""
    last_error: Exception | None
    """The newest failure; None after a success."""
    failures_in_a_row: int
    """Failures since the last success."""
    retry_at: float
    """When backing off ends, on trio's clock; infinity otherwise."""
    last_contact: float
    """When the server last sent anything, on trio's clock; minus infinity before it first did."""
    in_step_at: float
    """When the cache was last known to be the server's state; minus infinity before the first list.

    While a watch is open that is now, since what happens next will be told by it; unless the cache cannot take what it
    is told, or is too far behind to be told more.
    """
    lists: int
    """Successful lists, streamed ones included."""
    watches: int
    """Watches that the server accepted."""
    events: int
    """Events, bookmarks included."""
    undecodable: int
    """Objects that were left out because they do not decode."""
    resource_version: str
    """Where a watch would resume."""


@final
@attrs.frozen
class InformerState:
    """What an informer is doing, and how old what it holds may be; ``str()`` says it in words."""

    phase: Phase
    """What it is doing."""
    error: Exception | None = None
    """Why, when it is backing off or has failed; otherwise the newest failure that nothing has made good yet."""
    until: float = math.inf
    """When backing off ends, on trio's clock; infinity otherwise."""
    age: float = math.inf
    """Seconds since the cache was last known to be the server's state: 0 while a watch is open, infinity before any."""

    def __str__(self) -> str:
        words: str = self.phase
        if self.error is not None:
            words += f" after {self.error}"
        if self.phase not in ("not started", "watching") and 0 < self.age < math.inf:
            words += f"; the data is {self.age:.0f} s old"
        return words
