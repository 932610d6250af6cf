"""Leader election on a Lease: only one of several processes runs the leader code (client-go ``tools/leaderelection``).

- ``_elector.py``: :class:`LeaderElector`, :func:`leadership`, :func:`run_as_leader`
- ``_acquire.py``: waits for the Lease
- ``_hold.py``: renews the Lease, and cancels the leader code in time
- ``_release.py``: releases the Lease
- ``_leadership.py``: :class:`Leadership`, :class:`LeaderElectionOptions`; the state of a leadership, and its clocks
- ``_lease_watch.py``: notices a release
- ``_lease_claim.py``: a single attempt to acquire, renew or release the Lease
- ``_lease_lock.py``: reads, writes and watches the Lease
- ``_background.py``: runs a task during a block of the caller
"""

from __future__ import annotations

from ..errors import LeadershipLostError as LeadershipLostError
from ._elector import LeaderElector as LeaderElector
from ._elector import leadership as leadership
from ._elector import run_as_leader as run_as_leader
from ._leadership import LeaderElectionOptions as LeaderElectionOptions
from ._leadership import Leadership as Leadership

__all__ = [
    "LeaderElectionOptions",
    "LeaderElector",
    "Leadership",
    "LeadershipLostError",
    "leadership",
    "run_as_leader",
]
