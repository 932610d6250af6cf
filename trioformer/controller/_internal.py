"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._controller import attach_observer as attach_observer
from ._controller import detach_observer as detach_observer
from ._results import ReconcileResult as ReconcileResult
