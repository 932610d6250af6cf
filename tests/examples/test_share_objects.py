"""``examples/share_objects.py``: three replicas, of which one ends."""

from __future__ import annotations

from tests.support.processes import result_here

PROGRAM = "examples/share_objects.py"


def test_three_replicas_divide_the_namespaces_and_take_over_those_of_one() -> None:
    code, lines, errors = result_here(PROGRAM, "--embedded", is_virtual=True, interrupt_after=50)
    assert (code, errors) == (130, [])
    calls = [line.partition(": ")[::2] for line in lines if "/web has" in line]
    of_others = {rest.partition(" ")[0] for replica, rest in calls if replica != "a"}
    assert len(of_others) == 8
    end = lines.index("a is stopped")
    assert len({line[0] for line in lines[:end]}) >= 2
    assert {line[0] for line in lines[lines.index("a has ended") + 1 :]} == {"b", "c"}
