"""The transcripts of ``docs/howto/classic-programs.rst`` are what the programs print."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.support.processes import ROOT, result_here

PAGE = ROOT / "docs" / "howto" / "classic-programs.rst"
TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(\.\d{3})?")
RANDOM = re.compile(r"[a-z]+-[0-9a-f]{9,10}-[a-z0-9]{5}")
PROGRAMS = ("pod_logger", "simple_watch", "custom_controller", "controller_manager", "job_controller")


def transcript_of(program: str) -> tuple[list[str], list[str]]:
    """Return the arguments of a program and its lines, as the page shows them."""
    block = re.search(rf"^   \$ python examples/{program}\.py (.*)\n((?:   .*\n)+)", PAGE.read_text(), re.MULTILINE)
    assert block is not None
    return shlex.split(block[1]), [line.strip() for line in block[2].splitlines()]


def without_chance(line: str) -> str:
    return RANDOM.sub("POD", TIME.sub("TIME", line))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_page_shows_what_the_program_prints(program: str) -> None:
    arguments, shown = transcript_of(program)
    _, lines, errors = result_here(f"examples/{program}.py", *arguments, is_virtual=True, interrupt_after=4.5)
    printed = iter([without_chance(line) for line in lines or errors])
    is_gap = False
    for line in map(without_chance, shown):
        if line == "…":
            is_gap = True
            continue
        found = next((each for each in printed if each == line), None) if is_gap else next(printed, None)
        assert found == line
        is_gap = False
