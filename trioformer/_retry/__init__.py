"""Private: when to try again, and what an error means for whoever tries.

- ``_backoff.py``: delays that grow, and a time limit for retries
- ``_pacing.py``: when the next watch may begin, and how long one may live
- ``_classify.py``: what an error of a list or a watch means
- ``_token_bucket.py``: a rate with a burst
"""

from __future__ import annotations

from ._backoff import Backoff as Backoff
from ._backoff import BackoffPolicy as BackoffPolicy
from ._backoff import RetryWindow as RetryWindow
from ._classify import RETRIED as RETRIED
from ._classify import ErrorClass as ErrorClass
from ._classify import WatchErrorHandler as WatchErrorHandler
from ._classify import classify_error as classify_error
from ._classify import retry_after as retry_after
from ._pacing import END_GRACE as END_GRACE
from ._pacing import HEALTHY_AFTER as HEALTHY_AFTER
from ._pacing import LONGEST_SILENCE as LONGEST_SILENCE
from ._pacing import VERY_SHORT as VERY_SHORT
from ._pacing import Pacing as Pacing
from ._pacing import watch_timeout as watch_timeout
from ._token_bucket import TokenBucket as TokenBucket
