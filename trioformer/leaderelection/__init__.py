"""Leader election on a Lease: of several processes, one runs the leader code (client-go ``tools/leaderelection``).

- ``_elector.py``: :class:`LeaderElector`, :func:`leadership`, :func:`run_as_leader`
- ``_leadership.py``: :class:`Leadership`, :class:`LeaderElectionOptions`, :class:`LeaderElectionStatistics`,
  :class:`LeadershipLostError`; the private state behind a leadership, and its clocks
- ``_lease_claim.py``: a single attempt to acquire, renew or release the Lease
- ``_lease_lock.py``: reads and writes the Lease
"""

from __future__ import annotations

from ._elector import LeaderElector as LeaderElector
from ._elector import leadership as leadership
from ._elector import run_as_leader as run_as_leader
from ._leadership import LeaderElectionOptions as LeaderElectionOptions
from ._leadership import LeaderElectionStatistics as LeaderElectionStatistics
from ._leadership import Leadership as Leadership
from ._leadership import LeadershipLostError as LeadershipLostError

__all__ = [
    "LeaderElectionOptions",
    "LeaderElectionStatistics",
    "LeaderElector",
    "Leadership",
    "LeadershipLostError",
    "leadership",
    "run_as_leader",
]
