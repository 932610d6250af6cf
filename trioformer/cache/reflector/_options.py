"""The options of a reflector."""

from __future__ import annotations

import logging
from typing import final

import attrs

from ..._retry import MAX_SILENCE, BackoffPolicy, WatchErrorHandler
from ...client._internal import UndecodableHandler

MIN_MAX_SILENCE = 20.0
"""The least ``max_silence``, seconds; shorter limits would restart watches all the time."""

logger = logging.getLogger("trioformer.cache")


@final
@attrs.frozen(kw_only=True)
class ReflectorOptions:
    """How a reflector lists and watches, and how it handles failures."""

    backoff: BackoffPolicy = attrs.field(factory=BackoffPolicy)
    """The delays between requests after failures."""
    grace_period: float = 30.0
    """Before the first sync, a permanent error such as 403 is raised if there were only permanent errors for this long,
    seconds."""
    retry_forever: bool = False
    """Never raise permanent errors, as client-go does.

    Also do not raise the error of a transform or an index function that fails on every object of the first list.  By
    default it is raised when all namespaces have been listed, if there are at least three objects.
    """
    watch_list: bool = False
    """Whether to request a watch-list (KEP-3157, client-go's ``WatchListClient``) instead of a list.

    If the server does not support watch-lists, the reflector lists.
    A watch-list saves the server memory, but costs it 1.7 times the CPU.
    """
    max_silence: float = attrs.field(
        default=MAX_SILENCE,
        validator=[attrs.validators.ge(MIN_MAX_SILENCE), attrs.validators.le(MAX_SILENCE)],
    )
    """Seconds without data after which a watch is closed and resumed, if the server is known to send bookmarks.

    A value below the default also applies to servers without bookmarks: each watch is requested to be a little shorter
    than this, which costs one cheap request every ``max_silence`` seconds.
    """
    stale_after: float = 120.0
    """Seconds without an open watch after which an informer is no longer healthy."""
    watch_error_handler: WatchErrorHandler | None = None
    """Called with every failure except a silent watch, which is only logged; None logs failures."""
    undecodable_handler: UndecodableHandler | None = None
    """Called with every undecodable state of an object, including its bytes.

    An informer also logs each undecodable object when it gets into quarantine, without its bytes.
    """
