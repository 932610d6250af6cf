"""Watching without a cache: a watch that resumes by itself, and waiting for one object.

- ``_resuming_watch.py``: :func:`resuming_watch`, the events after a version across the ends and failures of watches
- ``_wait_for.py``: :func:`wait_for`, until an object meets a condition
- ``_conditions.py``: :func:`created`, :func:`deleted`, :func:`has_condition`, :func:`has_field`
- ``_pacing.py``: when the next watch may begin, and how long one may live
- ``_verdict.py``: what a failure of a watch means, for these and for the informers of :mod:`trioformer.cache`
"""

from __future__ import annotations

from .._backoff import BackoffPolicy as BackoffPolicy
from ._conditions import Condition as Condition
from ._conditions import Deletion as Deletion
from ._conditions import FieldValue as FieldValue
from ._conditions import created as created
from ._conditions import deleted as deleted
from ._conditions import has_condition as has_condition
from ._conditions import has_field as has_field
from ._pacing import END_GRACE as END_GRACE
from ._pacing import LONGEST_SILENCE as LONGEST_SILENCE
from ._pacing import VERY_SHORT as VERY_SHORT
from ._pacing import Pacing as Pacing
from ._pacing import watch_timeout as watch_timeout
from ._resuming_watch import ResumingWatch as ResumingWatch
from ._resuming_watch import ResumingWatchStatistics as ResumingWatchStatistics
from ._resuming_watch import RetryHandler as RetryHandler
from ._resuming_watch import WatchPhase as WatchPhase
from ._resuming_watch import resuming_watch as resuming_watch
from ._verdict import RETRIED as RETRIED
from ._verdict import Verdict as Verdict
from ._verdict import retry_after as retry_after
from ._verdict import verdict_on as verdict_on
from ._wait_for import wait_for as wait_for

__all__ = [
    "END_GRACE",
    "LONGEST_SILENCE",
    "RETRIED",
    "VERY_SHORT",
    "BackoffPolicy",
    "Condition",
    "Deletion",
    "FieldValue",
    "Pacing",
    "ResumingWatch",
    "ResumingWatchStatistics",
    "RetryHandler",
    "Verdict",
    "WatchPhase",
    "created",
    "deleted",
    "has_condition",
    "has_field",
    "resuming_watch",
    "retry_after",
    "verdict_on",
    "wait_for",
    "watch_timeout",
]
