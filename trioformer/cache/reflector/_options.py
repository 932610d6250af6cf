"""The options of a reflector."""

from __future__ import annotations

import logging
from typing import final

import attrs

from ..._retry import MAX_SILENCE, BackoffPolicy, WatchErrorHandler
from ...client._internal import UndecodableHandler

MIN_MAX_SILENCE = 20.0
"""The least ``max_silence``, seconds; with less, watches would be restarted all the time."""

logger = logging.getLogger("trioformer.cache")


@final
@attrs.frozen(kw_only=True)
class ReflectorOptions:
    """How a reflector lists and watches, and how it handles failures."""

    backoff: BackoffPolicy = attrs.field(factory=BackoffPolicy)
    """The delays between requests after failures."""
    grace_period: float = 30.0
    """Before the first sync: seconds of permanent errors only, such as 403, after which one is raised."""
    retry_forever: bool = False
    """Never raise them, which is client-go's behaviour; nor the error of a transform or an index function that fails on
    every object of the first list.

    Without it, that error is raised once all namespaces have been listed, if there are at least three objects.
    """
    watch_list: bool = False
    """Whether to request a watch-list (KEP-3157, client-go's ``WatchListClient``) instead of a list.

    If the server has none, a list follows.
    A watch-list spares the server memory, and costs it 1.7 times the CPU.
    """
    max_silence: float = attrs.field(
        default=MAX_SILENCE,
        validator=[attrs.validators.ge(MIN_MAX_SILENCE), attrs.validators.le(MAX_SILENCE)],
    )
    """Seconds without data after which a watch is closed and resumed, if the server is known to send bookmarks.

    A value below the default applies to servers without bookmarks too.
    Each watch is then requested to be a little shorter than this, which costs one cheap request every ``max_silence``
    seconds.
    """
    stale_after: float = 120.0
    """Seconds without an open watch after which an informer is not healthy any more."""
    watch_error_handler: WatchErrorHandler | None = None
    """Called with every failure but a silent watch, which is only logged; None logs them."""
    undecodable_handler: UndecodableHandler | None = None
    """Called with every undecodable state of an object, with its bytes.

    An informer also logs each object that does not decode, when it gets into quarantine, and never its bytes.
    """
