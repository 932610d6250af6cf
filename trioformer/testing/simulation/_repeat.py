"""Repeats a story in another interpreter with another order of hashes, to check that it is repeatable.

::

    python -m trioformer.testing.simulation._repeat < (sys.path, operator, scenario and story, pickled)
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import zip_longest

from ._record import Entry
from ._replica import Operator
from ._report import lines_of
from ._scenario import Scenario
from ._story import Story


def trace_of(entries: Sequence[Entry]) -> list[str]:
    """Return the whole trace with the causes, but without the texts of assertions, which pytest rewrites."""
    return [line.partition("AssertionError: ")[0] for one in entries for line in lines_of(one)]


def first_difference(operator: Operator, scenario: Scenario, story: Story, entries: Sequence[Entry]) -> str | None:
    """Repeat a story, and describe the first line that differs.

    Returns:
        An empty string if the trace is the same, or None if another interpreter cannot import the operator or the
        scenario.
    """
    if "__main__" in (getattr(operator, "__module__", ""), scenario.cls.__module__):
        return None
    try:
        given = pickle.dumps((operator, scenario.cls, story.to_json()))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=pickle.dumps((sys.path, given)),
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"},
        check=False,
    )
    if done.returncode:
        return None
    both = zip_longest(trace_of(entries), done.stdout.decode().splitlines(), fillvalue="nothing")
    for number, (here, there) in enumerate(both, 1):
        if here != there:
            return f"line {number} of the trace is {here.strip()!r} here, but {there.strip()!r} there"
    return ""


def main() -> None:
    """Repeat the story from standard input, and print its trace."""
    from ._run import run_story  # noqa: PLC0415

    sys.path[:], given = pickle.loads(sys.stdin.buffer.read())  # from the parent process
    operator, cls, text = pickle.loads(given)
    with redirect_stdout(sys.stderr):  # what the operator prints is no part of the trace
        outcome = run_story(operator, Scenario(cls), Story.from_json(text))
    sys.stdout.buffer.write("\n".join(trace_of(outcome.entries)).encode())


if __name__ == "__main__":
    main()
