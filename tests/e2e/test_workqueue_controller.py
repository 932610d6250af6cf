"""``examples/workqueue_controller.py`` in a cluster with kube-controller-manager and nodes, whose pods run."""

from __future__ import annotations

import trio

from tests.e2e.workloads import deployment, is_rolled_out, make_namespace, restart
from tests.support.processes import ROOT, Program, running
from trioformer import open_client
from trioformer.client import Api
from trioformer.models import ObjectMeta, key_of
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing import ControlPlane
from trioformer.watchtools import deleted, wait_for


async def wait_until_dealt_with(program: Program, pods: Api[Pod], *, count: int) -> set[str]:
    """Wait until the program has seen that each pod runs; returns their keys."""
    keys = {key_of(pod) for pod in await pods.list() if pod.metadata.deletion_timestamp is None}
    assert len(keys) == count
    for key in keys:
        await program.wait_for_line(f"Pod {key}: Running")
    return keys


async def test_each_pod_is_dealt_with_through_the_death_of_the_api_server(cluster: ControlPlane) -> None:
    command = [str(ROOT / "examples" / "workqueue_controller.py"), "--kubeconfig", str(cluster.kubeconfig)]
    with trio.fail_after(90):
        async with open_client(kubeconfig=cluster.kubeconfig) as client, running(*command) as program:
            namespace = await make_namespace(client, "workqueue")
            deployments = client.api(Deployment, namespace=namespace)
            pods = client.api(Pod, namespace=namespace)
            await deployments.create(deployment("web", replicas=3))
            await wait_for(deployments, "web", is_rolled_out)
            before = await wait_until_dealt_with(program, pods, count=3)

            # No node is its, so that it is pending until somebody says otherwise.
            spec = PodSpec(containers=(Container(name="main", image="busybox"),))
            lonely = key_of(await pods.create(Pod(metadata=ObjectMeta(name="lonely"), spec=spec)))
            await program.wait_for_line(f"Pod {lonely}: it is pending; dropped after 5 retries")
            retries = [line for line in program.lines if line.startswith(f"Pod {lonely}: it is pending; retry")]
            assert [line[-1] for line in retries] == ["1", "2", "3", "4", "5"]
            assert program.errors == []

            await cluster.kill_api_server()
            await cluster.start_api_server()
            await pods.patch("lonely", {"status": {"phase": "Running"}}, subresource="status", field_manager="kubelet")
            await program.wait_for_line(f"Pod {lonely}: Running")
            await restart(deployments, "web")
            await wait_for(deployments, "web", is_rolled_out)
            for key in before:
                await program.wait_for_line(f"Pod {key} does not exist any more")

            await wait_until_dealt_with(program, pods, count=4)
            after = {key_of(pod) for pod in await pods.list()} - {lonely}
            await deployments.delete("web", propagation_policy="Foreground")
            await wait_for(deployments, "web", deleted())
            for key in after:
                await program.wait_for_line(f"Pod {key} does not exist any more")
            assert await program.interrupt() == 0
