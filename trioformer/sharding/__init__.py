"""Divide the objects of an operator between its replicas, by Leases.

- ``_shares.py``: how objects are divided, :class:`Shares`
- ``_open_shares.py``: the part of one replica, :func:`open_shares`
- ``_caches.py``: divides the kinds of a factory, and fills their caches with the own ranges
- ``_held.py``: a range that is held, and the calls in it, which end before the range is given away
- ``_kinds.py``: the range of each object of a kind, and the source of a range
- ``_ranges.py``: the hashes, as kube-apiserver computes them
- ``_ownership.py``: acquires, holds and gives up the Leases of ranges
- ``_plan.py``: decides which ranges to take, to ask for and to give up
"""

from __future__ import annotations

from ._open_shares import open_shares as open_shares
from ._shares import Shares as Shares

__all__ = ["Shares", "open_shares"]
