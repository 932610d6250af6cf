from __future__ import annotations

import trio

from tests.testing.controllers.workloads import owner, pods, status, workload
from trioformer.testing import APIServer


def test_a_deleted_or_failed_pod_is_replaced() -> None:
    server = APIServer(controllers=True)
    server.create(workload("ReplicaSet", "web", replicas=2))
    first, second = (pod["metadata"]["name"] for pod in pods(server))
    server.delete("pods", first)
    server.script_pod(second).end(exit_code=1)
    running = [pod["metadata"]["name"] for pod in pods(server) if pod["status"]["phase"] == "Running"]
    assert len(running) == status(server, "replicasets", "web")["readyReplicas"] == 2
    assert not {first, second} & set(running)


def test_a_matching_pod_is_adopted_and_released() -> None:
    server = APIServer(controllers=True)
    metadata = {"name": "mine", "labels": {"app": "web"}}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}]}})
    server.create(workload("ReplicaSet", "web", replicas=1))
    assert [pod["metadata"]["name"] for pod in pods(server)] == ["mine"]
    assert owner(server.get("pods", "mine"))["name"] == "web"
    server.patch("pods", "mine", {"metadata": {"labels": {"app": "other"}}})
    assert not server.get("pods", "mine")["metadata"].get("ownerReferences")  # type: ignore[attr-defined]
    assert len(pods(server, app="web")) == 1


def test_pods_that_are_not_ready_are_deleted_first() -> None:
    server = APIServer(controllers=True)
    server.create(workload("ReplicaSet", "web", replicas=3))
    unready = pods(server)[1]["metadata"]["name"]
    server.patch("pods", unready, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    server.patch("replicasets", "web", {"spec": {"replicas": 2}})
    assert unready not in [pod["metadata"]["name"] for pod in pods(server)]


async def test_a_pod_is_available_after_min_ready_seconds(nursery: trio.Nursery, autojump_clock: object) -> None:
    server = APIServer(controllers=True)
    await nursery.start(server.run)
    server.create(workload("Deployment", "web", replicas=2, minReadySeconds=30))
    await trio.sleep(29)
    found = status(server, "deployments", "web")
    assert (found["readyReplicas"], found.get("availableReplicas")) == (2, None)
    await trio.sleep(2)
    assert status(server, "deployments", "web")["availableReplicas"] == 2


def test_the_defaults_of_pods_do_not_change_the_template() -> None:
    server = APIServer(controllers=True)
    given = workload("Deployment", "web", replicas=1)
    given["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "1Gi"}}
    server.create(given)
    requests = [
        one["spec"]["containers"][0]["resources"].get("requests")
        for one in (pods(server)[0], server.list("replicasets")[0]["spec"]["template"])  # type: ignore[index]
    ]
    assert requests == [{"memory": "1Gi"}, None]
    server.patch("deployments", "web", {"metadata": {"labels": {"a": "b"}}})
    assert len(server.list("replicasets")) == 1
