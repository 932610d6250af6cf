"""``examples/website_operator.py`` on the embedded server: how it reconciles, and what single faults do to it."""

from __future__ import annotations

import io
import itertools
import re
import tokenize
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from examples.website_operator import LABEL, Website, WebsiteSpec, serve
from tests.support.faulty_requests import FAULTS, USUAL, Call, Fault, FaultyTransport
from tests.support.processes import ROOT
from trioformer import Client, NotFoundError, TrioformerError, open_client, resuming_watch
from trioformer.controller import is_controlled_by
from trioformer.crds import install_crds
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.conditions import find_condition
from trioformer.models.core_v1 import ConfigMap, Secret, Service
from trioformer.testing import APIServer

OWNED: tuple[type[KubernetesObject], ...] = (ConfigMap, Service, Deployment)
NOT_OF_THE_CLUSTER = "metadata.name!=kubernetes"


@attrs.define(eq=False)
class Scenario:
    """An operator, and a user who creates, changes and deletes a Website and its Secret."""

    server: APIServer
    transport: FaultyTransport
    client: Client
    settled: float
    """Seconds after which all effects of a step have happened; within six steps no watch reaches its timeout."""
    restarts: int = 0
    states: list[Website] = attrs.field(factory=list)

    async def operate(self) -> None:
        """Run the operator, and restart it when it fails, as a Deployment would."""
        while True:
            try:
                with trio.CancelScope() as self.transport.operator:
                    async with open_client(self.server.config, http_transport=self.transport) as client:
                        await serve(client, trio.Event())
            except* TrioformerError:
                pass
            self.restarts += 1
            await trio.sleep(1)

    async def roll_out(self) -> None:
        """Be the controller of Deployments: half a second after a change all pods are available."""
        deployments = self.client.api(Deployment)
        async with resuming_watch(deployments, resource_version=(await deployments.list()).resource_version) as events:
            async for event in events:
                now = event.object
                if event.type != "DELETED" and now.status.observed_generation != now.metadata.generation:
                    await trio.sleep(0.5)
                    status = {"observedGeneration": now.metadata.generation, "availableReplicas": now.spec.replicas}
                    try:
                        self.server.patch(Deployment, now.name, {"status": status})
                    except NotFoundError:
                        continue

    async def follow(self) -> None:
        """Record all states of the Website."""
        websites = self.client.api(Website)
        async with resuming_watch(websites, resource_version=(await websites.list()).resource_version) as events:
            async for event in events:
                self.states.append(event.object)

    async def run(self, nursery: trio.Nursery) -> None:
        """Create a Website without its Secret, add this, change both, remove the Secret, and delete the Website."""
        server = self.server
        await install_crds(self.client, Website)
        nursery.start_soon(self.roll_out)
        nursery.start_soon(self.follow)
        nursery.start_soon(self.operate)
        await trio.sleep(self.settled)
        spec = WebsiteSpec(page="Hello", replicas=2, secret="settings")  # a name
        server.create(Website(metadata=ObjectMeta(name="hello", namespace="default"), spec=spec))
        await self.settle("SecretMissing: there is no Secret settings")
        assert [obj for kind in OWNED for obj in server.list(kind, field_selector=NOT_OF_THE_CLUSTER)] == []
        server.create(Secret(metadata=ObjectMeta(name="settings", namespace="default")))
        await self.settle("Available: 2 of 2 pods are available", page="Hello")
        server.disconnect_watches(how="reset")
        server.patch(Website, "hello", {"spec": {"page": "Hello, world", "replicas": 3}})
        await self.settle("Available: 3 of 3 pods are available", page="Hello, world")
        server.patch(Secret, "settings", {"metadata": {"labels": {"changed": "yes"}}})
        server.patch(ConfigMap, "hello", {"data": {"index.html": "Buy!", "other": "stays"}})
        server.delete(Service, "hello")
        await self.settle("Available: 3 of 3 pods are available", page="Hello, world")
        assert server.get(ConfigMap, "hello").data["other"] == "stays"
        server.patch(Website, "hello", {"spec": {"secret": ""}})
        await self.settle("Available: 3 of 3 pods are available", page="Hello, world")
        assert server.get(Deployment, "hello").spec.template.spec.containers[0].env_from == ()
        server.delete(Website, "hello")
        await trio.sleep(self.settled)
        kinds = (Website, *OWNED)
        assert [obj for kind in kinds for obj in server.list(kind, field_selector=NOT_OF_THE_CLUSTER)] == []
        self.check_times()

    async def settle(self, ready: str, *, page: str = "") -> None:
        """Wait, and check that exactly the expected objects exist."""
        await trio.sleep(self.settled)
        website = self.server.get(Website, "hello")
        condition = find_condition(website.status.conditions, "Ready")
        assert condition is not None
        assert f"{condition.reason}: {condition.message}" == ready
        assert condition.status == ("True" if condition.reason == "Available" else "False")
        assert condition.observed_generation == website.metadata.generation
        assert website.metadata.finalizers == (LABEL,)
        if not page:
            return
        for kind in OWNED:
            (one,) = self.server.list(kind, field_selector=NOT_OF_THE_CLUSTER)
            assert one.name == "hello"
            assert is_controlled_by(one, website)
        assert self.server.get(ConfigMap, "hello").data["index.html"] == page
        deployment = self.server.get(Deployment, "hello")
        assert deployment.spec.replicas == website.status.available == website.spec.replicas
        version = self.server.get(Secret, "settings").resource_version if website.spec.secret else ""
        assert deployment.spec.template.metadata.annotations == {"example.com/secret-version": version}

    def check_times(self) -> None:
        """The time of the condition changes with its status only."""
        seen = [state.status.conditions[0] for state in self.states if state.status.conditions]
        for old, new in itertools.pairwise(seen):
            if old.status == new.status:
                assert new.last_transition_time == old.last_transition_time


@asynccontextmanager
async def run_scenario(faults: Mapping[Call, Fault] | None = None, *, settled: float = 45.0) -> AsyncIterator[Scenario]:
    server = APIServer(garbage_collector=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            scenario = Scenario(server, FaultyTransport(server.http_transport(), faults or {}), client, settled)
            try:
                await scenario.run(nursery)
            except BaseException as error:
                named = ", ".join(f"{call}: {fault}" for call, fault in (faults or {}).items())
                error.add_note(f"in the scenario with {named}")
                raise
            yield scenario
            nursery.cancel_scope.cancel()


async def test_a_website_and_its_objects_come_change_and_go(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_scenario() as scenario:
        assert scenario.restarts == 0
        reasons = [state.status.conditions[0].reason for state in scenario.states if state.status.conditions]
        assert [reason for reason, _ in itertools.groupby(reasons)] == [
            "SecretMissing",
            *["Progressing", "Available"] * 4,
        ]
    assert [each.getMessage() for each in caplog.records if each.name == "trioformer.controller"] == []


async def fail_each(fault: Fault, *, most: int) -> int:
    """Run the scenario once for each of the first requests of a kind, which fails; returns how many have failed."""
    async with run_scenario() as scenario:
        calls = [call for call in scenario.transport.calls if call.number <= most]
    failed = 0
    for call in calls:
        async with run_scenario({call: fault}) as scenario:
            failed += call in scenario.transport.calls  # depending on the order of events, the last one may be missing
    return failed


@pytest.mark.parametrize("fault", [each for each in FAULTS if each.name in USUAL], ids=str)
async def test_a_fault_of_the_first_requests_of_each_kind_leads_to_the_same_objects(
    fault: Fault, autojump_clock: trio.testing.MockClock
) -> None:
    assert await fail_each(fault, most=2) > 30


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_any_single_fault_leads_to_the_same_objects(fault: Fault, autojump_clock: trio.testing.MockClock) -> None:
    assert await fail_each(fault, most=20) > 90


async def test_the_pods_are_gone_before_the_website_is(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    await install_crds(client, Website)
    nursery.start_soon(serve, client, trio.Event())
    await trio.sleep(10)
    api_server.create(Website(metadata=ObjectMeta(name="hello", namespace="default")))
    await trio.sleep(10)
    api_server.patch(Deployment, "hello", {"metadata": {"finalizers": ["example.com/slow"]}})
    api_server.delete(Website, "hello")
    await trio.sleep(60)
    assert api_server.get(Website, "hello").metadata.finalizers == (LABEL,)
    api_server.patch(Deployment, "hello", {"metadata": {"finalizers": None}})
    await trio.sleep(10)
    assert api_server.list(Website) == []


def lines_of_python(text: str) -> int:
    """Count the lines of code: without blank lines, comments and docstrings."""
    lines: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if any(each.type != tokenize.STRING for each in statement):
                lines.update(line for each in statement for line in range(each.start[0], each.end[0] + 1))
            statement = []
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            statement.append(token)
    return len(lines)


def lines_in(folder: str, *names: str) -> int:
    """Count the lines of code in files of Go, Rust and YAML."""
    texts = ((ROOT / "tests" / "e2e" / folder / name).read_text() for name in names)
    return sum(not re.fullmatch(r"\s*((//|#[^\[]).*)?", line) for text in texts for line in text.splitlines())


def test_it_has_less_than_a_hundred_lines_of_code_and_the_table_counts_them() -> None:
    own = lines_of_python((ROOT / "examples" / "website_operator.py").read_text())
    go = lines_in("website_operator_go", "main.go", "controller.go", "api/v1/website_types.go")
    made = ("api/v1/zz_generated.deepcopy.go", "config/crd/example.com_websites.yaml")
    generated = lines_in("website_operator_go", *made)
    manifest = (ROOT / "examples" / "deploy" / "manifests" / "crd.yaml").read_text()
    definition = str(sum(not re.fullmatch(r"\s*(#.*)?", line) for line in manifest.splitlines()))
    rust = lines_in("website_operator_rust", "src/main.rs")
    assert own < 100
    page = (ROOT / "docs" / "howto" / "operators.rst").read_text()
    assert re.findall(r"lines that are written\n +- (\d+)\n +- (\d+)\n +- (\d+)", page) == [
        (str(own), str(go), str(rust))
    ]
    assert re.findall(r"lines that are generated\n +- (\d+),.*\n +- (\d+),", page) == [
        (str(definition), str(generated))
    ]
    assert f"in {own} lines of code" in page
