"""A pod whose container is a directory of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.containers import LocalContainer
from trioformer.testing import ScriptedPod


@pytest.fixture
def container(web: ScriptedPod, tmp_path: Path) -> LocalContainer:
    """Its container, with the programs of this machine."""
    directory = tmp_path / "container"
    directory.mkdir()
    found = LocalContainer(directory)
    web.on_exec(found.execute)
    return found


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory of this machine."""
    directory = tmp_path / "here"
    directory.mkdir()
    return directory
