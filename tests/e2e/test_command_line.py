"""The command line tool beside kubectl: the same output, errors and exit codes, on kube-apiserver and embedded.

Ages are made equal, and so are the names of the programs; everything else is compared to the letter, with all spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio
import yaml

from tests.e2e.kubectl_invocations import DIFFERENCES, OF_SERVERS, OF_THE_TOOL
from tests.e2e.kubectl_programs import PAGE, Programs, config_of, write_kubeconfig
from tests.e2e.workloads import is_rolled_out, make_namespace
from trioformer import open_client
from trioformer.manifests import apply_manifests, load_manifests
from trioformer.models import ResourceInfo, to_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ControlPlane, serve_http
from trioformer.watchtools import has_condition, wait_for

OBJECTS: Final = Path(__file__).parents[1] / "support" / "kubectl_objects.yaml"


def check(found: Mapping[str, str]) -> None:
    unexpected = [f"{each}\n{text}" for each, text in sorted(found.items()) if each not in DIFFERENCES]
    assert not unexpected, f"{len(unexpected)} differ:\n\n" + "\n\n".join(unexpected)


async def test_output_on_kube_apiserver_is_that_of_kubectl(cluster: ControlPlane, assets: Path, tmp_path: Path) -> None:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        namespace = await make_namespace(client, "cli")
        await apply_manifests(client, load_manifests(OBJECTS), namespace=namespace, field_manager="test")
        with trio.fail_after(60):
            deployments = client.api(Deployment, namespace=namespace)
            await wait_for(deployments, "web", lambda web: web is not None and is_rolled_out(web))
            await wait_for(client.api(Pod, namespace=namespace), "solo", has_condition("Ready"))
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    programs = Programs(assets / "kubectl", write_kubeconfig(tmp_path / "kubeconfig", config, namespace))
    found = await programs.compare_all([*OF_SERVERS, *OF_THE_TOOL])
    check(found)
    assert found.keys() == DIFFERENCES.keys()  # what was mended is no difference any more


def create_replicas(server: APIServer) -> None:
    """Do what controllers and a node do: one ReplicaSet with two pods, of which one is ready."""
    web = server.get(Deployment, "web")
    server.patch(
        Deployment, "web", {"status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}
    )
    template = to_dict(web)["spec"]["template"]
    labels = {"app": "web", "pod-template-hash": "abc"}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": web.uid, "controller": True}
    made = server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web-abc", "namespace": "default", "labels": labels, "ownerReferences": [owner]},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
            "status": {"replicas": 2, "readyReplicas": 1},
        }
    )
    owner = {**owner, "kind": "ReplicaSet", "name": "web-abc", "uid": made["metadata"]["uid"]}
    for name, phase in (("web-abc-1", "Running"), ("web-abc-2", "Pending")):
        state = {"ready": phase == "Running", "restartCount": 0, "image": "x", "imageID": ""}
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [owner]},
                "spec": template["spec"],
                "status": {
                    "phase": phase,
                    "startTime": "2026-01-02T03:04:05Z",
                    "containerStatuses": [{"name": "main", **state}, {"name": "side", **state}],
                },
            }
        )


def create_metrics(server: APIServer) -> None:
    """Do what a metrics server does."""
    group = {"group": "metrics.k8s.io", "version": "v1beta1"}
    server.register(ResourceInfo(**group, kind="NodeMetrics", plural="nodes", namespaced=False))
    server.register(ResourceInfo(**group, kind="PodMetrics", plural="pods", namespaced=True))
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "timestamp": "2026-01-02T03:04:05Z", "window": "30s"}
    usage = {"cpu": "1234567890n", "memory": "2000000Ki"}
    server.create({**head, "kind": "NodeMetrics", "metadata": {"name": "node-1"}, "usage": usage})
    for name, cpu in (("web-abc-1", "1500u"), ("web-abc-2", "250m")):
        containers = [
            {"name": "main", "usage": {"cpu": cpu, "memory": "64Mi"}},
            {"name": "side", "usage": {"cpu": "1m", "memory": "1500Ki"}},
        ]
        metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        server.create({**head, "kind": "PodMetrics", "metadata": metadata, "containers": containers})


async def test_output_on_the_embedded_server_is_that_of_kubectl(assets: Path, tmp_path: Path) -> None:
    server = APIServer()
    amounts = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "hugepages-2Mi": "0", "example.com/gpu": "2"}
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "node-1", "labels": {"node-role.kubernetes.io/worker": "", "disk": "ssd"}},
            "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
            "status": {"capacity": amounts, "nodeInfo": {"kubeletVersion": "v1.36.3"}},
        }
    )
    for manifest in load_manifests(OBJECTS):
        server.create(manifest.object)
    create_replicas(server)
    create_metrics(server)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        programs = Programs(assets / "kubectl", write_kubeconfig(tmp_path / "kubeconfig", config_of(url), "default"))
        check(await programs.compare_all(OF_SERVERS))
        nursery.cancel_scope.cancel()


def test_every_difference_is_in_the_documentation() -> None:
    assert set(DIFFERENCES) <= {*OF_SERVERS, *OF_THE_TOOL}
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in DIFFERENCES.values() if reason not in page] == []
