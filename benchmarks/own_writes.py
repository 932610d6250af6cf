"""How often an operator creates surplus pods in simulated stories, with and without reading its own writes.

::

    python benchmarks/own_writes.py                       # 1,000 stories with the option, and 1,000 without
    python benchmarks/own_writes.py --week                # the memory of the records during a virtual week
    python benchmarks/own_writes.py --cost                # the CPU time of a call to reconcile

The operator keeps as many pods with generated names as a Crew says, decides by its caches, and has no ``Expectations``.
The faults are late and broken watches, compacted histories, conflicts, errors, crashes, outages, and responses that are
lost or never arrive.  A new process knows nothing of its predecessor's writes, so a list that is older after a restart
is not among the faults.

During the week, the watch of ConfigMaps breaks every hour, with a list each second time, the informer of
ServiceAccounts never recovers, one response in ten is lost, and half of the requests are never added again.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import httpx
import trio
from trio.testing import MockClock

sys.path.insert(0, str(Path(__file__).parent.parent))

from trioformer import Client, ObjectMeta, SharedInformer, SharedInformerFactory, TrioformerError, crds, open_client
from trioformer.client._writes import _CACHES
from trioformer.controller import Controller, Request, is_controlled_by, set_controller_reference
from trioformer.models import KubernetesObject, Model
from trioformer.models.core_v1 import ConfigMap, Container, Pod, PodSpec, ServiceAccount
from trioformer.testing import APIServer
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


class LosingTransport(httpx.AsyncBaseTransport):
    """A connection that loses every tenth response to a write."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner, self._writes = inner, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request, and lose the response."""
        response = await self._inner.handle_async_request(request)
        if request.method != "GET":
            self._writes += 1
            if self._writes % 10 == 0:
                await response.aclose()
                raise httpx.ReadError("lost")
        return response


@attrs.define(eq=False)
class Week:
    """A controller that writes two kinds for a virtual week, one of which has a broken cache."""

    client: Client
    configs: SharedInformer[ConfigMap]
    calls: int = 0

    async def reconcile(self, request: Request) -> None:
        """Change an account, create a ConfigMap, and delete an old one."""
        self.calls += 1
        with suppress(TrioformerError):
            accounts = self.client.api(ServiceAccount, "default")
            await accounts.patch("web", {"metadata": {"annotations": {"call": str(self.calls)}}})
            await self.client.create(ConfigMap(metadata=ObjectMeta(generate_name="new-", namespace="default")))
            if old := self.configs.lister.list():
                await self.client.api(ConfigMap, "default").delete(old[0].name)

    def report(self, day: int, controller: Controller[Request]) -> None:
        """Print how much is remembered."""
        writes = controller._run.own_writes
        caches = [cache for found in _CACHES.values() for each in found.values() for cache in each]
        parts = [part for cache in caches for part in cache._parts.values()]
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024
        print(
            f"day {day}: {self.calls} calls; {len(writes._unseen)} requests with unseen writes, {len(writes._parked)} "
            f"parked, {len(writes._unclear)} with writes without a response; the caches remember "
            f"{sum(len(part._writes) for part in parts)} writes and {sum(len(part._removals) for part in parts)} "
            f"deletions; the process has {resident:.0f} MiB",
            flush=True,
        )


async def spend_a_week(per_hour: int) -> None:
    """Write during a virtual week, and print the sizes after each day."""
    server = APIServer()
    server.create(ServiceAccount(metadata=ObjectMeta(name="web", namespace="default")))
    transport = LosingTransport(server.http_transport())
    async with trio.open_nursery() as nursery, open_client(server.config, http_transport=transport) as client:
        await nursery.start(server.run)
        factory = SharedInformerFactory(client)
        week = Week(client, factory.informer(ConfigMap))
        factory.informer(ServiceAccount)
        controller = Controller("week", week.reconcile)
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        for verb in ("list", "watch"):
            server.fail_next(10**9, verb=verb, resource="serviceaccounts")
        server.disconnect_watches(kind=ServiceAccount)
        for hour in range(7 * 24):
            for number in range(per_hour):
                is_unique = number % 2 == 0
                controller.add(Request("default", f"once-{hour}-{number}" if is_unique else f"often-{number % 50}"))
                await trio.sleep(3600 / per_hour)
            server.disconnect_watches(kind=ConfigMap)
            server.fail_next(2, verb="watch", resource="configmaps")
            if hour % 2:
                server.compact()
            if hour % 24 == 23:
                week.report(hour // 24 + 1, controller)
        nursery.cancel_scope.cancel()


async def cost_of(requests: int, *, reads_own_writes: bool, writes: bool) -> float:
    """Return the CPU time of a call to reconcile, in microseconds, including the queue and the embedded server."""
    server = APIServer()
    async with trio.open_nursery() as nursery, server.open_client() as client:
        await nursery.start(server.run)
        factory = SharedInformerFactory(client)
        factory.informer(ConfigMap)
        server.create(ConfigMap(metadata=ObjectMeta(name="web", namespace="default")))
        configs, left, done = client.api(ConfigMap, "default"), requests, trio.Event()

        async def reconcile(request: Request) -> None:
            nonlocal left
            if writes:
                await configs.patch("web", {"data": {"left": str(left)}})
            left -= 1
            if not left:
                done.set()

        controller = Controller("cost", reconcile, workers=4, reads_own_writes=reads_own_writes)
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        began = time.process_time()
        for number in range(requests):
            controller.add(Request("default", f"web-{number}"))
        await done.wait()
        nursery.cancel_scope.cancel()
    return (time.process_time() - began) / requests * 1e6


def tell_cost(repeats: int) -> None:
    """Print the CPU time of a call to reconcile with and without the option, which take turns."""
    for writes, requests in ((False, 50_000), (True, 1_000)):
        spent: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(repeats):
            for option in (True, False):
                spent[option].append(trio.run(partial(cost_of, requests, reads_own_writes=option, writes=writes)))
        with_option, without = min(spent[True]), min(spent[False])
        print(
            f"{'one write' if writes else 'no writes'} in a call: {with_option:.2f} µs with the option, "
            f"{without:.2f} µs without, difference {with_option - without:+.2f} µs (the least of {repeats})"
        )


def main() -> None:
    """Tell the stories in both ways, or spend a week."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--week", action="store_true")
    parser.add_argument("--per-hour", type=int, default=60, help="the number of requests in each hour of the week")
    arguments = parser.parse_args()
    if arguments.cost:
        tell_cost(arguments.repeats)
        return
    if arguments.week:
        logging.disable()
        trio.run(spend_a_week, arguments.per_hour, clock=MockClock(autojump_threshold=0))
        return
    for reads_own_writes in (True, False):
        tell(reads_own_writes, arguments.stories, arguments.seed)


if __name__ == "__main__":
    main()
