"""kubectl against the embedded API server, ``python -m trioformer.testing serve``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tests.support.processes import running

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  labels: {app: web}
spec:
  nodeName: node-1
  containers:
  - name: web
    image: nginx:1.27
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.27"}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3}
"""


@attrs.define(eq=False)
class Kubectl:
    """kubectl with a kubeconfig and a home of its own."""

    program: Path
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.directory / "kubeconfig"), "HOME": str(self.directory)}

    async def fails(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Run it; returns the exit code and what it printed."""
        command = [str(self.program), *arguments]
        done = await trio.run_process(
            command, stdin=stdin.encode(), capture_stdout=True, capture_stderr=True, env=self.environment, check=False
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run it, make sure that it has nothing to complain of, and return its standard output."""
        code, output, errors = await self.fails(*arguments, stdin=stdin)
        assert (code, errors) == (0, ""), (arguments, output, errors)
        return output


@pytest.fixture
async def kubectl(assets: Path, tmp_path: Path) -> AsyncIterator[Kubectl]:
    options = ["--bind", "127.0.0.1:0", "--write-kubeconfig", str(tmp_path / "kubeconfig")]
    with trio.fail_after(120):
        async with running("-m", "trioformer.testing", "serve", *options) as program:
            await program.wait_for(lambda lines: bool(lines))
            yield Kubectl(assets / "kubectl", tmp_path)
            assert await program.interrupt() == 0
            await trio.testing.wait_all_tasks_blocked(0.01)  # its output has been read to the end
            assert program.errors == []


@asynccontextmanager
async def printing(kubectl: Kubectl, *arguments: str) -> AsyncIterator[trio.abc.ReceiveStream]:
    """Run a kubectl that goes on printing."""
    process = await trio.lowlevel.open_process(
        [str(kubectl.program), *arguments], stdout=subprocess.PIPE, env=kubectl.environment
    )
    assert process.stdout is not None
    try:
        async with process.stdout:
            yield process.stdout
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def table(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


async def test_pods_are_created_shown_labelled_and_deleted(kubectl: Kubectl) -> None:
    assert await kubectl("create", "-f", "-", stdin=POD) == "pod/web-1 created\n"
    head, row = table(await kubectl("get", "pods"))
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web-1", "0/1", "Pending", "0"]
    head, row = table(await kubectl("get", "pods", "-o", "wide"))
    assert head[5:8] == ["IP", "NODE", "NOMINATED"]
    assert row[6] == "node-1"
    pod = json.loads(await kubectl("get", "pod", "web-1", "-o", "json"))
    assert (pod["kind"], pod["metadata"]["labels"]) == ("Pod", {"app": "web"})
    assert await kubectl("label", "pod", "web-1", "tier=front") == "pod/web-1 labeled\n"
    assert await kubectl("annotate", "pod", "web-1", "note=x") == "pod/web-1 annotated\n"
    assert await kubectl("get", "pods", "-l", "tier=front", "-o", "name") == "pod/web-1\n"
    assert await kubectl("get", "pods", "--field-selector", "spec.nodeName=node-1", "-o", "name") == "pod/web-1\n"
    assert await kubectl("delete", "pod", "web-1") == 'pod "web-1" deleted from default namespace\n'
    assert await kubectl.fails("get", "pods") == (0, "", "No resources found in default namespace.\n")


async def test_changes_are_watched(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=POD)
    async with printing(kubectl, "get", "pods", "-w", "--output-watch-events") as output:
        received = b""
        for kind, arguments in (
            (b"ADDED", ()),
            (b"MODIFIED", ("label", "pod", "web-1", "a=b")),
            (b"DELETED", ("delete", "pod", "web-1")),
        ):
            if arguments:
                await kubectl(*arguments)
            while kind not in received:
                received += await output.receive_some()
    lines = table(received.decode())
    assert lines[0] == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [line[:2] for line in lines[1:]] == [["ADDED", "web-1"], ["MODIFIED", "web-1"], ["DELETED", "web-1"]]


async def test_deployments_are_created_scaled_changed_and_applied(kubectl: Kubectl) -> None:
    assert await kubectl("create", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    head, row = table(await kubectl("get", "deployments"))
    assert head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:2] == ["web", "0/2"]
    await kubectl("scale", "deployment", "web", "--replicas=5")
    await kubectl("set", "image", "deployment/web", "web=nginx:1.28")
    await kubectl("rollout", "restart", "deployment", "web")
    await kubectl(
        "patch", "deployment", "web", "--type=json", "-p", '[{"op":"add","path":"/spec/paused","value":true}]'
    )
    spec = json.loads(await kubectl("get", "deployment", "web", "-o", "json"))["spec"]
    assert (spec["replicas"], spec["paused"]) == (5, True)
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("web", "nginx:1.28")
    assert "kubectl.kubernetes.io/restartedAt" in spec["template"]["metadata"]["annotations"]
    await kubectl("delete", "deployment", "web")
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    changed = DEPLOYMENT.replace("replicas: 2", "replicas: 3")
    assert await kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    assert table(await kubectl("get", "deployments"))[1][1] == "0/3"


async def test_custom_kinds_come_with_their_definition(kubectl: Kubectl) -> None:
    definition, _, widget = DEFINITION.partition("---")
    await kubectl("create", "-f", "-", stdin=definition)
    assert await kubectl("create", "-f", "-", stdin=widget) == "widget.example.com/w created\n"
    assert table(await kubectl("get", "wd"))[1][0] == "w"
    await kubectl("delete", "crd", "widgets.example.com")
    code, _, errors = await kubectl.fails("get", "wd")
    assert code == 1
    assert "(NotFound)" in errors  # kubectl remembers for some minutes which kinds there are


async def test_namespaces_go_with_what_is_in_them(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin="{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    await kubectl("-n", "shop", "create", "-f", "-", stdin=POD)
    assert table(await kubectl("get", "pods", "-A"))[1][:2] == ["shop", "web-1"]
    await kubectl("delete", "namespace", "shop")
    names = [row[0] for row in table(await kubectl("get", "namespaces"))[1:]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_errors_are_those_of_a_cluster(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=POD)
    code, _, errors = await kubectl.fails("create", "-f", "-", stdin=POD)
    assert code == 1
    assert errors.startswith("Error from server (AlreadyExists)")
    assert await kubectl.fails("get", "pod", "nope") == (1, "", 'Error from server (NotFound): pods "nope" not found\n')
    assert "Server Version: v1.36" in await kubectl("version")
    assert "deployments" in await kubectl("api-resources")


async def test_objects_of_arguments_are_created_in_protobuf(kubectl: Kubectl) -> None:
    for created, *arguments in (
        ("deployment.apps", "deployment", "a", "--image=nginx", "--replicas=2"),
        ("configmap", "configmap", "a", "--from-literal=a=b"),
        ("secret", "secret", "generic", "a", "--from-literal=a=ä"),
        ("serviceaccount", "serviceaccount", "a"),
        ("role.rbac.authorization.k8s.io", "role", "a", "--verb=get", "--resource=pods"),
        ("job.batch", "job", "a", "--image=busybox", "--", "true"),
    ):
        assert await kubectl("create", *arguments) == f"{created}/a created\n"
        assert await kubectl("label", created, "a", "a=b") == f"{created}/a labeled\n"
        assert await kubectl("get", created, "-l", "a=b", "-o", "name") == f"{created}/a\n"
        assert " deleted " in await kubectl("delete", created, "a")
        assert (await kubectl.fails("get", created, "a"))[0] == 1


async def test_a_deployment_is_scaled_and_autoscaled(kubectl: Kubectl) -> None:
    await kubectl("create", "deployment", "web", "--image=nginx")
    assert await kubectl("scale", "deployment", "web", "--replicas=3") == "deployment.apps/web scaled\n"
    assert table(await kubectl("get", "deployments"))[1][:2] == ["web", "0/3"]
    await kubectl("autoscale", "deployment", "web", "--max=4", "--cpu=80%")
    scaler = json.loads(await kubectl("get", "hpa", "web", "-o", "json"))["spec"]
    assert (scaler["maxReplicas"], scaler["scaleTargetRef"]["name"]) == (4, "web")
    await kubectl("expose", "deployment", "web", "--port=80")
    await kubectl("create", "serviceaccount", "robot")
    assert len((await kubectl("create", "token", "robot")).split(".")) == 3


async def test_everything_is_allowed(kubectl: Kubectl) -> None:
    assert await kubectl("auth", "can-i", "delete", "deployments.apps", "-n", "kube-system") == "yes\n"
    assert await kubectl("auth", "can-i", "get", "/logs/") == "yes\n"
    assert ["*.*", "[]", "[]", "[*]"] in table(await kubectl("auth", "can-i", "--list"))
    assert ["Username", "trioformer-admin"] in table(await kubectl("auth", "whoami"))
