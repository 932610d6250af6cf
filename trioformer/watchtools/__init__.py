"""Watches without a cache: watch objects continuously, or wait for one object.

- ``_resuming_watch.py``: :func:`resuming_watch` returns events, and resumes the watch when it ends or fails
- ``_wait_for.py``: :func:`wait_for` waits until an object meets a condition
- ``_conditions.py``: the conditions :func:`created`, :func:`deleted`, :func:`has_condition` and :func:`has_field`
"""

from __future__ import annotations

from .._retry import BackoffPolicy as BackoffPolicy
from ._conditions import created as created
from ._conditions import deleted as deleted
from ._conditions import has_condition as has_condition
from ._conditions import has_field as has_field
from ._resuming_watch import resuming_watch as resuming_watch
from ._wait_for import wait_for as wait_for

__all__ = [
    "BackoffPolicy",
    "created",
    "deleted",
    "has_condition",
    "has_field",
    "resuming_watch",
    "wait_for",
]
