"""``examples/run_in_pods.py``: its results, and how many commands are executed at once."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from examples.command_line import parser_of
from examples.run_in_pods import main


async def test_the_result_of_each_pod_is_printed(autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parser_of("", is_namespaced=True).parse_args(["--embedded"])
    arguments.command, arguments.selector, arguments.at_once = ["df", "-h"], "app=web", 3
    began_at = trio.current_time()
    assert await main(arguments) == 1
    assert trio.current_time() - began_at == pytest.approx(2, abs=0.5)  # two rounds of three pods
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["web-0: web-0", "web-1: web-1"]
    assert lines[2].endswith("the command df ended with exit code 1: no space left on device")
    assert [line.partition(":")[0] for line in lines] == [f"web-{number}" for number in range(6)]


async def test_no_pods_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parser_of("", is_namespaced=True).parse_args(["--embedded"])
    arguments.command, arguments.selector, arguments.at_once = [], "app=none", 3
    assert await main(arguments) == 1
    assert capsys.readouterr() == ("", "no such pod is running\n")
