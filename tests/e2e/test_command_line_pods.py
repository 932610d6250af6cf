"""The commands of the tool that act on pods and workloads, beside kubectl's, on kube-apiserver with kwok's kubelet."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.e2e.kubectl_programs import PAGE, Programs
from tests.e2e.test_logs import CLUSTER_LOGS
from tests.e2e.test_processes import CLUSTER_EXEC, MEBIBYTE
from tests.e2e.workloads import is_rolled_out
from trioformer import open_client
from trioformer.manifests import apply_manifests, load_manifests
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for

OBJECTS: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeName: node-1, containers: [{name: main, image: x}, {name: side, image: x}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {nodeName: node-1, containers: [{name: main, image: x}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: solo}, spec: {nodeName: node-1, containers: [{name: main, image: x}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pending}, spec: {containers: [{name: main, image: x}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
{apiVersion: v1, kind: Service, metadata: {name: none}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: nobody}, spec: {ports: [{port: 80}], selector: {a: b}}}
"""
INVOCATIONS: Final = r"""
logs solo
logs solo --tail=1
logs solo --limit-bytes=3
logs solo --timestamps
logs solo --prefix
logs solo main
logs solo --since=1h
logs solo --since-time=2020-01-01T00:00:00Z
logs solo --since-time=2100-01-01T00:00:00Z
logs pod/solo --all-containers
logs deploy/web --tail=1
logs deploy/web -c side --tail=1 --prefix
logs svc/nobody --pod-running-timeout=1s
logs -l app=nothing
logs -f -l app=web --max-log-requests=1
logs pending
logs -f pending
logs
logs none
logs deploy/none
logs solo -c x
logs cm/settings
logs svc/none
logs solo --tail=x
logs solo --tail=-5
logs solo --since=10
logs solo --since=-1s
logs solo --since-time=yesterday
logs solo --since=1s --since-time=2026-01-01T00:00:00Z
logs solo --limit-bytes=-1
logs a b c
logs solo -l app=x
logs solo --all-containers -c main
logs solo main -c main
exec solo -- echo hi
exec pod/solo -c main -- sh -c 'echo out; echo err >&2'
exec deploy/web -q -- echo hi
exec -it solo -- echo x
exec -t solo -- echo x
exec solo -- no-such-program
exec
exec solo
exec solo ls
exec -- ls
exec none -- ls
exec solo -c y -- true
exec cm/settings -- ls
exec svc/nobody --pod-running-timeout=1s -- ls
exec pending -- ls
attach
attach none
attach a b c
attach cm/settings
attach solo -c x
attach solo --pod-running-timeout=0
wait pod/solo --for=condition=Ready
wait pod/solo deploy/web --for=jsonpath={.metadata.name} -o name
wait pod/solo --for=condition=ready=False --timeout=1s
wait pod/solo deploy/web --for=condition=Foo --timeout=1s
wait pod/solo --for=jsonpath={.status.phase}=Running
wait pod/solo --for=jsonpath=.status.phase=Running
wait pod/solo --for='jsonpath={.status.conditions[?(@.type=="Ready")].status}=True'
wait pod/solo --for=jsonpath={.status.phase}=Foo --timeout=0
wait cm/settings --for=jsonpath={.data.a} --timeout=0
wait pod/solo --for=condition=Ready -o jsonpath={.status.phase}
wait pod/solo --for=create --for=condition=Ready --timeout=-1s
wait pod/none --for=create --timeout=1s
wait pod/none --for=delete
wait pods -l app=none --for=delete
wait pods -l app=none --for=create --timeout=1s
wait pod/solo --for=delete --timeout=1s
wait pods --for=condition=Ready
wait pods -l app=none --for=condition=Ready
wait pod/none pod/none2 --for=condition=Ready
wait pod/solo pod/none --for=condition=Ready
wait pod/solo
wait pod/solo --for=x
wait pod/solo --for=jsonpath=
wait pod/solo --for=jsonpath={.status.phase
wait pod/solo --for=jsonpath={.status.phase}=
wait pod/solo --for=jsonpath={.status}=x --timeout=1s
wait pod/solo --for=jsonpath={.status.conditions[*].type}=x --timeout=1s
wait pod/solo --for=condition=Ready --timeout=x
wait foo/x --for=create --timeout=1s
scale --replicas=2 deploy/web
scale --replicas=2 deployments web --current-replicas=2
scale --replicas=2 deploy --all
scale --replicas=2 deploy -l app=web -o name
scale --replicas=2 deploy/web --dry-run=client
scale --replicas=3 deploy/web --dry-run=server
scale --replicas=1 sts/db --timeout=5s
scale --replicas=2 deploy/web deploy/none
scale --replicas=2 deploy/web --current-replicas=5
scale --replicas=2 deploy/web --resource-version=5
scale --replicas=2 deploy
scale --replicas=2 deploy -l app=nothing
scale --replicas=2 cm/settings
scale --replicas=2
scale --replicas=x deploy/web
scale --replicas=-1 deploy/web
scale deploy/web
scale --replicas=3 deploy/web --dry-run=foo
rollout status deploy/web
rollout status deployment web --revision=1
rollout status sts/db
rollout status deploy
rollout status deploy -l app=none
rollout status deploy/web --revision=7
rollout status deploy/web --revision=-1
rollout status deploy/web --timeout=x
rollout status deploy/none
rollout status pod/solo
rollout status
rollout restart
rollout restart cm/settings
rollout restart deploy/none
rollout restart deploy -l app=none
completion
completion a b
""".strip().splitlines()
IN_ANY_ORDER: Final = r"""
logs deploy/web --all-containers --tail=1 --prefix
logs -l app=web --tail=1 --prefix
logs deploy/web --all-pods --tail=1
""".strip().splitlines()
"""kubectl prints the logs of several containers in the order of a map of Go."""


DIFFERENCES: Final = {
    "exec solo -- no-such-program": (
        "What a node says of a command that it cannot execute is shown as the node has worded it; kubectl may repeat "
        "the first words."
    ),
}
"""What differs, each with the reason, which docs/howto/command-line.rst has too."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "pod.log"
    write(path, "one", "two", "three")
    return path


def write(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.writelines(f"{datetime.now(UTC).isoformat().replace('+00:00', 'Z')} stdout F {line}\n" for line in lines)


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory, log: Path) -> Iterator[ControlPlane]:
    """A control plane with workloads, and a node whose pods have logs and execute commands."""
    directory = tmp_path_factory.mktemp("assets")
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kwok"):
        (directory / name).symlink_to(assets / name)
    shutil.copy(assets / "kwok.yaml", directory)
    with (directory / "kwok.yaml").open("a") as stages:
        stages.write(CLUSTER_LOGS.format(file=log) + CLUSTER_EXEC.format(file=log))
    control_plane = ControlPlane(assets=directory, nodes=["node-1"], controller_manager=True)
    trio.run(control_plane.__aenter__)
    trio.run(create_objects, control_plane)
    yield control_plane
    trio.run(control_plane.__aexit__, None, None, None)


async def create_objects(cluster: ControlPlane) -> None:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        manifests = load_manifests(text=OBJECTS)
        await apply_manifests(client, manifests, namespace="default", field_manager="test")
        with trio.fail_after(60):
            await wait_for(client.api(Deployment, "default"), "web", is_rolled_out)
            for name in ("solo", "db-0"):
                await wait_for(client.api(Pod, "default"), name, has_condition("Ready"), missing_ok=True)


@pytest.fixture
def programs(cluster: ControlPlane, assets: Path) -> Programs:
    return Programs(assets / "kubectl", cluster.kubeconfig)


async def test_output_is_that_of_kubectl(programs: Programs) -> None:
    await programs.run_kubectl(["api-resources"])  # it keeps what it discovers in a file
    found: dict[str, str] = {}

    async def compare(invocation: str) -> None:
        if difference := await programs.compare(invocation):
            found[invocation] = difference

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            for invocation in INVOCATIONS:
                nursery.start_soon(compare, invocation)
    unexpected = [f"{each}\n{found[each]}" for each in INVOCATIONS if each in found and each not in DIFFERENCES]
    assert not unexpected, f"{len(unexpected)} differ:\n\n" + "\n\n".join(unexpected)
    assert found.keys() == DIFFERENCES.keys()


async def test_several_logs_are_those_of_kubectl(programs: Programs) -> None:
    for invocation in IN_ANY_ORDER:
        expected = await programs.run_kubectl(shlex.split(invocation))
        actual = await programs.run_tool(shlex.split(invocation))
        assert sorted(actual[1].splitlines()) == sorted(expected[1].splitlines()), invocation
        assert (actual[0], actual[2]) == (expected[0], expected[2])


def tool(cluster: ControlPlane, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "trioformer", "--kubeconfig", str(cluster.kubeconfig), *arguments]


async def test_a_restart_is_followed_until_all_pods_are_new(programs: Programs, cluster: ControlPlane) -> None:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        pods = client.api(Pod, "default")
        before = {pod.uid for pod in await pods.list(label_selector="app=web")}
        assert await programs.run_tool(["rollout", "restart", "deploy/web"]) == (
            0,
            "deployment.apps/web restarted\n",
            "",
        )
        with trio.fail_after(60):
            code, out, err = await programs.run_tool(["rollout", "status", "deploy/web"])
        assert (code, out.splitlines()[-1], err) == (0, 'deployment "web" successfully rolled out', "")
        ready = {pod.uid for pod in await pods.list(label_selector="app=web") if has_condition("Ready")(pod)}
        assert len(ready - before) == 2
        web = await client.api(Deployment, "default").get("web")
    managers = {each.manager for each in web.metadata.managed_fields}
    assert "kubectl-rollout" in managers
    history = await programs.run_kubectl(["rollout", "history", "deploy/web"])
    assert history[1].split()[-4:] == ["1", "<none>", "2", "<none>"]


async def test_bytes_pass_through_exec_unchanged(cluster: ControlPlane) -> None:
    size = 10 * MEBIBYTE
    script = f"{shlex.join(tool(cluster, 'exec', 'solo', '--', 'head', '-c', str(size), '/dev/zero'))} | md5sum"
    done = await trio.run_process(["sh", "-c", script], capture_stdout=True)
    assert done.stdout.split()[0].decode() == hashlib.md5(bytes(size), usedforsecurity=False).hexdigest()
    sent = bytes(range(256)) * 40_000
    # kwok does not tell a command where its input ends, not for kubectl either.
    command = tool(cluster, "exec", "-i", "solo", "--", "sh", "-c", f"head -c {len(sent)} | md5sum")
    done = await trio.run_process(command, stdin=sent, capture_stdout=True)
    assert done.stdout.split()[0].decode() == hashlib.md5(sent, usedforsecurity=False).hexdigest()


async def test_a_followed_log_survives_the_end_of_the_api_server(cluster: ControlPlane, log: Path) -> None:
    total = 600
    async with trio.open_nursery() as nursery:
        process = await nursery.start(_follow, tool(cluster, "logs", "-f", "solo", "--tail=1"))
        shown = b""

        async def read(end: bytes) -> None:
            nonlocal shown
            while end not in shown:
                shown += await process.stdout.receive_some()

        with trio.fail_after(60):
            write(log, "ready to follow")
            await read(b"ready to follow\n")
            for begin in range(0, total, 100):
                write(log, *(f"line {number}" for number in range(begin, begin + 100)))
                if begin == 200:
                    await cluster.kill_api_server()
                if begin == 400:
                    await cluster.start_api_server()
                await trio.sleep(0.05)
            await read(f"line {total - 1}\n".encode())
        process.terminate()
    lines = shown.decode().split("ready to follow\n")[1].splitlines()
    assert lines == [f"line {number}" for number in range(total)]


async def _follow(command: list[str], *, task_status: trio.TaskStatus[trio.Process] = trio.TASK_STATUS_IGNORED) -> None:
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    task_status.started(process)
    assert await process.wait() == 143


def test_every_difference_is_in_the_documentation() -> None:
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in DIFFERENCES.values() if reason not in page] == []
