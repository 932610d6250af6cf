"""Runs fuzzers by hand: ``python -m tests.fuzz statuses lists --count 10000 --seed 7``."""

from __future__ import annotations

import argparse

from .all_fuzzers import FUZZERS, INPUTS, LONG_SEED, cases_of
from .engine import generated, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FUZZERS, []], help="fuzzers; without any, all")
    parser.add_argument("--count", type=int, default=1_000, help="inputs of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--long", action="store_true", help="the inputs of pytest --long")
    parser.add_argument("--corpus", action="store_true", help="the inputs of the corpus")
    parser.add_argument("--only", type=int, help="the number of one input, which is shown")
    given = parser.parse_args()
    for name in given.names or FUZZERS:
        fuzzer = FUZZERS[name]()
        start, count = (0, given.count) if given.only is None else (given.only, 1)
        seed, count = (LONG_SEED, INPUTS[name]) if given.long else (given.seed, count)
        inputs = generated(fuzzer, count, seed=seed, start=start)
        if given.only is not None:
            label, value = next(inputs)
            print(repr(value)[:5_000])
            inputs = iter([(label, value)])
        report = run(fuzzer, cases_of(name) if given.corpus else inputs)
        print(report, flush=True)
        for first, each in report.findings.items():
            print(f"  {first}\n      {len(each)} x, input {each[0]}")


if __name__ == "__main__":
    main()
