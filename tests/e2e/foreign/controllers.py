"""kube-controller-manager and kube-scheduler with 50 Deployments on the embedded API server; see ``run.py``."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio

from tests.e2e.embedded_cluster import problems_of, programs_on, until_nothing
from trioformer.testing import APIServer
from trioformer.testing.control_plane._process import Program

PROGRAMS: Final = ("kube-controller-manager", "kube-scheduler", "kwok")
NODES: Final = 5
DEPLOYMENTS: Final = 50
PERIOD: Final = 20.0
"""Seconds between two rounds of changes."""
LIMIT: Final = 120.0
"""Seconds within which the controllers must have carried out a change."""
NAMESPACE: Final = "foreign"
KIND: Final = "deployments.apps"


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def unfinished(server: APIServer) -> list[str]:
    """Return the Deployments that are not rolled out, and the counts of pods and endpoints if they are wrong."""
    found, wanted = [], 0
    for each in server.list(KIND, namespace=NAMESPACE):
        status, replicas = each.get("status") or {}, each["spec"]["replicas"]
        wanted += replicas
        counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")}
        if counts != {replicas} or status.get("observedGeneration") != each["metadata"]["generation"]:
            found.append(f"{each['metadata']['name']} {status}")
    pods = server.list("pods", namespace=NAMESPACE)
    running = [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Running"]
    endpoints = [
        address
        for each in server.list("endpointslices.discovery.k8s.io", namespace=NAMESPACE)
        for endpoint in each.get("endpoints") or ()
        for address in endpoint["addresses"]
    ]
    if not len(pods) == len(running) == len(endpoints) == wanted:
        found.append(f"{wanted} pods wanted, {len(pods)} exist, {len(running)} run, {len(endpoints)} are endpoints")
    return found


def memory(pid: str) -> int:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) // 1024 if found else 0


async def converge(what: str, server: APIServer, programs: list[Program]) -> None:
    """Wait until nothing is unfinished, and print the figures."""
    began = trio.current_time()
    await until_nothing(lambda: unfinished(server), LIMIT)
    pids = {"the server": "self", **{each.name: str(each.pid) for each in programs}}
    sizes = ", ".join(f"{name} {memory(pid)} MB" for name, pid in pids.items())
    served = server.statistics().requests_served
    print(f"{what}: {trio.current_time() - began:.1f} s, {served:,} requests so far; {sizes}", flush=True)


async def run(assets: Path, directory: Path, seconds: float) -> None:
    """Create Deployments, change them for some seconds, and delete them.

    Raises:
        AssertionError: A change was not carried out, or a program logged an error or ended.
    """
    server = APIServer()
    generator = random.Random(30)

    def restart() -> dict[str, Any]:
        return {"template": {"metadata": {"annotations": {"example.com/round": str(generator.random())}}}}

    def change(names: list[str], make: Callable[[], dict[str, Any]]) -> None:
        for name in names:
            server.patch(KIND, name, {"spec": make()}, namespace=NAMESPACE)

    async with programs_on(server, assets, directory, PROGRAMS) as programs:
        deadline = trio.current_time() + seconds
        for kind, name in [*(("Node", f"node-{number}") for number in range(NODES)), ("Namespace", NAMESPACE)]:
            server.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
        names = [f"web-{number}" for number in range(DEPLOYMENTS)]
        for name in names:
            server.create(deployment(name))
            server.create(service(name))
        await converge(f"{DEPLOYMENTS} Deployments with 3 replicas each", server, programs)
        change(names, lambda: {"replicas": 5})
        await converge("all scaled to 5 replicas", server, programs)
        change(names, restart)
        await converge("all rolled out", server, programs)
        for number in itertools.count(1):
            if (began := trio.current_time()) >= deadline:
                break
            change(generator.sample(names, 10), restart)
            change(generator.sample(names, 10), lambda: {"replicas": generator.randint(1, 6)})
            await converge(f"round {number}: 10 rollouts and 10 scales", server, programs)
            await trio.sleep_until(began + PERIOD)
        for name in names[::2]:
            server.delete(KIND, name, namespace=NAMESPACE)
        await converge("half of the Deployments deleted", server, programs)
        server.delete("namespaces", NAMESPACE)
        await until_nothing(lambda: [each for each in server.list("namespaces") if is_ours(each)], LIMIT)
        assert not server.list("pods")
        problems = [problem for program in programs for problem in problems_of(program)]
        print(f"namespace deleted; {server.statistics()}; {len(problems)} errors in the logs", flush=True)
        assert not problems, "\n".join(problems)


def is_ours(namespace: Any) -> bool:
    return bool(namespace["metadata"]["name"] == NAMESPACE)
