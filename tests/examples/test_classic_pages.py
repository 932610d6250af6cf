"""The transcript of ``controller_manager.py`` in ``docs/howto/classic-programs.rst`` is what the program logs.

The other transcripts of pages are output, and ``tests/docs`` compares them.
"""

from __future__ import annotations

import re
import shlex

from tests.support.processes import ROOT, result_here

PAGE = ROOT / "docs" / "howto" / "classic-programs.rst"
PROGRAM = "examples/controller_manager.py"


def test_the_page_shows_the_first_lines_of_the_controller_manager() -> None:
    block = re.search(rf"^   \$ python {PROGRAM} (.*)\n((?:   .*\n)+)", PAGE.read_text(), re.MULTILINE)
    assert block is not None
    *shown, end = [line.strip() for line in block[2].splitlines()]
    assert end == "…"
    _, _, errors = result_here(PROGRAM, *shlex.split(block[1]), is_virtual=True, interrupt_after=1)
    assert errors[: len(shown)] == shown
