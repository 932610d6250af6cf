"""The types that describe bad objects, which the cache cannot store."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable
from typing import Final, final

import attrs
import trio

from .._text import one_line, suppressed_lines
from .._util import LogLimit
from ..models import KubernetesObject, key_of

logger = logging.getLogger("trioformer.cache")

MAX_NAMED: Final = 5
"""The largest number of objects that a text names; further objects are only counted."""

WARNING_PERIOD: Final = 60.0
"""The shortest time between two log lines of a listener or lister for the same class of error, in seconds."""

MAX_KEY: Final = 600
"""The largest number of characters of a key in a text; a namespace and a name have at most 253 each."""


class QuarantineReason(enum.StrEnum):
    """The reason why an object is in quarantine."""

    UNDECODABLE = "undecodable"
    """The server sent something that is not an object of the kind, or the transform or an index function read a field
    of the wrong type."""
    TRANSFORM_FAILED = "transform failed"
    """The transform raised an exception, or changed the identity of the object."""
    INDEX_FAILED = "index function failed"
    """An index function raised an exception, or did not return strings."""


@final
@attrs.frozen
class BadObject:
    """A bad object: an object whose newest state the cache cannot store."""

    key: str
    """The key of the object: ``namespace/name``, or ``name`` for a cluster-scoped kind."""
    reason: QuarantineReason
    """The reason why the cache cannot store the object."""
    error: Exception
    """The error, with a text that contains only the key of the object."""
    resource_version: str = ""
    """The resourceVersion of the state, or an empty string if it is unknown."""


@final
@attrs.frozen
class Quarantined:
    """An object in quarantine."""

    key: str
    """The key of the object: ``namespace/name``, or ``name`` for a cluster-scoped kind."""
    reason: QuarantineReason
    """The reason why the cache cannot store the newest state of the object."""
    since: float
    """The time when the object was put into quarantine, on trio's clock; a later bad state does not change it."""
    error: str
    """The error as text, without the content of the object."""
    is_stored: bool
    """Whether the cache has an earlier state, which ``lister.get(…, allow_stale=True)`` returns."""
    resource_version: str = ""
    """The resourceVersion of the bad state, or an empty string if it is unknown."""

    def __str__(self) -> str:
        return f"{one_line(self.key, longest=MAX_KEY)} ({self.reason})"


@final
@attrs.define(eq=False)
class UndecodableLog:
    """A log of the objects that a listener or a lister cannot decode, with one line per class of error and period.

    Args:
        name: The name of the listener or lister in log messages.
        clock: A function that returns the current time.
    """

    name: str
    _clock: Callable[[], float] = trio.current_time
    _limit: LogLimit = attrs.field(
        default=attrs.Factory(lambda self: LogLimit(WARNING_PERIOD, clock=self._clock), True), init=False
    )

    def warn(self, obj: KubernetesObject, error: Exception) -> None:
        """Log that an object was skipped, or count it for the next log line."""
        key = one_line(key_of(obj), longest=MAX_KEY)
        if count := self._limit.count(type(error).__name__, key):
            others = suppressed_lines(count - 1)
            logger.warning("%s skipped %s: %s%s", self.name, key, one_line(str(error)), others)

    def log_rest(self) -> None:
        """Log the skipped objects that were only counted, when a listener ends."""
        for error, count, key in self._limit.sum_up():
            logger.warning("%s skipped %s: %s%s", self.name, key, error, suppressed_lines(count))


def in_words(count: int, first: Iterable[Quarantined]) -> str:
    """Return a text that states the number of objects in quarantine and lists the first few keys."""
    named = [str(each) for each in first]
    if count > len(named):
        named.append(f"and {count - len(named)} more")
    return f"{count} in quarantine: {', '.join(named)}"
