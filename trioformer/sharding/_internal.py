"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._open_shares import OpenShares as OpenShares
from ._open_shares import prepare_shares as prepare_shares
