"""How long stories take, and whether their traces are the same in another process, order or interpreter.

::

    python benchmarks/simulation.py                       # 200 stories of examples/website_operator.py
    python benchmarks/simulation.py --stories 1000 --reverse

Prints the CPU time, the requests and the virtual time for each story, the memory, and a digest of all traces, which
must be the same whenever the stories are the same.
"""

# ruff: noqa: E402  # the examples are not a package

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "examples")]

from website_operator import Website, WebsiteSpec, serve

from trioformer.models import ObjectMeta
from trioformer.testing.simulation import World, drawn, step
from trioformer.testing.simulation._repeat import trace_of
from trioformer.testing.simulation._run import Outcome
from trioformer.testing.simulation._scenario import Scenario
from trioformer.testing.simulation._search import SHARING, Judge, story_of, story_without_faults
from trioformer.testing.simulation._simulate import collected

NAMES = ("one", "two")


class Websites:
    """Users create, change and delete two Websites."""

    kinds = (Website,)

    @step
    def create(self, world: World, name: str = drawn(*NAMES), replicas: int = drawn(0, 3)) -> None:
        """Create a Website."""
        metadata = ObjectMeta(name=name, namespace="default")
        world.create(Website(metadata=metadata, spec=WebsiteSpec(page="Hello", replicas=replicas)))

    @step
    def scale(self, world: World, name: str = drawn(*NAMES), replicas: int = drawn(0, 3)) -> None:
        """Change the number of pods."""
        world.patch(Website, name, {"spec": {"replicas": replicas}})

    @step
    def write(self, world: World, name: str = drawn(*NAMES), page: str = drawn("", "Hello", "Bye")) -> None:
        """Change the page."""
        world.patch(Website, name, {"spec": {"page": page}})

    @step
    def delete(self, world: World, name: str = drawn(*NAMES)) -> None:
        """Delete a Website."""
        world.delete(Website, name)


def main() -> None:
    """Tell the stories, and print what they have cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", type=int, default=30, help="the largest number of steps and faults of a story")
    parser.add_argument("--reverse", action="store_true", help="tell the stories in reverse order")
    arguments = parser.parse_args()
    scenario = Scenario(Websites)
    judge = Judge(serve, scenario)
    most_faults = arguments.parts // 3

    def plain(group: int) -> Outcome:
        story = story_without_faults(scenario, arguments.seed, group, 2, arguments.parts - most_faults)
        return judge.reference(story).outcome

    began = time.process_time()
    digests: dict[int, str] = {}
    first = plain(0)
    numbers = range(arguments.stories)
    with collected():
        for number in reversed(numbers) if arguments.reverse else numbers:
            outcome = judge.judge(story_of(arguments.seed, number, first, plain(number // SHARING), most_faults))
            if outcome.problem is not None:
                print(f"story {number}: {outcome.problem.check}: {outcome.problem.text}")
            digests[number] = hashlib.sha256("\n".join(trace_of(outcome.entries)).encode()).hexdigest()
    seconds = time.process_time() - began
    total = hashlib.sha256("".join(digests[number] for number in numbers).encode()).hexdigest()
    print(f"{arguments.stories} stories, {judge.runs} runs with those without faults: {seconds:.1f} s of CPU time")
    print(f"for each run: {seconds / judge.runs:.3f} s, {judge.requests / judge.runs:.0f} requests, ", end="")
    print(f"{judge.seconds / judge.runs:.0f} virtual seconds")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    print(f"traces: {total[:16]}")


if __name__ == "__main__":
    main()
