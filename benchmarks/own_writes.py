"""How often an operator creates surplus pods in simulated stories, with and without reading its own writes.

::

    python benchmarks/own_writes.py                       # 1,000 stories with the option, and 1,000 without

The operator keeps as many pods with generated names as a Crew says, decides by its caches, and has no ``Expectations``.
The faults are late and broken watches, compacted histories, conflicts, errors, crashes, outages, and responses that are
lost or never arrive.  A new process knows nothing of its predecessor's writes, so a list that is older after a restart
is not among the faults.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

sys.path.insert(0, str(Path(__file__).parent.parent))

from trioformer import Client, ObjectMeta, SharedInformer, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, is_controlled_by, set_controller_reference
from trioformer.models import KubernetesObject, Model
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing.simulation import World, drawn, step
from trioformer.testing.simulation._run import Outcome
from trioformer.testing.simulation._scenario import Scenario
from trioformer.testing.simulation._search import SHARING, Judge, story_of, story_without_faults
from trioformer.testing.simulation._simulate import collected

CRASHES: Final = frozenset({"kill", "stop"})


@crds.resource_part()
class CrewSpec(Model):
    """The desired state."""

    size: int = 1


@crds.custom_resource("example.com/v1")
class Crew(KubernetesObject):
    """A number of pods."""

    spec: CrewSpec = CrewSpec()


@attrs.define(eq=False)
class Operator:
    """Creates and deletes the pods of Crews."""

    client: Client
    crews: SharedInformer[Crew]
    pods: SharedInformer[Pod]

    async def reconcile(self, request: Request) -> None:
        """Compare the cached pods with the cached Crew."""
        crew = self.crews.lister.get(request)
        if crew is None or crew.metadata.deletion_timestamp is not None:
            return
        pods = [
            pod
            for pod in self.pods.lister.list(namespace=request.namespace)
            if is_controlled_by(pod, crew) and pod.metadata.deletion_timestamp is None
        ]
        api = self.client.api(Pod, request.namespace)
        if len(pods) < crew.spec.size and await self.client.api(Crew).get_or_none(request) is None:
            return  # the other cache is behind, and the garbage collector would delete the new pods at once
        for _ in range(crew.spec.size - len(pods)):
            new = Pod(
                metadata=ObjectMeta(generate_name=f"{crew.name}-", namespace=crew.namespace),
                spec=PodSpec(containers=[Container(name="main", image="main:1")]),
            )
            await api.create(set_controller_reference(new, crew))
        for pod in pods[crew.spec.size :]:
            await api.delete(pod.name, uid=pod.uid)


async def operate(client: Client, *, reads_own_writes: bool) -> None:
    """Run the operator."""
    factory = SharedInformerFactory(client)
    crews, pods = factory.informer(Crew), factory.informer(Pod)
    operator = Operator(client, crews, pods)
    controller = Controller("crews", operator.reconcile, reads_own_writes=reads_own_writes)
    controller.watch(crews)
    controller.owns(factory, Pod, owner=Crew)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await controller.run()


class Crews:
    """Users create, scale and delete Crews, and pods are deleted."""

    kinds = (Crew,)

    @step
    def create(self, world: World, name: str = drawn("red", "blue"), size: int = drawn(1, 4)) -> None:
        """Create a Crew."""
        world.create(Crew(metadata=ObjectMeta(name=name, namespace="default"), spec=CrewSpec(size=size)))

    @step
    def scale(self, world: World, name: str = drawn("red", "blue"), size: int = drawn(0, 4)) -> None:
        """Change the size."""
        world.patch(Crew, name, {"spec": {"size": size}})

    @step
    def delete(self, world: World, name: str = drawn("red", "blue")) -> None:
        """Delete a Crew."""
        world.delete(Crew, name)

    @step
    def lose_a_pod(self, world: World) -> None:
        """Delete the first pod."""
        for pod in world.list(Pod)[:1]:
            world.delete(pod)

    def always(self, world: World) -> None:
        """Check that no Crew has more pods than it has ever asked for."""
        for crew in world.list(Crew):
            pods = [
                pod
                for pod in world.list(Pod)
                if is_controlled_by(pod, crew) and pod.metadata.deletion_timestamp is None
            ]
            largest = self.largest[crew.uid] = max(crew.spec.size, self.largest.get(crew.uid, 0))
            assert len(pods) <= largest, f"{crew.name} has {len(pods)} pods instead of {largest}"

    def __init__(self) -> None:
        self.largest: dict[str, int] = {}


def tell(reads_own_writes: bool, stories: int, seed: int) -> None:
    """Tell the stories, and print how many of them led to surplus pods."""
    scenario = Scenario(Crews)
    judge = Judge(partial(operate, reads_own_writes=reads_own_writes), scenario)
    references: dict[int, Outcome] = {}

    def plain(group: int) -> Outcome:
        if group not in references:
            story = story_without_faults(scenario, seed, group, 1, 8)
            references.clear()
            references[group] = judge.reference(story).outcome
        return references[group]

    began, surplus, other, first = time.process_time(), 0, 0, plain(0)
    with collected():
        for number in range(stories):
            story = story_of(seed, number, first, plain(number // SHARING), 4)
            faults = tuple(fault for fault in story.faults if fault.kind != "rewind")
            if any(fault.kind in CRASHES for fault in faults):
                faults = tuple(fault for fault in faults if fault.kind != "stale")  # which makes lists older too
            outcome = judge.run(attrs.evolve(story, faults=faults))
            if outcome.problem is not None:
                surplus += outcome.problem.check == "always"
                other += outcome.problem.check != "always"
                print(f"  story {number}: {outcome.problem.check}: {outcome.problem.text}")
    seconds = time.process_time() - began
    print(
        f"reads_own_writes={reads_own_writes}: {surplus} of {stories} stories with surplus pods, {other} with other ",
        end="",
    )
    print(f"problems, {seconds:.0f} s of CPU time; faults that occurred: {judge.struck}")


def main() -> None:
    """Tell the stories in both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for reads_own_writes in (True, False):
        tell(reads_own_writes, arguments.stories, arguments.seed)


if __name__ == "__main__":
    main()
