"""Measure what ``import trioformer`` adds to ``import trio, httpx``.

::

    python benchmarks/import_time.py [--runs 31] [--limit 1.5]

Each run is a fresh interpreter that times nothing but its import statement; the two statements take turns, so that a
busy machine slows both.  Prints the medians and their ratio, and fails when the ratio reaches the limit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

BASE = "import trio, httpx"
OURS = "import trioformer"


def seconds(statement: str) -> float:
    """Time an import statement in an interpreter of its own."""
    program = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
    return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what import trioformer adds to import trio, httpx.")
    parser.add_argument("--runs", type=int, default=31, help="how often each statement is timed (default 31)")
    parser.add_argument("--limit", type=float, default=1.5, help="the ratio that must not be reached (default 1.5)")
    options = parser.parse_args()
    for statement in (BASE, OURS):
        seconds(statement)  # writes the bytecode, fills the file cache
    pairs = [(seconds(BASE), seconds(OURS)) for _ in range(options.runs)]
    base = statistics.median(base for base, _ in pairs)
    ours = statistics.median(ours for _, ours in pairs)
    ratio = ours / base
    print(f"{BASE:<20} {base * 1000:7.1f} ms")
    print(f"{OURS:<20} {ours * 1000:7.1f} ms")
    print(f"{'ratio':<20} {ratio:7.2f}    (must be under {options.limit}; medians of {options.runs} runs)")
    if ratio >= options.limit:
        sys.exit(1)


if __name__ == "__main__":
    main()
