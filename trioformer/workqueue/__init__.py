"""Keys to be handled, each by one worker at a time; knows nothing of Kubernetes.

::

    add(key) ─────────────▶ ready, by priority ─▶ take() ─▶ processing ─▶ done
    add_after(key, 5) ─▶ delayed ─▲                             │
    add_rate_limited(key) ──▲     └── added or failed meanwhile ┘

:class:`WorkQueue` leaves failures to its user; :class:`RateLimitingQueue` repeats what failed, later and later.
Adding is a plain function that never waits; taking is ``async with queue.take() as key``.
"""

from __future__ import annotations

from ._parallelize import parallelize as parallelize
from ._rate_limiters import BucketRateLimiter as BucketRateLimiter
from ._rate_limiters import ItemExponentialFailureRateLimiter as ItemExponentialFailureRateLimiter
from ._rate_limiters import ItemFastSlowRateLimiter as ItemFastSlowRateLimiter
from ._rate_limiters import MaxOfRateLimiter as MaxOfRateLimiter
from ._rate_limiters import RateLimiter as RateLimiter
from ._rate_limiters import WithMaxWaitRateLimiter as WithMaxWaitRateLimiter
from ._rate_limiters import default_controller_rate_limiter as default_controller_rate_limiter
from ._rate_limiters import default_item_based_rate_limiter as default_item_based_rate_limiter
from ._statistics import QueueObserver as QueueObserver
from ._statistics import QueueStatistics as QueueStatistics
from ._statistics import Remaining as Remaining
from ._work_queue import RateLimitingQueue as RateLimitingQueue
from ._work_queue import WorkQueue as WorkQueue
