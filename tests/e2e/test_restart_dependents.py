"""``examples/restart_dependents.py`` in a cluster with nodes: each restart of a pod rolls the Deployment once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

from tests.e2e.workloads import (
    Reader,
    assert_up_to_date,
    deployment,
    fail,
    is_rolled_out,
    make_namespace,
    restart_container,
    stateful_set,
)
from tests.support.processes import ROOT, Program, running
from trioformer import SharedInformer, SharedInformerFactory, open_client
from trioformer.client import Client
from trioformer.models.apps_v1 import Deployment, ReplicaSet, StatefulSet
from trioformer.models.core_v1 import Pod
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for

RESTARTED_AT = "example.com/restartedAt"
LEDGER = "example.com/restart-ledger"
ROLLOUT = "example.com/rollout"
REVISION = "deployment.kubernetes.io/revision"
PODS = ("db-0", "db-1", "db-2")


@attrs.define(eq=False)
class RestartScenario:
    """A StatefulSet ``db``, the Deployment ``web`` that depends on it, and all that we know of them."""

    namespace: str
    client: Client
    config: Path
    pods: SharedInformer[Pod]
    replica_sets: SharedInformer[ReplicaSet]
    deployments: SharedInformer[Deployment]
    pod_reader: Reader[Pod]
    replica_set_reader: Reader[ReplicaSet]
    restarts: int = 0
    gone: set[str] = attrs.field(factory=set)
    """The uids of the pods that were deleted or have failed."""

    @asynccontextmanager
    async def program(self, cluster: ControlPlane) -> AsyncIterator[Program]:
        command = [str(ROOT / "examples" / "restart_dependents.py"), "--config", str(self.config)]
        async with running(*command, "--kubeconfig", str(cluster.kubeconfig)) as program:
            try:
                # What was before its first look is not counted.
                deployments = self.client.api(Deployment, namespace=self.namespace)
                await wait_for(deployments, "web", lambda web: LEDGER in web.metadata.annotations)
                yield program
            except BaseException:
                print(*program.lines, *program.errors, sep="\n")  # what pytest shows of a failure
                raise

    async def restart_pods(self, turn: int, *, names: tuple[str, ...] = PODS) -> None:
        """Have each pod restart once, in one of three ways by turns: deleted, failed, a container started again."""
        pods = self.client.api(Pod, namespace=self.namespace)
        ways = (pods.delete, partial(fail, pods), partial(restart_container, pods))
        for number, name in enumerate(names, turn):
            if number % 3 < 2:
                self.gone.add(self.pod_reader.objects[name].uid)
            await ways[number % 3](name)
        self.restarts += len(names)

    async def wait_until_rolled_out(self) -> None:
        """Wait until the restarted pods are back and every restart so far has had its rollout."""
        is_ready = has_condition("Ready")

        def are_back(seen: dict[str, Pod]) -> bool:
            back = [name for name in PODS if name in seen and is_ready(seen[name]) and seen[name].uid not in self.gone]
            return len(back) == len(PODS)

        await self.pod_reader.wait_until(are_back)
        await self.replica_set_reader.wait_until(lambda _: len(self.rollouts()) >= self.restarts)

    def rollouts(self) -> set[str]:
        """When ``web`` was rolled, as the templates of all ReplicaSets say that there ever were."""
        templates = [each.spec.template.metadata.annotations for each in self.replica_set_reader.states]
        return {template[RESTARTED_AT] for template in templates if RESTARTED_AT in template}

    async def check(self, program: Program) -> None:
        """Make sure that there was one rollout for each restart, and that caches are what fresh lists are."""
        deployments = self.client.api(Deployment, namespace=self.namespace)
        await wait_for(deployments, "web", is_rolled_out)
        await trio.sleep(1)  # in real time one rollout too many would come now
        assert await program.interrupt() == 130
        assert program.errors == []
        web = await wait_for(deployments, "web", is_rolled_out)
        assert web.spec.template.metadata.annotations[ROLLOUT] == str(self.restarts)
        assert web.metadata.annotations[REVISION] == str(1 + self.restarts)
        assert len({each.uid for each in self.replica_set_reader.states}) == 1 + self.restarts
        assert len(self.rollouts()) == self.restarts
        assert web.spec.template.metadata.annotations[RESTARTED_AT] == max(self.rollouts())

        await assert_up_to_date(self.deployments, deployments, "web")
        replica_sets = self.client.api(ReplicaSet, namespace=self.namespace)
        await assert_up_to_date(self.replica_sets, replica_sets, max(self.replica_set_reader.objects))
        await assert_up_to_date(self.pods, self.client.api(Pod, namespace=self.namespace), "db-0")


@pytest.fixture
async def scenario(cluster: ControlPlane, tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[RestartScenario]:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        namespace = await make_namespace(client, "dependents")
        stateful_sets = client.api(StatefulSet, namespace=namespace)
        deployments = client.api(Deployment, namespace=namespace)
        await stateful_sets.create(stateful_set("db", replicas=3))
        await deployments.create(deployment("web", replicas=2))
        with trio.fail_after(30):
            await wait_for(stateful_sets, "db", is_rolled_out)
            await wait_for(deployments, "web", is_rolled_out)

        config = tmp_path / "restart_dependents.yaml"
        config.write_text(f"dependents:\n  {namespace}/web: [{namespace}/db]\n")
        factory = SharedInformerFactory(client, namespace=namespace)
        scenario = RestartScenario(
            namespace,
            client,
            config,
            factory.informer(Pod),
            factory.informer(ReplicaSet),
            factory.informer(Deployment),
            Reader(),
            Reader(),
        )
        scenario.pods.add_event_handler(scenario.pod_reader)
        scenario.replica_sets.add_event_handler(scenario.replica_set_reader)
        async with trio.open_nursery() as tasks:
            await tasks.start(factory.run)
            yield scenario
            tasks.cancel_scope.cancel()


async def test_twenty_restarts_are_twenty_rollouts_through_the_death_of_the_api_server(
    cluster: ControlPlane, scenario: RestartScenario
) -> None:
    with trio.fail_after(180):
        async with scenario.program(cluster) as program:
            for turn in range(6):
                await scenario.restart_pods(turn)
                if turn == 3:
                    await cluster.kill_api_server()
                    await trio.sleep(2)  # a real outage takes real time
                    await cluster.start_api_server()
                await scenario.wait_until_rolled_out()
            await scenario.restart_pods(0, names=("db-0", "db-1"))
            await scenario.wait_until_rolled_out()
            assert scenario.restarts == 20
            await scenario.check(program)


async def test_restarts_while_the_program_is_dead_are_handled_when_it_comes_back(
    cluster: ControlPlane, scenario: RestartScenario
) -> None:
    with trio.fail_after(120):
        async with scenario.program(cluster):
            await scenario.restart_pods(0)
            await scenario.wait_until_rolled_out()
        await scenario.restart_pods(1)
        async with scenario.program(cluster) as program:
            await scenario.wait_until_rolled_out()
            await scenario.check(program)
