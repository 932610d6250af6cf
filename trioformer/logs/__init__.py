"""The logs of many pods: those of a selector, while pods come and go.

For the log of one container, :meth:`trioformer.client.Api.logs` and :meth:`~trioformer.client.Api.follow_logs` are
enough.

- ``_follow_logs_of.py``: :func:`follow_logs_of`
- ``_log_buffer.py``: the lines that wait for the reader
"""

from __future__ import annotations

from ..client import LogLine as LogLine
from ._follow_logs_of import FollowedLogs as FollowedLogs
from ._follow_logs_of import FollowedLogsStatistics as FollowedLogsStatistics
from ._follow_logs_of import follow_logs_of as follow_logs_of

__all__ = ["FollowedLogs", "FollowedLogsStatistics", "LogLine", "follow_logs_of"]
