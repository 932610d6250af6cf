"""Classify errors, and decide when to retry.

- ``_backoff.py``: exponential delays, and a rate limit with a burst
- ``_outcomes.py``: the outcomes of requests, and the log of failures
- ``_pacing.py``: the time of the next request, and the duration of a watch
"""

from __future__ import annotations

from ._backoff import QUICK_TRIES as QUICK_TRIES
from ._backoff import Backoff as Backoff
from ._backoff import BackoffPolicy as BackoffPolicy
from ._backoff import TokenBucket as TokenBucket
from ._outcomes import REQUEST_ERRORS as REQUEST_ERRORS
from ._outcomes import Outcome as Outcome
from ._outcomes import WatchErrorHandler as WatchErrorHandler
from ._outcomes import count_failure as count_failure
from ._outcomes import is_permanent as is_permanent
from ._outcomes import log_failure as log_failure
from ._outcomes import outcome_of as outcome_of
from ._outcomes import retry_after as retry_after
from ._pacing import END_GRACE as END_GRACE
from ._pacing import HEALTHY_AFTER as HEALTHY_AFTER
from ._pacing import MAX_SILENCE as MAX_SILENCE
from ._pacing import VERY_SHORT as VERY_SHORT
from ._pacing import Pacing as Pacing
from ._pacing import QuickTries as QuickTries
from ._pacing import Wait as Wait
from ._pacing import watch_timeout as watch_timeout
