"""Run each example as its user would, in a process, and print how it ended.

    python -m tests.examples.table --seconds 20

A row for each program and command: ``--help``, ``--embedded`` for some seconds and then Ctrl-C, a wrong flag, and a
kubeconfig or another file that does not exist; with the exit code, the numbers of lines, and the last one.
The exit code is 1 if any is not the expected one, or if there is a traceback anywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import attrs
import trio

from tests.examples.programs import ENDS_BY_ITSELF, READS_FILES, Example, examples
from tests.support.processes import Program, running

WIDTH = 90
SERVE = ("first_controller/step_7_run_in_a_cluster.py", "first_controller/step_8_stop_cleanly.py")


@attrs.frozen
class Row:
    """How a program has ended."""

    example: Example
    command: str
    expected: frozenset[int]
    code: int
    lines: Sequence[str]
    errors: Sequence[str]

    @property
    def is_good(self) -> bool:
        """Whether it has ended as expected, without a traceback."""
        return self.code in self.expected and not any("Traceback" in line for line in (*self.lines, *self.errors))

    def __str__(self) -> str:
        last = (self.errors or self.lines or [""])[-1].replace("|", "\\|")
        state = "" if self.is_good else " (!)"
        return (
            f"| {self.example} | {self.command} | {self.code}{state} | {len(self.lines)} | {len(self.errors)} "
            f"| {last[:WIDTH]} |"
        )


async def run(example: Example, seconds: float) -> list[Row]:
    """Run a program with each command."""
    missing = ["--kubeconfig", "/does/not/exist"]
    if example.is_self_contained:
        missing = []
    # They serve by default, and several programs run at the same time.
    http = ["--http", "127.0.0.1:0"] if example.name in SERVE else []
    ends = frozenset({0} if example.name in ENDS_BY_ITSELF else {0, 130})
    commands: list[tuple[str, list[str], frozenset[int]]] = [
        ("--help", ["--help"], frozenset({0})),
        ("--embedded", ["--embedded", *http], ends),
        ("wrong flag", [*example.needed, "--no-such-flag"], frozenset({2})),
        ("missing kubeconfig", [*example.needed, *missing], frozenset({1})),
    ]
    if example.name in READS_FILES:
        commands.append(("missing file", [*READS_FILES[example.name], "/does/not/exist"], frozenset({2})))
    rows = []
    for title, arguments, expected in commands:
        async with running(example.path, *arguments) as program:
            code = await (wait_and_interrupt(program, seconds) if title == "--embedded" else program.wait_until_over())
            shown = f"{title}, Ctrl-C" if title == "--embedded" and example.name not in ENDS_BY_ITSELF else title
            rows.append(Row(example, shown, expected, code, program.lines, program.errors))
    return rows


async def wait_and_interrupt(program: Program, seconds: float) -> int:
    """Press Ctrl-C some seconds after the program has shown something, if it has not ended by itself."""
    await program.wait_for_output()
    with trio.move_on_after(seconds):
        return await program.wait_until_over()
    return await program.interrupt()


async def main(seconds: float, only: str) -> int:
    """Print the table; returns the exit code."""
    os.environ["KUBECONFIG"] = "/does/not/exist"
    print("| program | command | exit code | lines of output | lines of errors | last line |")
    print("|---|---|---|---|---|---|")
    limit, rows = trio.CapacityLimiter(4), dict[str, list[Row]]()

    async def run_one(example: Example) -> None:
        async with limit:
            rows[example.name] = await run(example, seconds)

    chosen = [example for example in examples() if only in example.name]
    async with trio.open_nursery() as nursery:
        for example in chosen:
            nursery.start_soon(run_one, example)
    found = [row for example in chosen for row in rows[example.name]]
    print(*found, sep="\n")
    bad = sum(not row.is_good for row in found)
    print(f"\n{len(found)} runs of {len(chosen)} programs, {bad} not as expected")
    return int(bad > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run each example, and print how it ended.")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each runs embedded; default: 20")
    parser.add_argument("--only", default="", metavar="TEXT", help="only programs with this in their names")
    given = parser.parse_args()
    sys.exit(trio.run(main, given.seconds, given.only))
