"""Leader election: of several processes, one runs something (client-go ``tools/leaderelection``).

- ``_elector.py``: :class:`LeaderElector`, :func:`leadership` and :func:`run_as_leader`
- ``_leadership.py``: :class:`Leadership`, what a leader's code receives, and :class:`LeaderElectionOptions`
- ``_lease_claim.py``: how a candidate acquires and a leader renews
- ``_lease_lock.py``: the Lease object
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
