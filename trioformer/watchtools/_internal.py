"""Names for other packages of trioformer, not for users."""

from __future__ import annotations

from ._resuming_watch import ResumingWatch as ResumingWatch
