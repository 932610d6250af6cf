"""Measure what hostile input costs: how long other tasks wait for it, how much memory it takes, what the error says.

::

    python benchmarks/bombs.py [NAME …] [--rounds 3] [--check] [--list]

Each bomb (``hostile/``) goes off in a process of its own, beside a task that sleeps 1 ms again and again.
The longest gap between two of its wakings, without the time for which other processes had the processors, is how long
other tasks waited.
A bomb whose gap is above the limit is repeated, and the smallest counts: what else runs on the machine only adds to it.
A process that has said nothing after 45 s has hung, and is killed; one has 3 GB of address space.  Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from harness.report import machine
from hostile.__main__ import BOMBS

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results"
MOST_STALL = 60.0
"""Milliseconds that a task may wait."""
HUNG = 45.0
"""Seconds after which a process has hung."""
Results: TypeAlias = dict[str, dict[str, Any]]
IMPORTS = os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])


def let_off(name: str) -> dict[str, Any]:
    """Let a bomb go off once, in a process of its own."""
    command = [sys.executable, "-m", "hostile", name]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": IMPORTS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # its server ends with it
    ) as process:
        try:
            said, errors = process.communicate(timeout=HUNG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"answer": f"HANGS for more than {HUNG:g} s", "stall": HUNG * 1000, "is_dead": True}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode < 0:
        return {"answer": f"DIES of {signal.Signals(-process.returncode).name}", "is_dead": True}
    if process.returncode or not said:
        last = errors.strip().splitlines()[-1:] or ["no output"]
        return {"answer": f"ENDS with {last[0][:200]}", "is_dead": True}
    return dict(json.loads(said.splitlines()[-1]))


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Let a bomb go off until a round is within the limits, at most ``rounds`` times; the best round counts."""
    best: dict[str, Any] = {}
    for _ in range(rounds):
        found = let_off(name)
        if not best or found.get("stall", HUNG) < best.get("stall", HUNG):
            best = found
        if not problems(name, best) or best.get("is_dead"):
            break
    return best


def problems(name: str, found: dict[str, Any]) -> list[str]:
    """What is not within the limits."""
    said = []
    if found.get("is_dead"):
        said.append("the process did not survive")
    stall = found.get("stall" if BOMBS[name].counts_gc else "stall_without_gc", 0)
    if stall > MOST_STALL:
        said.append(f"stall {stall:.0f} ms")
    if found.get("memory", 0) > BOMBS[name].most_memory:
        said.append(f"memory {found['memory']:.0f} MB, limit {BOMBS[name].most_memory:.0f}")
    if found["answer"].startswith("no answer") and not BOMBS[name].may_last:
        said.append("no answer")
    if not re.search(BOMBS[name].expected, found["answer"]):
        said.append(f"an answer that does not match {BOMBS[name].expected!r}")
    if "FOREIGN" in found["answer"]:
        said.append("an exception that is not the library's")
    return said


def shown(found: dict[str, Any]) -> str:
    """Milliseconds and MB of a bomb, for the table of all."""
    if found.get("is_dead"):
        return " ".join(found["answer"].split()[:3])
    return f"{found['stall']:,.0f} ms, {found['memory']:,.0f} MB"


def whole_table(results: Results, before: Results) -> str:
    """Write a row for each bomb, in Markdown."""
    lines = ["| bomb | what | before | now | answer |", "|---|---|---|---|---|"]
    for name, found in results.items():
        cells = [f"`{name}`", BOMBS[name].what, shown(before[name]) if name in before else "", shown(found)]
        lines.append(f"| {' | '.join(cells)} | {found['answer'].replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def summary(results: Results, before: Results, date: str) -> str:
    """Write a row for each group, in reStructuredText, for the documentation."""
    groups: dict[str, list[str]] = {}
    for name in results:
        groups.setdefault(BOMBS[name].group, []).append(name)
    worst = ["ms", "MB", "ended or hung"]
    rows = [["", "inputs", "ms without GC", *worst, *(f"before: {each}" for each in worst)]]
    for group, names in groups.items():
        old = [before[name] for name in names if name in before]
        now = [results[name] for name in names]
        without_gc = max((each["stall_without_gc"] for each in now if not each.get("is_dead")), default=0.0)
        rows.append([group, str(len(names)), f"{without_gc:,.0f}", *_worst(now), *_worst(old)])
    title = (
        f"Hostile input: the longest that other tasks waited, and the most memory ({date}, {machine()['cores']} cores)"
    )
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'  -' if number else '* -'} {cell}".rstrip() for number, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def _worst(found: Sequence[dict[str, Any]]) -> list[str]:
    alive = [each for each in found if not each.get("is_dead")]
    if not alive:
        return ["", "", str(len(found)) if found else ""]
    stall, memory = (max(each[field] for each in alive) for field in ("stall", "memory"))
    return [f"{stall:,.0f}", f"{memory:,.0f}", str(len(found) - len(alive))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what hostile input costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--before", type=Path, default=RESULTS / "bombs-before.json", help="for columns of the tables")
    parser.add_argument("--check", action="store_true", help="fail when a limit is exceeded")
    parser.add_argument("--list", action="store_true", help="only print the names")
    options = parser.parse_args()
    names = [name for name in BOMBS if not options.names or name.startswith(tuple(options.names))]
    if options.list:
        sys.exit("\n".join(f"{name:<26} {BOMBS[name].what}" for name in names))
    results: Results = {}
    failed = []
    for name in names:
        results[name] = found = measure(name, options.rounds)
        bad = problems(name, found)
        failed += [name] * bool(bad)
        stall, without_gc, memory = (found.get(each, 0) for each in ("stall", "stall_without_gc", "memory"))
        said = f"{stall:9,.1f} ms {without_gc:9,.1f} without GC {memory:8,.1f} MB"
        print(
            f"{'FAIL' if bad else 'ok  '} {name:<26} {said}  {found['answer']}{' <- ' + ', '.join(bad) if bad else ''}",
            flush=True,
        )
    if not options.names:
        before = json.loads(options.before.read_text())["results"] if options.before.exists() else {}
        date = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"date": date, "machine": machine(), "results": results}
        options.results.mkdir(parents=True, exist_ok=True)
        (options.results / "bombs.json").write_text(json.dumps(document, indent=1) + "\n")
        (options.results / "bombs.md").write_text(whole_table(results, before))
        (options.results / "bombs.rst").write_text(summary(results, before, date[:10]))
    print(f"{len(names) - len(failed)} of {len(names)} within the limits")
    if options.check and failed:
        sys.exit(f"error: {', '.join(failed)}")


if __name__ == "__main__":
    main()
