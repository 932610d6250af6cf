"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._rate_limiters import default_priority_queue_rate_limiter as default_priority_queue_rate_limiter
from ._statistics import QueueStatistics as QueueStatistics
