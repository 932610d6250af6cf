"""Objects that the cache cannot take: what the stages pass on about them, and what users see of them."""

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
"""How many objects a text names; it counts the others."""

WARNING_PERIOD: Final = 600.0
"""Seconds between two lines about the objects that one listener or lister cannot decode."""

MAX_KEY: Final = 600
"""Characters of a key in a text; a namespace and a name have 253 each at most."""


class QuarantineReason(enum.StrEnum):
    """Why an object is in quarantine."""

    UNDECODABLE = "undecodable"
    """The server sent something that is not an object of the kind, or a field that the transform or an index function
    reads is not of its type."""
    TRANSFORM_FAILED = "transform failed"
    """The transform raised an exception, or changed the identity of the object."""
    INDEX_FAILED = "index function failed"
    """An index function raised an exception, or returned something else than strings."""


@final
@attrs.frozen
class BadObject:
    """The newest state of an object, which the cache cannot take."""

    key: str
    """``namespace/name``, or ``name``."""
    reason: QuarantineReason
    """Why."""
    error: Exception
    """The error, whose text has no content of the object."""
    resource_version: str = ""
    """The version of the state; empty if it is not known."""


@final
@attrs.frozen
class Quarantined:
    """An object in quarantine."""

    key: str
    """``namespace/name``, or ``name``."""
    reason: QuarantineReason
    """Why the cache cannot take its newest state."""
    since: float
    """Since when, on trio's clock; a state that is bad for another reason does not change it."""
    error: str
    """The error in words, without content of the object."""
    is_stored: bool
    """Whether a state is in the cache, which ``lister.get(…, allow_stale=True)`` returns."""
    resource_version: str = ""
    """The version of the bad state; empty if it is not known."""

    def __str__(self) -> str:
        return f"{one_line(self.key, longest=MAX_KEY)} ({self.reason})"


@final
@attrs.define(eq=False)
class UndecodableLog:
    """Logs the objects that a listener or a lister cannot decode: one line a period, with a count.

    Args:
        name: Who cannot decode them.
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
    """Count the objects in quarantine, and name the first of them."""
    named = [str(each) for each in first]
    if count > len(named):
        named.append(f"and {count - len(named)} more")
    return f"{count} in quarantine: {', '.join(named)}"
