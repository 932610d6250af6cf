"""Functions that work as ``kubectl cordon``, ``drain`` and ``rollout``, and their tests
on virtual time.

Run the tests with ``pytest examples``.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from trioformer import Api, Client, ObjectMeta
from trioformer.controller import is_controlled_by
from trioformer.manifests import readiness_of
from trioformer.models import from_dict
from trioformer.models.apps_v1 import Deployment, ReplicaSet
from trioformer.models.core_v1 import Node, Pod
from trioformer.pods import evict_pods
from trioformer.testing import APIServer
from trioformer.watchtools import wait_for


async def cordon(client: Client, name: str) -> None:
    """Keep new pods away from a node."""
    await client.api(Node).patch(name, {"spec": {"unschedulable": True}})


async def uncordon(client: Client, name: str) -> None:
    """Allow new pods on a node."""
    await client.api(Node).patch(name, {"spec": {"unschedulable": None}})


async def drain(client: Client, name: str) -> None:
    """Move the pods of a node to other nodes."""
    await cordon(client, name)
    with trio.fail_after(600):
        await evict_pods(client.api(Pod), node=name, on_progress=print)


async def restart(deployments: Api[Deployment], name: str) -> Deployment:
    """Replace all pods of a Deployment."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    metadata = {"annotations": {"kubectl.kubernetes.io/restartedAt": now}}
    return await deployments.patch(name, {"spec": {"template": {"metadata": metadata}}})


def revision_of(replica_set: ReplicaSet) -> int:
    """Return the number of the rollout to which a ReplicaSet belongs."""
    annotations = replica_set.metadata.annotations
    return int(annotations["deployment.kubernetes.io/revision"])


async def undo(client: Client, deployment: Deployment) -> Deployment:
    """Roll a Deployment back to the pod template of its previous revision."""
    sets = await client.api(ReplicaSet, deployment.namespace).list()
    owned = [each for each in sets if is_controlled_by(each, deployment)]
    template = sorted(owned, key=revision_of)[-2].spec.template
    labels = dict(template.metadata.labels)
    del labels["pod-template-hash"]
    template = template.evolve(metadata=template.metadata.evolve(labels=labels))
    new = deployment.evolve(spec=deployment.spec.evolve(template=template))
    return await client.api(Deployment, deployment.namespace).update(deployment, new)


def is_ready(deployment: Deployment) -> bool:
    return bool(readiness_of(deployment))


@pytest.fixture
async def api_server(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> APIServer:
    server = APIServer(controllers=True)
    await nursery.start(server.run)
    return server


@pytest.fixture
async def deployments(api_server: APIServer, k8s_client: Client) -> Api[Deployment]:
    """The API of Deployments in a cluster with two nodes and a ready Deployment."""
    api_server.create(Node(metadata=ObjectMeta(name="node-2")))  # there is a "node-1"
    deployments = k8s_client.api(Deployment, namespace="default")
    labels = {"app": "web"}
    containers = [{"name": "main", "image": "web:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    created = from_dict(Deployment, {"metadata": {"name": "web"}, "spec": spec})
    await deployments.create(created)
    await wait_for(deployments, "web", is_ready)
    return deployments


async def test_a_drained_node_has_no_pods_until_it_is_uncordoned(
    deployments: Api[Deployment],
    api_server: APIServer,
    k8s_client: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {pod.uid: pod.spec.node_name for pod in api_server.list(Pod)}
    staying = {uid for uid in before if before[uid] == "node-2"}
    assert len(staying) == 2
    await drain(k8s_client, "node-1")
    assert capsys.readouterr().out.count("gone") == 2
    await wait_for(deployments, "web", is_ready)
    pods = api_server.list(Pod)
    assert [pod.spec.node_name for pod in pods] == ["node-2"] * 4
    assert staying < {pod.uid for pod in pods}

    await uncordon(k8s_client, "node-1")
    await deployments.scale("web", 6)
    await wait_for(deployments, "web", is_ready)
    assert "node-1" in [pod.spec.node_name for pod in api_server.list(Pod)]


async def test_a_restart_replaces_all_pods(
    deployments: Api[Deployment], api_server: APIServer
) -> None:
    before = {pod.uid for pod in api_server.list(Pod)}
    await restart(deployments, "web")
    await wait_for(deployments, "web", is_ready)
    after = {pod.uid for pod in api_server.list(Pod)}
    assert len(after) == 4
    assert not before & after


async def test_a_rollback_returns_to_the_previous_image(
    deployments: Api[Deployment], api_server: APIServer, k8s_client: Client
) -> None:
    containers = [{"name": "main", "image": "web:2", "args": ["--new"]}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await deployments.patch("web", patch)
    await wait_for(deployments, "web", is_ready)

    await undo(k8s_client, await deployments.get("web"))
    await wait_for(deployments, "web", is_ready)
    pods = api_server.list(Pod)
    assert {pod.spec.containers[0].image for pod in pods} == {"web:1"}
    assert not any(pod.spec.containers[0].args for pod in pods)
    revisions = sorted(map(revision_of, api_server.list(ReplicaSet)))
    assert revisions == [2, 3]
