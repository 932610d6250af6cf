"""How long a function keeps the processor, without the tracer of coverage, and without other threads and processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def least_seconds(function: Callable[[], object], *, rounds: int = 5) -> float:
    """Return the shortest time that the function took in this thread."""
    tracer = sys.gettrace()
    times = []
    for _ in range(rounds):
        sys.settrace(None)
        try:
            began = time.thread_time()
            function()
            times.append(time.thread_time() - began)
        finally:
            sys.settrace(tracer)
    return min(times)
