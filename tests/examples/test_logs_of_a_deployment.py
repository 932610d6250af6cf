"""``examples/logs_of_a_deployment.py``: its lines, while pods are replaced."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from examples.command_line import parser_of
from examples.logs_of_a_deployment import main


async def test_the_lines_of_all_pods_are_printed_also_of_new_ones(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = parser_of("", is_namespaced=True).parse_args(["--embedded"])
    arguments.deployment, arguments.container, arguments.tail = "web", ["main"], None
    with trio.move_on_after(3.7):
        await main(arguments)
    lines = capsys.readouterr().out.splitlines()
    for number in (0, 1):
        own = [line for line in lines if line.startswith(f"web-{number} ")]
        assert own[:3] == [
            f"web-{number} main listening on port 8080",
            f"web-{number} main GET /items/1 200",
            f"web-{number} main GET /items/2 200",
        ]
    assert "web-0 main shutting down" in lines
    assert [line for line in lines if line.startswith("web-2 ")] == [
        "web-2 main listening on port 8080",
        "web-2 main GET /items/7 200",
    ]
