"""Work queues in which each key is processed by only one worker at a time.

::

    add(key) ─────────────▶ ready, by priority ─▶ take() ─▶ processing ─▶ done
    add_after(key, 5) ─▶ delayed ─▲                             │
    add_rate_limited(key) ──▲     └── added or failed meanwhile ┘

A :class:`WorkQueue` does not retry failed keys.  The subclass :class:`RateLimitingQueue` retries failed keys with
growing delays.  Adding a key never waits.  A worker takes a key with ``async with queue.take() as key``.

- ``_work_queue.py``: :class:`WorkQueue`
- ``_take.py``: the block in which a worker processes a key
- ``_ready.py``: keys that workers may take, by priority
- ``_delayed.py``: keys that are not due yet
- ``_wait_queue.py``: workers that wait for a key
- ``_reports.py``: pending reports to the observer
- ``_rate_limiting_queue.py``: :class:`RateLimitingQueue`
- ``_rate_limiters.py``: :class:`RateLimiter` and the limiters of client-go
- ``_statistics.py``: :class:`QueueStatistics`, :class:`Remaining` and :class:`QueueObserver`
"""

from __future__ import annotations

from ._rate_limiters import BucketRateLimiter as BucketRateLimiter
from ._rate_limiters import ItemExponentialFailureRateLimiter as ItemExponentialFailureRateLimiter
from ._rate_limiters import MaxOfRateLimiter as MaxOfRateLimiter
from ._rate_limiters import RateLimiter as RateLimiter
from ._rate_limiters import default_controller_rate_limiter as default_controller_rate_limiter
from ._rate_limiting_queue import RateLimitingQueue as RateLimitingQueue
from ._statistics import QueueObserver as QueueObserver
from ._work_queue import WorkQueue as WorkQueue

__all__ = [
    "BucketRateLimiter",
    "ItemExponentialFailureRateLimiter",
    "MaxOfRateLimiter",
    "QueueObserver",
    "RateLimiter",
    "RateLimitingQueue",
    "WorkQueue",
    "default_controller_rate_limiter",
]
