"""Private: when to retry, and what an error means for the caller.

- ``_backoff.py``: exponential delays, and a time limit for retries
- ``_pacing.py``: when the next watch may start, and how long a watch may last
- ``_classify.py``: the class of an error of a list or a watch
- ``_token_bucket.py``: a rate limit with a burst
"""

from __future__ import annotations

from ._backoff import Backoff as Backoff
from ._backoff import BackoffPolicy as BackoffPolicy
from ._backoff import RetryWindow as RetryWindow
from ._classify import REQUEST_ERRORS as REQUEST_ERRORS
from ._classify import ErrorClass as ErrorClass
from ._classify import WatchErrorHandler as WatchErrorHandler
from ._classify import classify_error as classify_error
from ._classify import retry_after as retry_after
from ._pacing import END_GRACE as END_GRACE
from ._pacing import HEALTHY_AFTER as HEALTHY_AFTER
from ._pacing import MAX_SILENCE as MAX_SILENCE
from ._pacing import VERY_SHORT as VERY_SHORT
from ._pacing import Pacing as Pacing
from ._pacing import watch_timeout as watch_timeout
from ._token_bucket import TokenBucket as TokenBucket

__all__ = [
    "END_GRACE",
    "HEALTHY_AFTER",
    "MAX_SILENCE",
    "REQUEST_ERRORS",
    "VERY_SHORT",
    "Backoff",
    "BackoffPolicy",
    "ErrorClass",
    "Pacing",
    "RetryWindow",
    "TokenBucket",
    "WatchErrorHandler",
    "classify_error",
    "retry_after",
    "watch_timeout",
]
