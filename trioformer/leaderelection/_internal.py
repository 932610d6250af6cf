"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._elector import claim_of as claim_of
from ._elector import try_run as try_run
from ._lease_lock import LeaseRecord as LeaseRecord
