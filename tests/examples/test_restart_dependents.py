"""``examples/restart_dependents.py``: one rollout for each restart, also with faults of the program and the server."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from examples.restart_dependents import LEDGER, RESTARTED_AT, ROLLOUT, Ledger, Restarter, Settings, serve
from tests.support.processes import HERE_OR_AS_PROCESS, KUBECONFIG, Result, result_here, running
from trioformer import Client, SharedInformerFactory, open_client, wait_for
from trioformer.controller import Request
from trioformer.errors import ConfigError, NotFoundError
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http
from trioformer.testing._serving._requests import RequestRecord
from trioformer.testing._storage._storage import Change

PROGRAM = "examples/restart_dependents.py"
DB, QUEUE, WEB, API = (Request("default", name) for name in ("db", "queue", "web", "api"))
WEB_NEEDS_DB = {WEB: [DB]}

Fault: TypeAlias = Literal["pass", "fail before", "fail after", "kill before", "kill after"]


@attrs.define(eq=False)
class FaultyTransport(httpx.AsyncBaseTransport):
    """The program's transport: before or after the server handles a request, it can fail or the program be killed."""

    inner: httpx.AsyncBaseTransport
    fault: Callable[[httpx.Request], Fault]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fault = self.fault(request)
        if fault == "fail before":
            raise httpx.ConnectError("refused")
        if fault == "kill before":
            self.scope.cancel()
            await trio.sleep_forever()
        response = await self.inner.handle_async_request(request)
        if fault != "pass":
            with trio.CancelScope(shield=True):
                await response.aread()
        if fault == "fail after":
            raise httpx.ReadError("reset")
        if fault == "kill after":
            self.scope.cancel()
            await trio.sleep_forever()
        return response


@attrs.define(eq=False)
class Nth:
    """Injects a fault into the n-th of the matching requests."""

    n: int
    fault: Fault
    matches: Callable[[httpx.Request], bool]
    count: int = 0

    def __call__(self, request: httpx.Request) -> Fault:
        if not self.matches(request):
            return "pass"
        self.count += 1
        return self.fault if self.count == self.n else "pass"


def is_patch(request: httpx.Request) -> bool:
    return request.method == "PATCH"


def is_not_a_watch(request: httpx.Request) -> bool:
    return "watch" not in request.url.params


def all_pass(request: httpx.Request) -> Fault:
    return "pass"


@attrs.define(eq=False)
class Cluster:
    """A cluster for the program: pods that restart, and the Deployment controller."""

    server: APIServer
    nursery: trio.Nursery
    rolled_out: dict[str, list[Mapping[str, str]]] = attrs.field(factory=dict)
    """For each Deployment the annotations of the templates that its controller has observed."""
    specs: dict[str, list[object]] = attrs.field(factory=dict)
    """For each Deployment the specs that were written, one after the other."""

    def __attrs_post_init__(self) -> None:
        self.server._storage.observers.append(self._record)

    def _record(self, resource: str, change: Change | None) -> None:
        if resource == "deployments.apps" and change is not None:
            specs = self.specs.setdefault(change.object.name, [])
            spec = json.loads(b"{" + change.object.body)["spec"]
            if not specs or specs[-1] != spec:
                specs.append(spec)

    # --- the program ---

    async def run_once(
        self,
        dependents: Mapping[Request, Sequence[Request]],
        fault: Callable[[httpx.Request], Fault] = all_pass,
        *,
        task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the program until it is killed."""
        with trio.CancelScope() as scope:
            transport = FaultyTransport(self.server.http_transport(operator=True), fault, scope)
            task_status.started(scope)
            async with open_client(self.server.config, http_transport=transport) as client:
                await serve(client, dependents)

    @asynccontextmanager
    async def program(
        self,
        dependents: Mapping[Request, Sequence[Request]] = WEB_NEEDS_DB,
        fault: Callable[[httpx.Request], Fault] = all_pass,
    ) -> AsyncIterator[None]:
        """Run the program while the block runs; the block starts after its first reconcile."""
        scope: trio.CancelScope = await self.nursery.start(partial(self.run_once, dependents, fault))
        await trio.sleep(1)
        try:
            yield
            await trio.sleep(100)  # until all effects have happened
        finally:
            scope.cancel()
            await wait_all_tasks_blocked()

    # --- StatefulSets ---

    def create_pod(self, name: str, *, of: str = "db", restarts: Sequence[int] = (0,)) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": of, "uid": of, "controller": True}
        metadata = {"name": name, "namespace": "default", "ownerReferences": [owner]}
        self.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
        self.set_restarts(name, *restarts)

    def set_restarts(self, name: str, *restarts: int, phase: str = "Running") -> None:
        containers = [{"name": f"c{number}", "restartCount": count} for number, count in enumerate(restarts)]
        self.server.patch(Pod, name, {"status": {"phase": phase, "containerStatuses": containers}})

    def restart(self, name: str = "db-0", container: int = 0) -> None:
        """Restart one container of a pod."""
        counts = [each.restart_count for each in self.server.get(Pod, name).status.container_statuses]
        counts[container] += 1
        self.set_restarts(name, *counts)

    def replace(self, name: str = "db-0", *, of: str = "db") -> None:
        """Replace a pod by a new one with the same name."""
        self.server.delete(Pod, name)
        self.create_pod(name, of=of)

    # --- Deployments ---

    def create_deployment(self, name: str = "web") -> None:
        template = {"metadata": {"annotations": {"own": "yes"}}, "spec": {"containers": [{"name": "main"}]}}
        metadata = {"name": name, "namespace": "default"}
        made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}
        self.server.create(made)

    async def control_deployments(self, *, delay: float = 0.1) -> None:
        """Act as the Deployment controller: observe changed templates, after a delay."""
        async with self.server.open_client() as client, trio.open_nursery() as nursery:
            factory = SharedInformerFactory(client)
            with factory.informer(Deployment).subscribe() as notifications:
                nursery.start_soon(factory.run)
                async for _ in notifications:
                    await trio.sleep(delay)
                    self.observe_all()

    def observe_all(self) -> None:
        for deployment in self.server.list(Deployment):
            seen = self.rolled_out.setdefault(deployment.name, [])
            annotations = dict(deployment.spec.template.metadata.annotations)
            if not seen or seen[-1] != annotations:
                seen.append(annotations)
            generation = deployment.metadata.generation
            if deployment.status.observed_generation != generation:
                self.server.patch(Deployment, deployment.name, {"status": {"observedGeneration": generation}})

    def rollouts(self, name: str = "web", *, other_changes: int = 0) -> int:
        """Return the number of rollouts that the Deployment controller observed; checks ledger and specs."""
        rollouts = [annotations for annotations in self.rolled_out[name] if ROLLOUT in annotations]
        assert [annotations[ROLLOUT] for annotations in rollouts] == [str(n + 1) for n in range(len(rollouts))]
        assert all(annotations[RESTARTED_AT] and annotations["own"] == "yes" for annotations in rollouts)
        deployment = self.server.get(Deployment, name)
        ledger = Ledger.of(deployment)
        assert ledger.rollouts == ledger.restarts == len(rollouts)
        assert len(self.specs[name]) == 1 + len(rollouts) + other_changes
        return len(rollouts)


@pytest.fixture
async def cluster(api_server: APIServer, nursery: trio.Nursery) -> Cluster:
    """A Deployment ``web``, three pods of the StatefulSet ``db``, and the Deployment controller."""
    made = Cluster(api_server, nursery)
    made.create_deployment()
    made.create_pod("db-0")
    made.create_pod("db-1")
    made.create_pod("db-2")
    nursery.start_soon(made.control_deployments)
    return made


# --- what a restart is ---


async def test_a_restarted_container_is_one_rollout(autojump_clock: MockClock, cluster: Cluster) -> None:
    async with cluster.program():
        cluster.restart()
    assert cluster.rollouts() == 1


async def test_a_replaced_pod_is_one_rollout(autojump_clock: MockClock, cluster: Cluster) -> None:
    async with cluster.program():
        cluster.replace()
    assert cluster.rollouts() == 1


async def test_a_deleted_pod_is_counted_when_its_successor_is_created(
    autojump_clock: MockClock, cluster: Cluster
) -> None:
    async with cluster.program():
        cluster.server.delete(Pod, "db-0")
        await trio.sleep(1_000)
        assert cluster.rollouts() == 0
        cluster.create_pod("db-0")
    assert cluster.rollouts() == 1


async def test_a_pod_that_restarts_and_is_replaced_before_a_reconcile_counts_once(
    autojump_clock: MockClock, cluster: Cluster
) -> None:
    async with cluster.program():
        cluster.restart()
        cluster.replace()
    assert cluster.rollouts() == 1


async def test_restarts_before_the_first_reconcile_do_not_count(autojump_clock: MockClock, cluster: Cluster) -> None:
    cluster.set_restarts("db-0", 7, 4)
    async with cluster.program():
        pass
    assert cluster.rollouts() == 0
    async with cluster.program():
        cluster.restart()
    assert cluster.rollouts() == 1


async def test_pods_that_are_created_later_count_from_zero(autojump_clock: MockClock, cluster: Cluster) -> None:
    async with cluster.program():
        cluster.create_pod("db-3")
        await trio.sleep(10)
        assert cluster.rollouts() == 0
        cluster.restart("db-3")
    assert cluster.rollouts() == 1
    cluster.create_pod("db-4", restarts=[2])  # while the program does not run
    async with cluster.program():
        pass
    assert cluster.rollouts() == 3


async def test_a_lower_count_is_a_restart_unless_the_pod_has_ended(
    autojump_clock: MockClock,
    cluster: Cluster,
) -> None:
    cluster.set_restarts("db-0", 5)
    async with cluster.program():
        cluster.set_restarts("db-0", 0)
        await trio.sleep(10)
        assert cluster.rollouts() == 1
        cluster.set_restarts("db-0", 1)
        await trio.sleep(10)
        assert cluster.rollouts() == 2
        cluster.set_restarts("db-0", phase="Failed")
        await trio.sleep(10)
        assert cluster.rollouts() == 2
        cluster.replace()
    assert cluster.rollouts() == 3


async def test_other_changes_and_other_pods_are_not_restarts(autojump_clock: MockClock, cluster: Cluster) -> None:
    cluster.create_pod("queue-0", of="queue")
    cluster.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-7", "namespace": "default"}})
    async with cluster.program():
        before = cluster.server.get(Deployment, "web").resource_version
        cluster.server.patch(Pod, "db-0", {"metadata": {"labels": {"seen": "yes"}}})
        cluster.set_restarts("db-0", 0, phase="Pending")
        cluster.restart("queue-0")
        cluster.set_restarts("db-7", 3)
        cluster.replace("queue-0", of="queue")
        cluster.server.delete(Pod, "db-1")
    assert cluster.rollouts() == 0
    assert cluster.server.get(Deployment, "web").resource_version == before


# --- dependencies ---


async def test_a_deployment_that_is_deleted_before_the_patch_is_not_an_error(
    autojump_clock: MockClock, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(request: httpx.Request) -> Fault:
        if is_patch(request) and b"template" in request.content:
            with suppress(NotFoundError):
                cluster.server.delete(Deployment, "web")
        return "pass"

    async with cluster.program(fault=fault):
        cluster.restart()
    assert cluster.server.list(Deployment) == []
    assert [record.message for record in caplog.records if record.name == "trioformer.controller"] == []


async def test_a_changed_configuration_applies_to_later_restarts(autojump_clock: MockClock, cluster: Cluster) -> None:
    cluster.create_pod("queue-0", of="queue", restarts=[3])
    async with cluster.program({WEB: [DB]}):
        cluster.restart("db-0")
    async with cluster.program({WEB: [DB, QUEUE]}):
        cluster.restart("queue-0")
    assert cluster.rollouts() == 2
    async with cluster.program({WEB: [QUEUE]}):
        cluster.restart("db-0")
        await trio.sleep(10)
        assert cluster.rollouts() == 2
    async with cluster.program({WEB: [DB, QUEUE]}):  # the ledger still has the earlier count of db
        pass
    assert cluster.rollouts() == 3


# --- when a rollout begins ---


async def test_a_rollout_waits_until_the_previous_one_is_observed(
    autojump_clock: MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    cluster = Cluster(api_server, nursery)
    cluster.create_deployment()
    cluster.create_pod("db-0")
    cluster.observe_all()
    async with cluster.program():
        cluster.restart()
        cluster.restart()
        await trio.sleep(10)
        cluster.observe_all()  # the restarts in the ledger
        await trio.sleep(1_000)
        ledger = Ledger.of(api_server.get(Deployment, "web"))
        assert (ledger.restarts, ledger.rollouts) == (2, 1)
        cluster.observe_all()
    cluster.observe_all()
    assert cluster.rollouts() == 2


async def test_a_paused_deployment_is_rolled_when_it_is_resumed(autojump_clock: MockClock, cluster: Cluster) -> None:
    async with cluster.program():
        cluster.server.patch(Deployment, "web", {"spec": {"paused": True}})
        cluster.restart("db-0")
        cluster.replace("db-1")
        await trio.sleep(1_000)
        assert Ledger.of(cluster.server.get(Deployment, "web")).rollouts == 0
        cluster.server.patch(Deployment, "web", {"spec": {"paused": None}})
    assert cluster.rollouts(other_changes=2) == 2


# --- faults ---


async def restarts_of_all_kinds(cluster: Cluster) -> None:
    """Cause four restarts: one alone, two together, and a replaced pod."""
    cluster.restart()
    await trio.sleep(5)
    cluster.restart("db-0")
    cluster.restart("db-2")
    await trio.sleep(5)
    cluster.replace("db-1")


@pytest.mark.parametrize("fault", ["fail before", "fail after", "kill before", "kill after"])
@pytest.mark.parametrize("n", range(1, 10))  # there are eight requests
async def test_each_restart_is_one_rollout_whichever_request_fails_or_kills(
    autojump_clock: MockClock, cluster: Cluster, n: int, fault: Fault
) -> None:
    async with cluster.program():
        pass  # the first reconcile records the pods
    async with cluster.program(fault=Nth(n, fault, is_not_a_watch)):
        await restarts_of_all_kinds(cluster)
    async with cluster.program():
        pass
    assert cluster.rollouts() == 4


async def test_it_continues_within_half_a_minute_after_a_long_outage(
    autojump_clock: MockClock, cluster: Cluster
) -> None:
    def refuse(_: RequestRecord) -> int | None:
        return 503 if trio.current_time() < 5_000 else None

    async with cluster.program():
        cluster.server.fail_next(1_000_000, verb="patch", status=refuse)
        cluster.restart()
        await trio.sleep_until(5_030)
        assert cluster.rollouts() == 1


async def test_restarts_while_the_program_is_down_are_counted_by_the_next_one(
    autojump_clock: MockClock, cluster: Cluster
) -> None:
    async with cluster.program():
        pass
    await restarts_of_all_kinds(cluster)
    await trio.sleep(1_000)
    assert cluster.rollouts() == 0
    async with cluster.program():
        pass
    assert cluster.rollouts() == 4


async def test_restarts_during_an_outage_of_the_server_are_counted_after_it(
    autojump_clock: MockClock, cluster: Cluster
) -> None:
    async with cluster.program():
        for _ in range(5):
            with cluster.server.unreachable():
                cluster.restart()
                await trio.sleep(20)
                cluster.restart("db-1")
            cluster.server.compact()
            await trio.sleep(100)
            cluster.restart()
            await trio.sleep(10)
    assert cluster.rollouts() == 15


async def test_concurrent_programs_do_the_work_of_one(autojump_clock: MockClock, cluster: Cluster) -> None:
    async with cluster.program(), cluster.program(), cluster.program():
        for _ in range(5):
            await restarts_of_all_kinds(cluster)
            await trio.sleep(1)
    assert cluster.rollouts() == 20


async def reconcile_once_with_outdated_cache(cluster: Cluster, client: Client, outdated: APIServer) -> None:
    """Run one reconcile with a cache of pods that is filled from an outdated API server."""
    await cluster.nursery.start(outdated.run)
    async with outdated.open_client() as stale, trio.open_nursery() as nursery:
        factory, stale_factory = SharedInformerFactory(client), SharedInformerFactory(stale)
        pods = stale_factory.informer(Pod, indexers={"owner": lambda pod: ["default/db"]})
        restarter = Restarter(client, factory.informer(Deployment), pods, WEB_NEEDS_DB)
        await nursery.start(factory.run)
        await nursery.start(stale_factory.run)
        assert await restarter.reconcile(WEB) is None
        nursery.cancel_scope.cancel()


async def test_a_cache_that_is_older_than_the_ledger_is_not_a_restart(
    autojump_clock: MockClock, cluster: Cluster, client: Client
) -> None:
    async with cluster.program():
        cluster.replace("db-0")
        cluster.restart("db-1")
    assert cluster.rollouts() == 2
    outdated = APIServer(seed=1)
    for name in ("db-0", "db-1", "db-2"):
        Cluster(outdated, cluster.nursery).create_pod(name)  # with other uids than the current pods
    await reconcile_once_with_outdated_cache(cluster, client, outdated)
    cluster.observe_all()
    assert cluster.rollouts() == 2


async def test_an_invalid_ledger_is_logged_and_blocks_rollouts_until_corrected(
    autojump_clock: MockClock, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.program():
        cluster.server.patch(Deployment, "web", {"metadata": {"annotations": {LEDGER: "{"}}})
        cluster.restart()
        await trio.sleep(10)
        assert "default/web" in caplog.text
        cluster.server.patch(Deployment, "web", {"metadata": {"annotations": {LEDGER: None}}})
        await trio.sleep(100)
        assert cluster.rollouts() == 0
        cluster.restart()
    assert cluster.rollouts() == 1


# --- the configuration ---


def test_a_configuration_is_read(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(url="http://127.0.0.1:1"))
    settings = Settings.parse(f"""
log_level: DEBUG
kubeconfig: {kubeconfig}
qps: 50
burst: 100
dependents:
  default/web: [default/db, default/queue]
  default/api: [default/db]
""")
    assert settings.dependents == {WEB: [DB, QUEUE], API: [DB]}
    assert (settings.log_level, settings.qps, settings.burst) == ("DEBUG", 50, 100)
    assert settings.kubeconfig == str(kubeconfig)
    assert Settings.parse("", kubeconfig=str(kubeconfig)) == Settings(kubeconfig=str(kubeconfig))
    with pytest.raises(ConfigError, match="missing"):
        Settings.parse(f"kubeconfig: {kubeconfig}.missing")
    with pytest.raises(ConfigError, match="missing"):
        Settings.parse(f"kubeconfig: {kubeconfig}", kubeconfig=f"{kubeconfig}.missing")


def test_configuration_errors_do_not_quote_the_file() -> None:
    text = "qps: 5\nkubeconfig: s3cret: x"
    with pytest.raises(ValueError, match="not a valid configuration") as caught:
        Settings.parse(text)
    assert str(caught.value) == "not a valid configuration: mapping values are not allowed here, line 2, column 19"
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


# --- the program as a process ---


@pytest.mark.parametrize("result", HERE_OR_AS_PROCESS)
def test_embedded_it_shows_a_rollout_for_each_restart_until_interrupted(result: Result) -> None:
    code, lines, errors = result(PROGRAM, "--embedded", is_virtual=True, interrupt_after=5)
    assert lines[:4] == [
        "watching for restarts",
        "default/web: restarts 0, rollouts 0",
        "default/web: restarts 1, rollouts 1",
        "default/web: restarts 2, rollouts 2",
    ]
    assert "default/web: restarts 4, rollouts 4" in lines
    assert (code, errors) == (130, [])


async def served(nursery: trio.Nursery, kubeconfig: Path, *, seed: int = 0) -> Cluster:
    """Serve a cluster on a socket, and write its kubeconfig; and act as its Deployment controller."""
    server = APIServer(seed=seed)
    url = await nursery.start(serve_http, server)
    await trio.Path(kubeconfig).write_text(KUBECONFIG.format(url=url))
    cluster = Cluster(server, nursery)
    for name, stateful_set in (("web", "db"), ("api", "queue")):
        cluster.create_deployment(name)
        cluster.create_pod(f"{stateful_set}-0", of=stateful_set)
    await nursery.start(server.run)
    nursery.start_soon(cluster.control_deployments)
    return cluster


async def test_the_configuration_is_followed(nursery: trio.Nursery, tmp_path: Path) -> None:
    first = await served(nursery, tmp_path / "first")
    second = await served(nursery, tmp_path / "second", seed=1)
    config = tmp_path / "config.yaml"
    config.write_text(f"kubeconfig: {tmp_path / 'first'}\ndependents:\n  default/web: [default/db]\n")
    with trio.fail_after(60):
        async with running(PROGRAM, "--config", str(config)) as program:
            await program.wait_for_line("default/web: restarts 0, rollouts 0")
            first.restart("db-0")
            await program.wait_for_line("default/web: restarts 1, rollouts 1")

            # Another dependency.
            config.write_text(config.read_text() + "  default/api: [default/queue]\n")
            await program.wait_for_line("default/api: restarts 0, rollouts 0")
            first.restart("queue-0")
            await program.wait_for_line("default/api: restarts 1, rollouts 1")

            # An invalid configuration changes nothing.
            config.write_text("color: red")
            await program.wait_for(lambda lines: "color" in lines[-1])
            broken = tmp_path / "broken"
            invalid = base64.b64encode(b"-----BEGIN CERTIFICATE-----\ninvalid\n-----END CERTIFICATE-----\n").decode()
            cluster = f'https://127.0.0.1:1", certificate-authority-data: "{invalid}'
            broken.write_text(KUBECONFIG.format(url=cluster))
            config.write_text(f"kubeconfig: {broken}\n")
            await program.wait_for(lambda lines: "the previous configuration is kept" in lines[-1])
            first.replace("db-0")
            await program.wait_for_line("default/web: restarts 2, rollouts 2")

            # Another cluster.
            config.write_text(f"kubeconfig: {tmp_path / 'second'}\ndependents:\n  default/web: [default/db]\n")
            await program.wait_for(lambda lines: lines.count("default/web: restarts 0, rollouts 0") == 2)
            second.restart("db-0")
            await program.wait_for(lambda lines: lines.count("default/web: restarts 1, rollouts 1") == 2)
            first.restart("db-0")

            # Another log level, and a dependency that shows when it applies.
            number = len(program.lines)
            config.write_text("log_level: WARNING\n" + config.read_text() + "  default/api: [default/queue]\n")
            async with open_client(kubeconfig=tmp_path / "second") as client:
                deployments = client.api(Deployment, "default")
                await wait_for(deployments, "api", lambda found: LEDGER in found.metadata.annotations)
                second.restart("db-0")
                await wait_for(deployments, "web", lambda found: Ledger.of(found).rollouts == 2)
            assert await program.interrupt() == 130
    assert program.lines[number:] == []
    assert program.errors == []
    assert Ledger.of(first.server.get(Deployment, "web")).rollouts == 2


def test_a_missing_configuration_is_wrong_usage() -> None:
    for arguments, problem in (
        (["--config", "missing.yaml"], "argument --config: there is no file missing.yaml"),
        ([], "without --embedded the following arguments are required: --config"),
    ):
        found = result_here(PROGRAM, *arguments)
        assert found == (2, [], [f"restart_dependents.py: error: {problem} (see --help)"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("color: red", "there is no setting 'color'"),
        ("- a", "'list' object is not a mapping"),
        ("qps: 0", "'qps' must be > 0: 0"),
        ("[", "expected the node content, but found '<stream end>', line 1, column 2"),
    ],
)
def test_a_configuration_that_is_not_valid_is_reported_in_one_line(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    found = result_here(PROGRAM, "--config", str(file))
    assert found == (1, [], [f"restart_dependents: not a valid configuration: {problem}; in {file}"])
