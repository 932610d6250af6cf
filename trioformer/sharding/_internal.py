"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._shares import OpenShares as OpenShares
from ._shares import prepare_shares as prepare_shares
