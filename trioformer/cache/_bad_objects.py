"""Bad objects, which the cache cannot store: the stages pass on their keys, and users see them in quarantine."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable
from typing import Final, final

import attrs

from .._text import one_line
from .._util import LogLimit
from ..models import KubernetesObject, key_of

logger = logging.getLogger("trioformer.cache")

MAX_NAMED: Final = 5
"""The number of objects that a text names; it counts the others."""

WARNING_PERIOD: Final = 600.0
"""Seconds between two log lines of one listener or lister about undecodable objects."""

MAX_KEY: Final = 600
"""The longest key in a text, characters; a namespace and a name have at most 253 each."""


class QuarantineReason(enum.StrEnum):
    """Why an object is in quarantine."""

    UNDECODABLE = "undecodable"
    """The server sent something that is not an object of the kind, or a field of the wrong type that the transform or
    an index function reads."""
    TRANSFORM_FAILED = "transform failed"
    """The transform raised an exception, or changed the identity of the object."""
    INDEX_FAILED = "index function failed"
    """An index function raised an exception, or did not return strings."""


@final
@attrs.frozen
class BadObject:
    """The newest state of an object that the cache cannot store."""

    key: str
    """``namespace/name``, or ``name``."""
    reason: QuarantineReason
    """Why the cache cannot store it."""
    error: Exception
    """The error; its text contains nothing of the object but the key."""
    resource_version: str = ""
    """The version of the state; empty if it is unknown."""


@final
@attrs.frozen
class Quarantined:
    """An object in quarantine."""

    key: str
    """``namespace/name``, or ``name``."""
    reason: QuarantineReason
    """Why the cache cannot store its newest state."""
    since: float
    """When it got into quarantine, on trio's clock; a later bad state does not change this."""
    error: str
    """The error as text, without the content of the object."""
    is_stored: bool
    """Whether the cache has an earlier state, which ``lister.get(…, allow_stale=True)`` returns."""
    resource_version: str = ""
    """The version of the bad state; empty if it is unknown."""

    def __str__(self) -> str:
        return f"{one_line(self.key, longest=MAX_KEY)} ({self.reason})"


@final
@attrs.define(eq=False)
class UndecodableLog:
    """Logs the objects that a listener or a lister cannot decode: one line in each period, with a count.

    Args:
        name: The listener or lister, for the log line.
    """

    name: str
    _limit: LogLimit = attrs.field(factory=lambda: LogLimit(WARNING_PERIOD), init=False)

    def warn(self, obj: KubernetesObject, error: Exception) -> None:
        """Log that an object was skipped, or count it for the next line."""
        if count := self._limit.count(None):
            others = f" (and {count - 1} times since the last such line)" if count > 1 else ""
            key = one_line(key_of(obj), longest=MAX_KEY)
            logger.warning("%s skipped %s%s: %s", self.name, key, others, one_line(str(error)))


def in_words(count: int, first: Iterable[Quarantined]) -> str:
    """Return the number of objects in quarantine and the keys of the first ones, as text."""
    named = [str(each) for each in first]
    if count > len(named):
        named.append(f"and {count - len(named)} more")
    return f"{count} in quarantine: {', '.join(named)}"
