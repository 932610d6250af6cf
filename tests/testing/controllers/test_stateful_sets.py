from __future__ import annotations

import trio

from tests.testing.controllers.workloads import image_patch, owner, pods, status, workload
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod


def names(server: APIServer) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(server)]


def slowly(_: Pod, script: ScriptedPod) -> None:
    script.after(5, script.start)


async def test_each_pod_waits_for_the_one_before(nursery: trio.Nursery, autojump_clock: object) -> None:
    server = APIServer(controllers=True, run_pod=slowly)
    await nursery.start(server.run)
    server.create(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    seen = []
    for _ in range(4):
        seen.append(names(server))
        await trio.sleep(5.5)
    assert seen == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"], ["db-0", "db-1", "db-2"]]
    server.patch("statefulsets", "db", {"spec": {"replicas": 1}})
    assert names(server) == ["db-0"]


async def test_parallel_management_does_not_wait(nursery: trio.Nursery, autojump_clock: object) -> None:
    server = APIServer(controllers=True, run_pod=slowly)
    await nursery.start(server.run)
    server.create(workload("StatefulSet", "db", replicas=3, podManagementPolicy="Parallel"))
    assert names(server) == ["db-0", "db-1", "db-2"]


def test_pods_have_an_identity_and_a_revision() -> None:
    server = APIServer(controllers=True)
    server.create(workload("StatefulSet", "db", replicas=2, serviceName="db"))
    (revision,) = server.list("controllerrevisions")
    for ordinal, pod in enumerate(pods(server)):
        labels = pod["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == pod["spec"]["hostname"] == f"db-{ordinal}"
        assert labels["apps.kubernetes.io/pod-index"] == str(ordinal)
        assert labels["controller-revision-hash"] == revision["metadata"]["name"]  # type: ignore[index]
        assert (owner(pod)["kind"], owner(pod)["name"], pod["spec"]["subdomain"]) == ("StatefulSet", "db", "db")


async def test_an_update_replaces_the_last_pod_first(nursery: trio.Nursery, autojump_clock: object) -> None:
    server = APIServer(controllers=True, run_pod=slowly)
    await nursery.start(server.run)
    server.create(workload("StatefulSet", "db", replicas=2))
    await trio.sleep(20)
    server.patch("statefulsets", "db", image_patch("db:2"))
    before = status(server, "statefulsets", "db")
    seen = []
    for _ in range(3):
        seen.append([pod["spec"]["containers"][0]["image"] for pod in pods(server)])
        await trio.sleep(5.5)
    assert seen == [["web:1", "db:2"], ["db:2", "db:2"], ["db:2", "db:2"]]
    after = status(server, "statefulsets", "db")
    assert before["currentRevision"] != before["updateRevision"] == after["updateRevision"] == after["currentRevision"]


def test_a_partition_keeps_the_first_pods() -> None:
    server = APIServer(controllers=True)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    server.create(workload("StatefulSet", "db", replicas=2, updateStrategy=strategy))
    server.patch("statefulsets", "db", image_patch("db:2"))
    server.delete("pods", "db-0")  # is created again with the template that it had
    assert [pod["spec"]["containers"][0]["image"] for pod in pods(server)] == ["web:1", "db:2"]


def test_a_failed_pod_is_replaced_under_its_name() -> None:
    server = APIServer(controllers=True)
    server.create(workload("StatefulSet", "db", replicas=1))
    uid = pods(server)[0]["metadata"]["uid"]
    server.script_pod("db-0").end(exit_code=1)
    assert names(server) == ["db-0"]
    assert pods(server)[0]["metadata"]["uid"] != uid
