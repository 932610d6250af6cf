"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._resuming_watch import ResumingWatch as ResumingWatch
