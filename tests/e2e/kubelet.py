"""A control plane with a node where kwok serves what a kubelet serves: commands, logs and ports of this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import trio

from trioformer import open_client
from trioformer.client import Api
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod, Service
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for


def commands_in(directory: Path | str = "/") -> str:
    """Execute the commands of containers on this machine, in a directory."""
    return _configured("ClusterExec", execs=[{"local": {"workDir": str(directory)}}])


def attached_to(file: Path) -> str:
    return _configured("ClusterAttach", attaches=[{"logsFile": str(file)}])


def logs_from(file: Path) -> str:
    return _configured("ClusterLogs", logs=[{"logsFile": str(file), "follow": True}])


def ports_to(ports: Mapping[int, int]) -> str:
    """Connect ports of pods to ports of this machine."""
    targets = [{"ports": [port], "target": {"address": "127.0.0.1", "port": local}} for port, local in ports.items()]
    return _configured("ClusterPortForward", forwards=targets)


def _configured(kind: str, **spec: object) -> str:
    return json.dumps({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": {"name": "all"}, "spec": spec})


@contextmanager
def running_kubelet(
    assets: Path, directory: Path, *configured: str, pod: Mapping[str, object] | None = None, service: object = None
) -> Iterator[ControlPlane]:
    """Run a control plane with ``node-1``; with a pod, wait until that is ready."""
    for name in ("etcd", "kube-apiserver", "kwok"):
        (directory / name).symlink_to(assets / name)
    shutil.copy(assets / "kwok.yaml", directory)
    with (directory / "kwok.yaml").open("a") as stages:
        stages.writelines(f"---\n{each}\n" for each in configured)
    control_plane = ControlPlane(assets=directory, nodes=["node-1"])

    async def start() -> None:
        await control_plane.__aenter__()
        async with open_client(kubeconfig=control_plane.kubeconfig) as client:
            if service is not None:
                await client.api(Service, "default").create(from_dict(Service, service))
            if pod is not None:
                await start_pod(client.api(Pod, "default"), pod)

    trio.run(start)
    yield control_plane
    trio.run(control_plane.__aexit__, None, None, None)


async def start_pod(pods: Api[Pod], pod: Mapping[str, object]) -> None:
    """Create a pod, and wait until it is ready."""
    made = await pods.create(from_dict(Pod, pod))
    with trio.fail_after(60):
        await wait_for(pods, made.name, has_condition("Ready"))


def pod_of(name: str, *containers: str, **metadata: object) -> dict[str, object]:
    """Return a pod on ``node-1``."""
    spec = {"nodeName": "node-1", "containers": [{"name": each, "image": "x"} for each in containers or ("main",)]}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def kubectl(cluster: ControlPlane, assets: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(assets / "kubectl"), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
