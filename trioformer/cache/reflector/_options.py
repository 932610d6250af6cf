"""The options of a reflector."""

from __future__ import annotations

import logging
from typing import final

import attrs

from ..._retry import MAX_SILENCE, BackoffPolicy, WatchErrorHandler
from ...client._internal import UndecodableHandler

MIN_MAX_SILENCE = 20.0
"""The smallest ``max_silence`` in seconds.  Smaller values would restart watches all the time."""

logger = logging.getLogger("trioformer.cache")


@final
@attrs.frozen(kw_only=True)
class ReflectorOptions:
    """Options of a reflector for listing, watching and handling failures."""

    backoff: BackoffPolicy = attrs.field(factory=BackoffPolicy)
    """The delays between requests after failures."""
    grace_period: float = 30.0
    """How long permanent errors such as 403 are retried before the first sync, in seconds.  After that, they are
    raised."""
    retry_forever: bool = False
    """Whether to retry after permanent errors forever, as client-go does, instead of raising them.

    If true, an informer also continues when a transform or an index function fails on every object of the first list.
    By default, the error is raised when all namespaces have been listed and there are at least three objects.
    """
    watch_list: bool = False
    """Whether to request a watch-list (KEP-3157, client-go's ``WatchListClient``) instead of a list.

    If the server does not support watch-lists, the reflector sends a list request. For the server, a watch-list needs
    less memory than a list, but 1.7 times the CPU time.  Caches that are divided by shares always use lists.
    """
    max_silence: float = attrs.field(
        default=MAX_SILENCE,
        validator=[attrs.validators.ge(MIN_MAX_SILENCE), attrs.validators.le(MAX_SILENCE)],
    )
    """The time without data after which a watch is resumed, in seconds, if the server is known to send bookmarks.

    A value below the default also applies to servers without bookmarks.  The reflector then requests watches that are
    a little shorter, which costs one cheap request every ``max_silence`` seconds.
    """
    stale_after: float = 120.0
    """The time without an open watch after which an informer is not healthy, in seconds."""
    watch_error_handler: WatchErrorHandler | None = None
    """A function that is called with each failure, except silent watches.  If None, failures are logged."""
    undecodable_handler: UndecodableHandler | None = None
    """A function that is called with each undecodable state of an object, including its bytes.

    An informer also logs each undecodable object, without its bytes, when it puts the object into quarantine.
    """
