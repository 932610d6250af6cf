"""``examples/follow_pods.py``, the README's program, as somebody runs it who has no cluster."""

from __future__ import annotations

from tests.support.processes import result_here

PROGRAM = "examples/follow_pods.py"


def test_the_readmes_program_follows_a_simulated_cluster_until_ctrl_c() -> None:
    code, lines, errors = result_here(PROGRAM, "--embedded", is_virtual=True, interrupt_after=4)
    assert (code, errors) == (130, [])
    assert lines[0] == "1 pods of app=web"
    assert {line.partition(":")[0] for line in lines[1:]} == {"new", "changed", "gone"}
