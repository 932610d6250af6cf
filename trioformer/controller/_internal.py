"""Names for other packages of trioformer, not for users."""

from __future__ import annotations

from ._results import ReconcileResult as ReconcileResult
