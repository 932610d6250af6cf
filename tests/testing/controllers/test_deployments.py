from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.testing.controllers.workloads import condition, image_patch, images, owner, pods, status, workload
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod, run_pod


def start_unless_broken(pod: Pod, script: ScriptedPod) -> None:
    if pod.spec.containers[0].image != "broken":
        run_pod(pod, script)


@pytest.fixture
def server() -> APIServer:
    return APIServer(controllers=True, run_pod=start_unless_broken)


def revision(obj: Any) -> str:
    return str(obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


def test_a_deployment_is_rolled_out_when_create_returns(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=3))
    deployment, (replica_set,) = server.get("deployments", "web"), server.list("replicasets")
    found = status(server, "deployments", "web")
    assert (found["replicas"], found["updatedReplicas"], found["availableReplicas"]) == (3, 3, 3)
    assert found["observedGeneration"] == 1
    assert condition(server, "deployments", "web", "Progressing") == "NewReplicaSetAvailable"
    assert condition(server, "deployments", "web", "Available") == "MinimumReplicasAvailable"
    assert revision(deployment) == revision(replica_set) == "1"
    for dependent, parent in ((replica_set, deployment), *((pod, replica_set) for pod in pods(server))):
        reference = owner(dependent)
        assert (reference["uid"], reference["kind"]) == (parent["metadata"]["uid"], parent["kind"])
        assert reference["controller"]
        assert reference["blockOwnerDeletion"]
    labels = replica_set["metadata"]["labels"]
    assert replica_set["metadata"]["name"] == f"web-{labels['pod-template-hash']}"
    assert replica_set["spec"]["selector"]["matchLabels"] == labels
    assert all(pod["metadata"]["labels"] == labels for pod in pods(server))
    assert {pod["spec"]["nodeName"] for pod in pods(server)} == {"node-1"}


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [(1, 0, 5, 4), (0, 1, 4, 3), ("50%", "25%", 6, 3), ("25%", "25%", 5, 3)],
)
async def test_a_rolling_update_keeps_its_limits(
    nursery: trio.Nursery, autojump_clock: object, surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    sizes = []

    def slowly(_: Pod, script: ScriptedPod) -> None:
        script.after(3, script.start)

    server = APIServer(controllers=True, run_pod=slowly)
    await nursery.start(server.run)
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    server.create(workload("Deployment", "web", replicas=4, strategy={"rollingUpdate": limits}))
    await trio.sleep(10)
    server.patch("deployments", "web", image_patch("web:2"))
    for _ in range(60):
        ready = [pod for pod in pods(server) if pod["status"]["phase"] == "Running"]
        sizes.append((len(pods(server)), len(ready)))
        await trio.sleep(1)
    assert max(total for total, _ in sizes) == most
    assert min(ready for _, ready in sizes) == least
    assert images(server) == ["web:2"] * 4
    assert condition(server, "deployments", "web", "Progressing") == "NewReplicaSetAvailable"


async def test_a_rollout_that_makes_no_progress_exceeds_its_deadline(
    nursery: trio.Nursery, autojump_clock: object, server: APIServer
) -> None:
    await nursery.start(server.run)
    server.create(workload("Deployment", "web", replicas=4, progressDeadlineSeconds=600))
    server.patch("deployments", "web", image_patch("broken"))
    await trio.sleep(590)
    assert condition(server, "deployments", "web", "Progressing") == "ReplicaSetUpdated"
    await trio.sleep(20)
    assert condition(server, "deployments", "web", "Progressing") == "ProgressDeadlineExceeded"
    assert images(server) == ["broken", "broken", "web:1", "web:1", "web:1"]
    server.patch("deployments", "web", image_patch("web:1"))
    assert images(server) == ["web:1"] * 4
    assert condition(server, "deployments", "web", "Progressing") == "NewReplicaSetAvailable"


def test_a_rollback_uses_the_old_replica_set_again(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=2))
    (first,) = server.list("replicasets")
    server.patch("deployments", "web", image_patch("web:2"))
    server.patch("deployments", "web", image_patch("web:1"))
    assert {owner(pod)["uid"] for pod in pods(server)} == {first["metadata"]["uid"]}  # type: ignore[index]
    again = server.get("replicasets", first["metadata"]["name"])  # type: ignore[index]
    assert revision(again) == revision(server.get("deployments", "web")) == "3"
    assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"  # type: ignore[index]
    assert len(server.list("replicasets")) == 2


def test_old_replica_sets_above_the_limit_are_deleted(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=1))
    for number in (2, 3, 4):
        server.patch("deployments", "web", image_patch(f"web:{number}"))
    assert sorted(map(revision, server.list("replicasets"))) == ["3", "4"]


def test_a_deployment_is_scaled(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=2))
    for size in (5, 0, 3):
        server.patch("deployments", "web", {"spec": {"replicas": size}})
        assert len(pods(server)) == status(server, "deployments", "web").get("replicas", 0) == size


def test_the_collision_count_is_kept(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=1))
    server.patch("deployments", "web", {"status": {"collisionCount": 2}})
    server.patch("deployments", "web", {"spec": {"replicas": 2}})
    assert status(server, "deployments", "web")["collisionCount"] == 2


def test_a_scaled_rollout_grows_in_proportion(server: APIServer) -> None:
    server.create(
        workload("Deployment", "web", replicas=10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    )
    server.patch("deployments", "web", image_patch("broken"))
    assert (images(server).count("web:1"), images(server).count("broken")) == (8, 5)
    server.patch("deployments", "web", {"spec": {"replicas": 15}})
    assert (images(server).count("web:1"), images(server).count("broken")) == (11, 7)


def test_a_paused_deployment_is_scaled_but_not_rolled_out(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=2))
    server.patch("deployments", "web", {"spec": {"paused": True}})
    server.patch("deployments", "web", image_patch("web:2"))
    server.patch("deployments", "web", {"spec": {"replicas": 3}})
    assert images(server) == ["web:1"] * 3
    server.patch("deployments", "web", {"spec": {"paused": False}})
    assert images(server) == ["web:2"] * 3


async def test_recreation_deletes_all_pods_first(server: APIServer) -> None:
    server.create(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    server.patch("deployments", "web", image_patch("web:2"))
    assert images(server) == ["web:2"] * 2
    server.patch("deployments", "web", image_patch("broken"))
    assert images(server) == ["broken"] * 2


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_a_deployment_is_deleted_with_or_without_its_pods(
    nursery: trio.Nursery, autojump_clock: object, server: APIServer, policy: str
) -> None:
    await nursery.start(server.run)
    server.create(workload("Deployment", "web", replicas=2))
    async with server.open_client() as client:
        path = "/apis/apps/v1/namespaces/default/deployments/web"
        await client.request("DELETE", path, params={"propagationPolicy": policy})
    assert not server.list("deployments")
    assert len(server.list("replicasets")) == (1 if policy == "Orphan" else 0)
    assert len(pods(server)) == (2 if policy == "Orphan" else 0)
    if policy == "Orphan":
        server.create(workload("Deployment", "web", replicas=1))
        assert len(server.list("replicasets")) == len(pods(server)) == 1
