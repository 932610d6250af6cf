"""Runs the flows of ``kubectl_flows.sh`` against a server, and makes what kubectl printed comparable."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import trio
import yaml

from trioformer.client import Client
from trioformer.errors import ConflictError, NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Binding, Namespace, ObjectReference, Pod, ServiceAccount

PRELUDE, *_BLOCKS = (Path(__file__).with_name("kubectl_flows.sh")).read_text(encoding="utf-8").split("\n### ")
_HEAD: Final = re.compile(r"([a-z-]+)(?: differs: (.*))?\n")
AT_ONCE: Final = 6
_REPLACED: Final = {
    r"https?://127\.0\.0\.1:\d+": "<server>",
    r"\beyJ[\w-]+\.[\w-]+\.[\w-]+": "<token>",
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000)": "<time>",
    r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000": "<time>",
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "<uid>",
    r'(resourceVersion"?: |Resource Version: +)"?\d+"?': r"\1<version>",
    r"(?<!-)\b\d+[smhd](\d+[smhd])?\b|<invalid>": "<age>",  # conf-24d7h is a name
    r"\S*/(LIVE|MERGED|kubectl-edit)-\d+": r"/\1",
    r"kwok-[\d.]+|\bv1\.\d+\.\d+(\+trioformer)?(?=\s)": "<release>",
    r"(?m)^( +(?:compiler|gitCommit|goVersion): ).*": r"\1<build>",
    r"(?m)^Extra: +authentication.kubernetes.io/credential-id .*\n": "",
    r'(patch: Invalid value: )".*": ': r"\1<object>: ",
    r"\b\d+\.\d+\.\d+\.\d+\b": "<address>",
    r"\b3[0-2]\d{3}\b": "<port>",
    r"(pod-template-hash|controller-revision-hash)([=:] ?\"?)[\w-]+": r"\1\2<hash>",
    r"\b(web|db)-[0-9a-z]{7,10}\b": r"\1-<hash>",
    r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9-])": "-<suffix>",
    r"(?m)^Waiting for (.*to finish|\d+ pods to be ready|partitioned|\w+ spec).*\n": "",
    r"(?m)^! [IWE]\d{4} .*\n": "",
    # kwok says less of a pod than a kubelet.
    r"(?m)^ +- lastProbeTime: null\n.*\n.*\n +type: PodScheduled\n|^ +started: true\n|^ +PodScheduled +True *\n": "",
}


@attrs.frozen
class Flow:
    """A script, and why what it prints may differ."""

    name: str
    script: str
    differs: str | None


def _flows() -> Iterator[Flow]:
    for block in _BLOCKS:
        head = _HEAD.match(block)
        assert head, block
        yield Flow(head[1], block[head.end() :], head[2])


FLOWS: Final = {flow.name: flow for flow in _flows()}


def comparable(text: str) -> str:
    """Return what two servers should agree on: not ages, uids, addresses and so on."""
    for pattern, replacement in _REPLACED.items():
        text = re.sub(pattern, replacement, text)
    lines = [re.sub(r"(?<=\S) {2,}", "  ", line.rstrip()) for line in text.splitlines()]
    start = 0
    for at in range(len(lines) + 1):  # the order of rows with generated names
        if at == len(lines) or not re.search("-<(suffix|hash)>", lines[at]):
            lines[start:at] = sorted(lines[start:at])
            start = at + 1
    return "\n".join(lines) + "\n"


@attrs.frozen
class Runner:
    """Runs flows against one server."""

    client: Client
    kubeconfig: dict[str, Any]
    directory: Path
    kubectl: Path
    printed: dict[str, str]
    """What kubectl has printed, by the name of the flow."""

    async def run(self, flows: list[Flow]) -> None:
        """Run flows, some at a time."""
        limiter = trio.CapacityLimiter(AT_ONCE)
        async with trio.open_nursery() as nursery:
            for flow in flows:
                await limiter.acquire_on_behalf_of(flow)
                nursery.start_soon(self._run, flow, limiter)

    async def _run(self, flow: Flow, limiter: trio.CapacityLimiter) -> None:
        namespace = f"f-{flow.name}"
        directory = self.directory / flow.name
        directory.mkdir()
        self.kubeconfig["contexts"][0]["context"]["namespace"] = namespace
        (directory / ".kubeconfig").write_text(yaml.safe_dump(self.kubeconfig))
        await self.client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
        await self._wait_for_service_account(namespace)
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.directory),
            "TMPDIR": str(directory),
            "KUBECONFIG": str(directory / ".kubeconfig"),
            "KUBECTL": str(self.kubectl),
            "N": namespace,
        }
        script = ["bash", "-c", f"{PRELUDE}\n{flow.script}"]
        done = await trio.run_process(
            script, capture_stdout=True, stderr=subprocess.STDOUT, cwd=directory, env=environment, check=False
        )
        self.printed[flow.name] = comparable(done.stdout.decode(errors="replace"))
        limiter.release_on_behalf_of(flow)

    async def _wait_for_service_account(self, namespace: str) -> None:
        with trio.move_on_after(10):
            while True:
                try:
                    await self.client.api(ServiceAccount, namespace).get("default")
                except NotFoundError:
                    await trio.sleep(0.05)
                else:
                    return


async def schedule(client: Client, *, task_status: trio.TaskStatus[None]) -> None:
    """Be kube-scheduler, until cancelled."""
    async with client.api(Pod).watch(field_selector="spec.nodeName=") as events:
        task_status.started()
        async for event in events:
            pod = event.object
            if event.type == "ADDED":
                binding = Binding(target=ObjectReference(kind="Node", name="node-1"))
                with contextlib.suppress(NotFoundError, ConflictError):
                    await client.api(Pod, pod.namespace).create_subresource(pod, "binding", binding)
