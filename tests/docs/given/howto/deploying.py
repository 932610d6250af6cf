"""What a reader of the page has: a clone, of which the working directory is the root."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.processes import ROOT

shutil.copytree(ROOT / "examples" / "deploy", Path("examples", "deploy"))
