"""The version of the library, for packaging and for programs."""

from __future__ import annotations

__version__ = "0.1.0"
