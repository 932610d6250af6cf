"""Leader election on a Lease: of several processes, only one runs the leader code at a time.

- ``_elector.py``: the public API, :class:`LeaderElector`, :func:`leadership` and :func:`run_as_leader`
- ``_acquire.py``: waits for the Lease
- ``_hold.py``: renews the Lease, and cancels the leader code in time
- ``_release.py``: releases the Lease
- ``_leadership.py``: :class:`Leadership`, :class:`LeaderElectionOptions`, and the state and the clocks of a leadership
- ``_lease_watch.py``: watches the Lease, to notice when it is released
- ``_lease_claim.py``: makes a single attempt to acquire, renew or release the Lease
- ``_lease_lock.py``: reads, writes and watches the Lease
- ``_background.py``: runs a background task during the caller's ``async with`` block
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
