"""Which tests a run has: those with real programs only if it names them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

E2E: Final = Path(__file__).parents[1] / "e2e"
CONTRACT: Final = E2E / "contract"
"""The tests that also run against the embedded server; an ordinary run has only that half of them."""


def is_end_to_end(config: pytest.Config) -> bool:
    """Whether the arguments of the run name end-to-end tests; then real programs are started."""
    named = [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
    return any(path == E2E or E2E in path.parents for path in named)


def is_collected(path: Path, config: pytest.Config) -> bool:
    """Whether a run collects a file or folder."""
    if E2E not in path.parents or path == CONTRACT or CONTRACT in path.parents:
        return True
    return is_end_to_end(config)
