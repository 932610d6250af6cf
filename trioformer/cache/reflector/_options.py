"""How a reflector behaves: its options and the types of their callbacks."""

from __future__ import annotations

import logging
from typing import final

import attrs

from ..._retry import MAX_SILENCE, BackoffPolicy, WatchErrorHandler
from ...client import Undecodable, UndecodableHandler

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
    watch_list: bool = True
    """Ask for the first list as a stream (KEP-3157, client-go's ``WatchListClient``) where the server has that."""
    internal_error_retry: float = 0.0
    """Seconds for which internal errors in a running watch are answered by watching again instead of a new list."""
    max_silence: float = attrs.field(
        default=MAX_SILENCE,
        validator=[attrs.validators.ge(SHORTEST_SILENCE), attrs.validators.le(MAX_SILENCE)],
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
