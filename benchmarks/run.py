"""Run the benchmarks: every rival on the same server and data, in turns, in one run.

::

    python benchmarks/run.py                    # all
    python benchmarks/run.py storm50k latency   # these
    python benchmarks/run.py replay10k --scale 0.1 --repeats 1 --only trioformer,limit

Needs CPython 3.11 or newer and, for client-go and kube-apiserver, Go.
Everything else is installed below ``.cache/bench``.
"""

from __future__ import annotations

import argparse
import fcntl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.environments import (
    BENCHMARKS,
    CACHE,
    REPOSITORY,
    SOURCE,
    UnavailableError,
    copy_source,
    go_program,
    python_of,
)
from harness.report import Line, derived, write
from harness.running import RunFailedError, drive, serving
from harness.workloads import WORKLOADS, Entrant, Workload

RESULTS = BENCHMARKS / "results"
PLOT = REPOSITORY / "docs" / "images" / "benchmarks.png"
BOMBS = "bombs"
KNOWN = [*WORKLOADS, BOMBS]


def lines_of(workload: Workload, only: Sequence[str], scale: float) -> list[Line]:
    """The entrants that are to run, with their environments made; one that cannot be set up has failed."""
    lines = []
    for entrant in workload.entrants:
        if only and not {entrant.label, entrant.rival} & set(only):
            continue
        pods = max(1, int((entrant.pods or workload.pods) * scale))
        line = Line(entrant, pods, int((entrant.events or workload.events) * scale))
        try:
            _set_up(entrant)
        except UnavailableError as error:
            line.error = str(error)
        lines.append(line)
    return lines


def _set_up(entrant: Entrant) -> None:
    if entrant.rival == "client_go":
        go_program("client_go")
    else:
        python_of(entrant.rival)


def measure(workload: Workload, lines: Sequence[Line], *, scale: float, repeats: int) -> None:
    """Let the entrants take turns, every other round in the opposite order."""
    with serving(workload, max(1, int(workload.pods * scale))) as server:
        for round_ in range(repeats * workload.turns):
            for line in lines if round_ % 2 == 0 else reversed(lines):
                if line.error is not None:
                    continue
                print(f"  round {round_ + 1}: {line.entrant.label} ... ", end="", flush=True)
                try:
                    said = drive(server, workload, line.entrant, pods=line.pods, events=line.events)
                except RunFailedError as error:
                    line.error = str(error)
                    print(f"failed: {error}", flush=True)
                else:
                    line.runs.append(derived(said, pods=line.pods, events=line.events))
                    print(" ".join(f"{name}={said[name]:.3g}" for name in ("wall", "cpu") if name in said), flush=True)


def run_bombs(results: Path, rounds: int) -> bool:
    """What hostile input costs; a program of its own."""
    command = [str(python_of("bombs")), str(BENCHMARKS / "bombs.py"), "--check", "--rounds", str(rounds)]
    command += ["--results", str(results)]
    return subprocess.run(command, env={"PYTHONPATH": str(SOURCE)}, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(KNOWN)}; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="a fraction of the pods and events, to try things out")
    parser.add_argument("--only", default="", help="labels or rivals, separated by commas")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--check", action="store_true", help="fail when a target is not reached")
    options = parser.parse_args()
    names = options.names or KNOWN
    if unknown := [name for name in names if name not in KNOWN]:
        sys.exit(f"error: unknown benchmark {', '.join(unknown)}; known are {', '.join(KNOWN)}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("error: another run is going on, and two would disturb each other; wait for its end")
        run(names, options)


def run(names: Sequence[str], options: argparse.Namespace) -> None:
    """Run the named benchmarks, write the results and draw the plot."""
    copy_source()
    reached = True
    for name in names:
        print(f"\n{name}", flush=True)
        if name == BOMBS:
            reached &= run_bombs(options.results, options.repeats)
            continue
        workload = WORKLOADS[name]
        lines = lines_of(workload, [each for each in options.only.split(",") if each], options.scale)
        try:
            measure(workload, lines, scale=options.scale, repeats=options.repeats)
        except UnavailableError as error:
            sys.exit(f"error: {error}")
        outcomes = write(options.results, name, workload, lines, repeats=options.repeats * workload.turns)
        reached &= all(outcome.reached for outcome in outcomes)
    if options.results == RESULTS:
        subprocess.run([python_of("plot"), BENCHMARKS / "harness" / "plot.py", RESULTS, PLOT], check=True)
    if options.check and not reached:
        sys.exit("error: some targets are not reached")


if __name__ == "__main__":
    main()
