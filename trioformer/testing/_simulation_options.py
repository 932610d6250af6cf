"""What pytest's options say about simulations; a module of its own, because the plugin must load quickly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class SimulationOptions:
    """The options of the current run of pytest."""

    stories: int | None = None
    """The number of stories, whatever the test says."""
    seed: int | None = None
    """The seed, whatever the test says."""
    directory: Path | None = None
    """The directory for stories that have failed."""
    without_faults: bool = False
    """Whether to tell only stories without faults, and to end at the first one that fails, without shrinking it."""


options = SimulationOptions()
