"""The classic programs in a cluster with nodes: what they print, line by line, beside the expected lines."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs
import pytest
import trio

from examples.controller_manager import RUNNING
from examples.job_controller import MANAGED_BY
from tests.e2e.workloads import deployment, is_rolled_out, make_namespace
from tests.support.processes import Program, running
from trioformer import Client, open_client
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import Deployment, ReplicaSet
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import Binding, Container, Namespace, ObjectReference, Pod, PodSpec, ServiceAccount
from trioformer.testing import ControlPlane
from trioformer.watchtools import created, wait_for

FINALIZER = "example.com/classic"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
TIME = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"
A_NEW_POD = "A new pod is created, need to restart tools"
NOT_FOUND = 'deployments.apps "tools" not found'


@attrs.frozen
class Scenario:
    """A namespace of the cluster, and what users do in it."""

    cluster: ControlPlane
    client: Client
    namespace: str

    def program(self, name: str, *arguments: str) -> tuple[str, ...]:
        flags = ("--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace)
        return (f"examples/{name}.py", *flags, *arguments)

    async def create_pod(self, name: str) -> None:
        """Create a pod that nobody schedules, so that it stays pending, and that is not removed at once."""
        container = Container(name="main", image="nginx")
        metadata = ObjectMeta(name=name, labels={"app": "nginx"}, finalizers=(FINALIZER,))
        pod = Pod(metadata=metadata, spec=PodSpec(containers=(container,)))
        await self.client.api(Pod, namespace=self.namespace).create(pod)

    async def run_pod(self, name: str) -> None:
        """Be the scheduler: kwok runs a pod that has a node."""
        binding = Binding(metadata=ObjectMeta(name=name), target=ObjectReference(kind="Node", name="node-1"))
        await self.client.api(Pod, namespace=self.namespace).create_subresource(name, "binding", binding)

    async def delete_pod(self, name: str) -> None:
        """Delete a pod, which changes it, because of its finalizer; :meth:`remove_pod` ends it."""
        await self.client.api(Pod, namespace=self.namespace).delete(name, grace_period_seconds=0)

    async def remove_pod(self, name: str) -> None:
        await self.client.api(Pod, namespace=self.namespace).patch(name, {"metadata": {"finalizers": None}})

    async def create_tools(self) -> None:
        deployments = self.client.api(Deployment, namespace=self.namespace)
        await deployments.create(deployment("tools", replicas=1))
        await wait_for(deployments, "tools", is_rolled_out)

    async def tools(self) -> Deployment:
        return await self.client.api(Deployment, namespace=self.namespace).get("tools")


@pytest.fixture
async def scenario(cluster: ControlPlane) -> AsyncIterator[Scenario]:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        yield Scenario(cluster, client, await make_namespace(client, "classic"))


def assert_transcript(lines: Sequence[str], expected: Sequence[str]) -> None:
    """Compare a program's lines with the expected ones, and show both side by side."""
    for index in range(max(len(lines), len(expected))):
        is_there, is_expected = (each[index] if index < len(each) else "-" for each in (lines, expected))
        print(f"{' ' if is_there == is_expected else '!'} {is_there:<80} | {is_expected}")
    assert list(lines) == list(expected)


async def wait_for_lines(program: Program, text: str, times: int = 1) -> None:
    await program.wait_for(lambda lines: sum(line.endswith(text) for line in lines) >= times)


async def test_the_simple_watch(scenario: Scenario) -> None:
    with trio.fail_after(60):
        async with running(*scenario.program("simple_watch")) as program:
            await scenario.create_pod("nginx")
            await wait_for_lines(program, "status is Pending")
            await scenario.run_pod("nginx")
            await wait_for_lines(program, NOT_FOUND)
            await scenario.create_tools()
            pods = scenario.client.api(Pod, namespace=scenario.namespace)
            await pods.patch("nginx", {"metadata": {"labels": {"seen": "yes"}}})
            await wait_for_lines(program, "Restart tools success")
            await scenario.delete_pod("nginx")
            await wait_for_lines(program, "Restart tools success", 2)
            await scenario.remove_pod("nginx")
            await wait_for_lines(program, "Pod nginx deleted")
            assert await program.interrupt() == 130
    assert_transcript(
        program.lines,
        [
            f"Using namespace={scenario.namespace}",
            f"Using kubeconfig={scenario.cluster.kubeconfig}",
            "Pod nginx added, current status is Pending",
            "Pod nginx modified, current status is Pending",
            "Pod nginx modified, current status is Running",
            NOT_FOUND,
            *["Pod nginx modified, current status is Running", "Restart tools success"] * 2,
            "Pod nginx deleted",
        ],
    )
    assert program.errors == []
    tools = await scenario.tools()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[-+]\d\d:\d\d)", tools.spec.template.metadata.annotations[RESTARTED_AT]
    )
    assert "kubectl-rollout" in {each.manager for each in tools.metadata.managed_fields}
    with trio.fail_after(30):
        tools = await wait_for(scenario.client.api(Deployment, namespace=scenario.namespace), "tools", is_rolled_out)
        replica_sets = await scenario.client.api(ReplicaSet, namespace=scenario.namespace).list()
    assert len(replica_sets) == 2


async def test_the_custom_controller(scenario: Scenario, tmp_path: Path) -> None:
    config = tmp_path / "app.yaml"
    config.write_text(f"Log: {{Level: info}}\nKubeconfig: {scenario.cluster.kubeconfig}\n")
    command = ("examples/custom_controller.py", "-c", str(config), "--namespace", scenario.namespace)
    with trio.fail_after(60):
        async with running(*command) as program:
            await scenario.create_pod("nginx")
            await wait_for_lines(program, "Pod[nginx] is ADDED, status = Pending")
            await scenario.run_pod("nginx")
            await wait_for_lines(program, NOT_FOUND, 6)
            await scenario.create_tools()
            pods = scenario.client.api(Pod, namespace=scenario.namespace)
            await pods.patch("nginx", {"metadata": {"labels": {"seen": "yes"}}})
            await wait_for(
                scenario.client.api(Deployment, namespace=scenario.namespace),
                "tools",
                lambda tools: RESTARTED_AT in tools.spec.template.metadata.annotations,
            )
            await scenario.delete_pod("nginx")
            await wait_for_lines(program, "is MODIFIED, status = Running", 8)
            await scenario.remove_pod("nginx")
            await wait_for_lines(program, " is DELETED")
            assert await program.interrupt() == 0
    assert [line for line in program.lines if not re.match(rf"{TIME}\.\d{{3}} \[INFO\] ", line)] == []
    texts = [line.partition("] ")[2] for line in program.lines]
    # Whether the worker sees the pod between its binding and its start is a matter of milliseconds.
    unscheduled = "Pod[nginx] is MODIFIED, status = Pending"
    key = f"{scenario.namespace}/nginx"
    failed = ["Pod[nginx] is MODIFIED, status = Running", A_NEW_POD, f"Error synching pod[{key}]: {NOT_FOUND}"]
    assert_transcript(
        [text for text in texts if text != unscheduled],
        [
            "Starting Pod controller",
            "Pod[nginx] is ADDED, status = Pending",
            *failed * 5,
            *failed[:2],
            f"Dropping pod[{key}] out of the queue: {NOT_FOUND}",
            *failed[:2],
            failed[0],
            f"Pod[{key}] is DELETED",
            "Stopping Pod controller",
        ],
    )
    assert program.errors == []


async def test_the_controller_manager(scenario: Scenario) -> None:
    command = ("examples/controller_manager.py", "--kubeconfig", str(scenario.cluster.kubeconfig))
    with trio.fail_after(60):
        async with running(*command, "--controllers", "*,-pod-janitor") as program:
            name = await make_namespace(scenario.client, "managed")
            await scenario.create_tools()
            namespaces = scenario.client.api(Namespace)
            await wait_for(namespaces, name, lambda each: each.metadata.labels.get("example.com/managed") == "yes")
            await wait_for(scenario.client.api(ServiceAccount, namespace=name), "default", created())
            replica_sets = scenario.client.api(ReplicaSet, namespace=scenario.namespace)
            (tools,) = await replica_sets.list()
            await wait_for(replica_sets, tools.name, lambda each: each.metadata.annotations.get(RUNNING) == "1")
            assert await program.interrupt() == 0
    own = re.compile(r'\w+: ("[-a-z]+" is disabled|(Starting|Started|Skipping|Error starting) "[-a-z]+")')
    assert_transcript(
        [line for line in program.errors if own.fullmatch(line)],
        [
            'WARNING: "pod-janitor" is disabled',
            'INFO: Starting "namespace-labeller"',
            'INFO: Started "namespace-labeller"',
            'INFO: Starting "replica-counter"',
            'INFO: Started "replica-counter"',
            'INFO: Starting "serviceaccount"',
            'INFO: Started "serviceaccount"',
        ],
    )
    first = next(index for index, line in enumerate(program.errors) if not own.fullmatch(line))
    assert first == 7, program.errors[:10]


def job(**more: object) -> Job:
    pod = {"restartPolicy": "Never", "nodeName": "node-1", "containers": [{"name": "pi", "image": "perl"}]}
    spec = {"managedBy": MANAGED_BY, "template": {"spec": pod}, **more}
    return from_dict(Job, {"metadata": {"name": "pi"}, "spec": spec})


async def test_the_job_controller_with_pods_that_are_deleted(scenario: Scenario) -> None:
    """kube-apiserver accepts neither counts that decrease nor the end of a Job whose pods have not ended."""
    jobs = scenario.client.api(Job, namespace=scenario.namespace)
    pods = scenario.client.api(Pod, namespace=scenario.namespace)
    template = {
        "metadata": {"finalizers": [FINALIZER]},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "pi", "image": "perl"}]},
    }
    with trio.fail_after(60):
        async with running(*scenario.program("job_controller")) as program:
            await jobs.create(job(parallelism=3, completions=5, backoffLimit=0, template=template))
            await wait_for_lines(program, "active 3, succeeded 0, failed 0")
            first, second, _ = await pods.list()
            await pods.patch(first.name, {"status": {"phase": "Succeeded"}}, subresource="status")
            await wait_for_lines(program, "active 3, succeeded 1, failed 0")
            await scenario.delete_pod(first.name)
            await scenario.remove_pod(first.name)
            await pods.patch(second.name, {"status": {"phase": "Failed"}}, subresource="status")
            ending = await wait_for(jobs, "pi", lambda each: bool(each.status.conditions))
            assert (ending.status.active, ending.status.terminating) == (None, 2)
            assert [each.type for each in ending.status.conditions] == ["FailureTarget"]
            for pod in await pods.list():
                await scenario.remove_pod(pod.name)
            await wait_for_lines(program, "pi: Failed")
            assert await program.interrupt() == 0
    name = f"{scenario.namespace}/pi"
    assert_transcript(
        program.lines,
        [
            f"{name}: active 3, succeeded 0, failed 0",
            f"{name}: active 3, succeeded 1, failed 0",
            f"{name}: active 0, succeeded 1, failed 1",
            f"{name}: Failed",
        ],
    )
    assert program.errors == []
