"""JSON with too many levels."""

from __future__ import annotations

from typing import Final

TOO_MANY_LEVELS: Final = 400_000
"""More than any interpreter skips: from 3.14 on, as many as the stack has room for, 261,000 in a thread."""
