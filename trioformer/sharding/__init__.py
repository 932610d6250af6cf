"""Divide the objects of an operator between its replicas, by Leases.

- ``_shares.py``: the public API, :class:`Shares` and :func:`open_shares`
- ``_caches.py``: fills the caches of the own ranges, and ends their calls before a range is given away
- ``_held.py``: a range that is held, and the calls in it
- ``_kinds.py``: the range of each object of a kind, and the source of a range
- ``_ranges.py``: the hashes, as kube-apiserver computes them
- ``_ownership.py``: acquires, holds and gives up the Leases of ranges
- ``_plan.py``: decides which ranges to take, to ask for and to give up
"""

from __future__ import annotations

from ._shares import Shares as Shares
from ._shares import open_shares as open_shares

__all__ = ["Shares", "open_shares"]
