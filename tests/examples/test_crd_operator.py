"""``examples/crd_operator.py``: how it reconciles a Website, and that faults do not change the result."""

from __future__ import annotations

import itertools
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from examples.crd_operator import FINALIZER, LABEL, Website, WebsiteSpec, install, serve
from tests.support.faulty_requests import FAULTS, USUAL, Call, Fault, FaultyTransport
from tests.support.processes import HERE_OR_AS_PROCESS, KUBECONFIG, Result, running
from trioformer import Client, NotFoundError, TrioformerError, has_condition, open_client, resuming_watch, wait_for
from trioformer.controller import controller_of
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import ConfigMap, Pod, Service
from trioformer.models.events_v1 import Event
from trioformer.models.meta_v1 import Condition
from trioformer.testing import APIServer

# --- the scenario -----------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Scenario:
    """An operator, and a user who creates, changes and deletes a Website."""

    server: APIServer
    transport: FaultyTransport
    client: Client
    settled: float
    """Seconds after which all effects of a step have happened; within six steps no watch reaches its timeout."""
    restarts: int = 0
    flips: int = 0
    states: list[Website] = attrs.field(factory=list)

    async def operate(self) -> None:
        """Run the operator, and restart it when it fails, as a Deployment would."""
        while True:
            try:
                with trio.CancelScope() as self.transport.operator:
                    async with open_client(self.server.config, http_transport=self.transport) as client:
                        await serve(client, self.server.clock, trio.Event())
            except* TrioformerError:
                pass
            self.restarts += 1
            await trio.sleep(1)

    async def follow(self) -> None:
        """Record all states of the Website."""
        websites = self.client.api(Website)
        async with resuming_watch(websites, resource_version=(await websites.list()).resource_version) as events:
            async for event in events:
                self.states.append(event.object)

    async def run(self, nursery: trio.Nursery) -> None:
        """Create a Website and an orphan for it, change it, release one of its pods, scale it, and delete it."""
        nursery.start_soon(self.operate)
        definitions = self.client.api(CustomResourceDefinition)
        await wait_for(definitions, "websites.example.com", has_condition("Established"), missing_ok=True)
        nursery.start_soon(self.follow)
        await trio.sleep(self.settled)
        self.server.create(from_dict(Pod, {"metadata": {"name": "orphan", "labels": {LABEL: "hello"}}}))
        spec = WebsiteSpec(page="Hello", replicas=3)
        self.server.create(Website(metadata=ObjectMeta(name="hello", namespace="default"), spec=spec))
        await self.settle(page="Hello", pods=3)
        assert self.is_owned("orphan")
        self.server.disconnect_watches(how="reset")
        self.server.patch(Website, "hello", {"spec": {"page": "Hello, world", "replicas": 1}})
        await self.settle(page="Hello, world", pods=1)
        (left,) = self.pods()
        self.server.patch(Pod, left, {"metadata": {"labels": {LABEL: None}}})
        await self.settle(page="Hello, world", pods=1, foreign_pods=[left])
        assert not self.is_owned(left)
        self.server.patch(Website, "hello", {"spec": {"replicas": 2}})
        await self.settle(page="Hello, world", pods=2, foreign_pods=[left])
        self.server.delete(Website, "hello")
        await trio.sleep(self.settled)
        with pytest.raises(NotFoundError):
            self.server.get(Website, "hello")
        assert self.pods() == [left]
        assert self.server.list(ConfigMap) == []
        assert [one.name for one in self.server.list(Service)] == ["kubernetes"]
        self.flips = self.count_flips()

    def pods(self) -> list[str]:
        return [pod.name for pod in self.server.list(Pod)]

    def is_owned(self, pod: str) -> bool:
        controller = controller_of(self.server.get(Pod, pod))
        return controller is not None and controller.uid == self.server.get(Website, "hello").uid

    async def settle(self, *, page: str, pods: int, foreign_pods: Sequence[str] = ()) -> None:
        """Wait, and check that exactly the expected objects exist."""
        await trio.sleep(self.settled)
        website = self.server.get(Website, "hello")
        assert [pod for pod in self.pods() if not self.is_owned(pod)] == list(foreign_pods)
        assert len(self.pods()) == pods + len(foreign_pods)
        for kind in (ConfigMap, Service):
            (one,) = self.server.list(kind, field_selector="metadata.name!=kubernetes")
            assert one.name == "hello"
            assert controller_of(one) == controller_of(self.server.get(Pod, self.own_pod()))
        assert self.server.get(ConfigMap, "hello").data == {"index.html": page}
        assert website.metadata.finalizers == (FINALIZER,)
        generation = website.metadata.generation
        (ready,) = to_dict(website)["status"].pop("conditions")
        assert ready.pop("lastTransitionTime")
        assert ready == {
            "type": "Ready",
            "status": "True",
            "reason": "Complete",
            "message": "all objects exist",
            "observedGeneration": generation,
        }
        assert (website.status.observed_generation, website.status.pods) == (generation, pods)

    def own_pod(self) -> str:
        return next(pod for pod in self.pods() if self.is_owned(pod))

    def count_flips(self) -> int:
        """Count how often a complete Website became incomplete; checks the times of its conditions."""
        seen = [state.status.conditions[0] for state in self.states if state.status.conditions]
        flips = 0
        for old, new in itertools.pairwise(seen):
            assert old.last_transition_time is not None
            assert new.last_transition_time is not None
            if old.status == new.status:
                assert new.last_transition_time == old.last_transition_time
            elif new.status == "False":  # it was complete for some time; it may become complete without any
                assert new.last_transition_time > old.last_transition_time
                flips += 1
        return flips


@asynccontextmanager
async def run_scenario(faults: Mapping[Call, Fault] | None = None, *, settled: float = 45.0) -> AsyncIterator[Scenario]:
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            scenario = Scenario(server, FaultyTransport(server.http_transport(), faults or {}), client, settled)
            try:
                await scenario.run(nursery)
            except BaseException as error:
                error.add_note(
                    f"in the scenario with {', '.join(f'{call}: {fault}' for call, fault in (faults or {}).items())}"
                )
                raise
            yield scenario
            nursery.cancel_scope.cancel()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "trioformer.controller"]


async def test_a_website_is_created_changed_and_deleted(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_scenario() as scenario:
        assert (scenario.restarts, scenario.flips) == (0, 3)
        statuses = [call for call in scenario.transport.calls if call.what.endswith("/status")]
        assert len(statuses) == 8  # incomplete and complete, four times
    assert warnings_of(caplog) == []
    words: Counter[str] = Counter()
    for event in scenario.server.list(Event):  # one for all pods with the same name
        words[" ".join((event.note or "").split()[:2])] += 1 if event.series is None else event.series.count
    assert words == {
        "created ConfigMap": 1,
        "created Service": 1,
        "created Pod": 4,
        "deleted Pod": 4,
        "deleted ConfigMap": 1,
        "deleted Service": 1,
        "nothing is": 1,
    }


@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, id=str(each), marks=() if each.name in USUAL else pytest.mark.long) for each in FAULTS],
)
async def test_any_single_fault_leads_to_the_same_result(fault: Fault, autojump_clock: trio.testing.MockClock) -> None:
    async with run_scenario() as scenario:
        calls = scenario.transport.calls
    failed = 0
    for call in calls:
        async with run_scenario({call: fault}) as scenario:
            if call in scenario.transport.calls:  # depending on the order of events, the last reconcile may be missing
                failed += 1
                assert scenario.restarts <= (fault.is_deadly or "customresourcedefinitions" in call.what)
    assert failed > 55


@pytest.mark.long
async def test_any_combination_of_faults_leads_to_the_same_result(autojump_clock: trio.testing.MockClock) -> None:
    async with run_scenario() as scenario:
        calls = scenario.transport.calls
    for seed in range(100):
        rng = random.Random(seed)
        faults = {call: rng.choice(FAULTS) for call in rng.sample(calls, rng.randint(2, 6))}
        async with run_scenario(faults, settled=45.0 * len(faults)):
            pass


# --- single cases -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def operated(api_server: APIServer, client: Client, nursery: trio.Nursery) -> APIServer:
    """An API server with a running operator, and a Website of two pods."""
    await install(client)
    await install(client)  # as at each start
    nursery.start_soon(serve, client, api_server.clock, trio.Event())
    spec = WebsiteSpec(page="Hello", replicas=2)
    api_server.create(Website(metadata=ObjectMeta(name="hello", namespace="default"), spec=spec))
    await trio.sleep(1)
    return api_server


def ready_of(server: APIServer) -> Condition:
    (condition,) = server.get(Website, "hello").status.conditions
    return condition


async def test_a_broken_watch_of_pods_causes_no_extra_or_missing_pods(
    autojump_clock: trio.testing.MockClock, operated: APIServer
) -> None:
    seen: set[int] = set()
    for before, replicas in ((2, 4), (4, 1)):
        operated.fail_next(3, verb="watch", resource="pods")
        operated.fail_next(1, verb="list", resource="pods")
        operated.disconnect_watches(kind=Pod)
        operated.patch(Website, "hello", {"spec": {"replicas": replicas}})
        for number in range(20):
            operated.patch(Website, "hello", {"metadata": {"labels": {"number": str(number)}}})
            await trio.sleep(0.1)
            seen.add(len(operated.list(Pod)))
        assert (ready_of(operated).status, ready_of(operated).message) == ("False", f"{before} of {replicas} pods")
        await trio.sleep(60)
        assert len(operated.list(Pod)) == replicas
        assert ready_of(operated).status == "True"
    assert seen == {1, 4}


async def test_pods_that_no_cache_has_shown_are_replaced(
    autojump_clock: trio.testing.MockClock, operated: APIServer
) -> None:
    """The pods are created and deleted while the watch is broken."""
    known = operated.list(Pod)
    operated.fail_next(3, verb="watch", resource="pods")
    operated.disconnect_watches(kind=Pod)
    operated.patch(Website, "hello", {"spec": {"replicas": 4}})
    await trio.sleep(0.1)
    for pod in operated.list(Pod):
        if pod not in known:
            operated.delete(pod)
    operated.compact()
    assert len(operated.list(Pod)) == 2
    await trio.sleep(30)
    assert len(operated.list(Pod)) == 4
    assert ready_of(operated).status == "True"


async def test_deleted_changed_and_ended_objects_are_restored(
    autojump_clock: trio.testing.MockClock, operated: APIServer
) -> None:
    ended, going = operated.list(Pod)
    operated.patch(Pod, ended.name, {"status": {"phase": "Failed"}})
    operated.delete(going)
    operated.delete(Service, "hello")
    operated.patch(ConfigMap, "hello", {"data": {"index.html": "Buy!"}})
    operated.patch(Website, "hello", {"status": {"pods": 99}})
    await trio.sleep(1)
    alive = [pod for pod in operated.list(Pod) if pod.status.phase != "Failed"]
    assert len(alive) == 2
    assert going.uid not in [pod.uid for pod in alive]
    assert operated.get(Service, "hello").metadata.labels == {LABEL: "hello"}
    assert operated.get(ConfigMap, "hello").data == {"index.html": "Hello"}
    assert operated.get(Website, "hello").status.pods == 2
    assert ready_of(operated).status == "True"


async def test_a_terminating_pod_is_replaced_and_blocks_the_deletion_of_its_website(
    autojump_clock: trio.testing.MockClock, operated: APIServer
) -> None:
    slow, _ = [pod.name for pod in operated.list(Pod)]
    operated.patch(Pod, slow, {"metadata": {"finalizers": ["example.com/slow"]}})
    operated.delete(Pod, slow)
    await trio.sleep(1)
    assert len(operated.list(Pod)) == 3
    assert operated.get(Website, "hello").status.pods == 2
    operated.delete(Website, "hello")
    await trio.sleep(60)
    assert [pod.name for pod in operated.list(Pod)] == [slow]
    assert operated.get(Website, "hello").metadata.finalizers == (FINALIZER,)
    operated.patch(Pod, slow, {"metadata": {"finalizers": None}})
    await trio.sleep(1)
    assert operated.list(Website) == []


async def test_a_name_conflict_is_reported_in_an_event_and_retried(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="hello", namespace="default"), data={"mine": "yes"}))
    await install(client)
    nursery.start_soon(serve, client, api_server.clock, trio.Event())
    api_server.create(Website(metadata=ObjectMeta(name="hello", namespace="default")))
    await trio.sleep(10)
    (warning,) = [event for event in api_server.list(Event) if event.type == "Warning"]
    assert (warning.reason, warning.regarding.name) == ("Failed", "hello")
    assert "already exists" in (warning.note or "")
    assert api_server.get(ConfigMap, "hello").data == {"mine": "yes"}
    api_server.delete(ConfigMap, "hello")
    await trio.sleep(60)
    assert ready_of(api_server).status == "True"


@pytest.mark.parametrize("result", HERE_OR_AS_PROCESS)
def test_embedded_somebody_uses_the_program_and_it_shuts_down_cleanly(result: Result) -> None:
    code, lines, errors = result("examples/crd_operator.py", "--embedded", is_virtual=True, interrupt_after=2.9)
    assert lines[-1] == "default/hello: nothing is left"
    words = Counter(" ".join(line.split()[1:3]) for line in lines)
    assert words == {
        "": 1,
        "created ConfigMap": 1,
        "created Service": 1,
        "created Pod": 3,
        "deleted Pod": 3,
        "deleted ConfigMap": 1,
        "deleted Service": 1,
        "nothing is": 1,
    }
    assert (code, errors) == (0, [])


@pytest.mark.parametrize("patience", [30.0, pytest.param(5.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_program_while_the_server_does_not_respond(
    tmp_path: Path, number: signal.Signals, patience: float
) -> None:
    requested = trio.Event()

    async def hang(stream: trio.SocketStream) -> None:
        requested.set()
        await trio.sleep_forever()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, hang, 0, host="127.0.0.1"))
            kubeconfig = tmp_path / "kubeconfig"
            kubeconfig.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{listener.socket.getsockname()[1]}"))
            async with running("examples/crd_operator.py", "--kubeconfig", str(kubeconfig)) as program:
                await requested.wait()
                with trio.fail_after(patience):
                    program.process.send_signal(number)
                    assert await program.wait_until_over() == 0
                assert program.errors == []
            nursery.cancel_scope.cancel()


async def test_the_operator_stops_while_its_caches_are_not_filled(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    await install(client)
    for verb in ("list", "watch"):
        api_server.fail_next(1_000, verb=verb, resource="pods", status=500)
    stop = trio.Event()
    with trio.fail_after(20):
        async with trio.open_nursery() as operating:
            operating.start_soon(serve, client, api_server.clock, stop)
            await trio.sleep(10)
            stop.set()
    assert trio.current_time() == 10
