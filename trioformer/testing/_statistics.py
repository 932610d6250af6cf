"""The embedded API server's figures."""

from __future__ import annotations

from typing import final

import attrs


@final
@attrs.frozen
class APIServerStatistics:
    """A snapshot of an embedded API server's figures."""

    is_running: bool
    """Whether the in-memory transport is served."""
    open_watches: int
    """How many watches are being served."""
    requests_served: int
    """How many requests have arrived, discovery and failed ones included."""
    pending_faults: int
    """How many requests are still to fail by :meth:`~trioformer.testing.APIServer.fail_next`."""
    objects: int
    """How many objects are stored."""
    revision: int
    """The revision of the last write."""
    compacted_revision: int
    """The last compaction; reading changes from before it is refused."""
