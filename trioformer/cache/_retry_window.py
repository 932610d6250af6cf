"""For how long a server's internal errors are taken for a passing weakness (client-go ``retry_with_deadline.go``)."""

from __future__ import annotations

import math
from typing import Final, final

import attrs

CALM: Final = 60.0
"""Seconds without a failure after which the next one opens a new window."""


@final
@attrs.define(eq=False)
class RetryWindow:
    """Says whether a failure is still to be retried: for ``length`` seconds from the first of a series."""

    length: float
    """Seconds; 0 never retries."""
    _began: float = attrs.field(default=-math.inf, init=False)
    _newest: float = attrs.field(default=-math.inf, init=False)

    def allows(self, now: float) -> bool:
        """Note a failure at ``now``, and say whether it is to be retried; when it is not, the series is over."""
        if self.length <= 0:
            return False
        if now - self._newest >= CALM:
            self._began = now
        self._newest = now
        if now - self._began > self.length:
            self._newest = -math.inf
            return False
        return True
