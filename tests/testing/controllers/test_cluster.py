from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.testing.controllers.workloads import pods, status, workload
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod


def test_no_controllers_run_by_default() -> None:
    server = APIServer()
    server.create(workload("Deployment", "web", replicas=1))
    assert not server.list("replicasets")
    assert not server.list("nodes")


def test_writes_that_would_never_end_are_an_error() -> None:
    server = APIServer(controllers=True, run_pod=lambda pod, _: server.delete(pod))
    with pytest.raises(RuntimeError, match="ReplicaSet default web"):
        server.create(workload("ReplicaSet", "web", replicas=1))


def test_a_deleted_namespace_is_emptied() -> None:
    server = APIServer(controllers=True, run_pod=lambda _, script: script.start())
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for kind in ("Deployment", "StatefulSet", "Job"):
        obj = workload(kind, kind.lower())
        server.create({**obj, "metadata": {**obj["metadata"], "namespace": "team"}})
    assert len(server.list("pods", namespace="team")) == 3
    held = {"name": "held", "namespace": "team", "finalizers": ["example.com/hold"]}
    server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    server.delete("namespaces", "team")
    assert status(server, "namespaces", "team")["phase"] == "Terminating"
    assert not server.list("pods", namespace="team")
    server.patch("configmaps", "held", {"metadata": {"finalizers": []}}, namespace="team")
    assert "team" not in [one["metadata"]["name"] for one in server.list("namespaces")]  # type: ignore[index]


def test_each_namespace_has_a_service_account_and_an_authority() -> None:
    server = APIServer(controllers=True)
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for namespace in ("default", "team"):
        assert [each["metadata"]["name"] for each in server.list("serviceaccounts", namespace=namespace)] == ["default"]  # type: ignore[index]
        assert [each["metadata"]["name"] for each in server.list("configmaps", namespace=namespace)] == [  # type: ignore[index]
            "kube-root-ca.crt"
        ]


def test_the_status_of_a_pod_has_its_image_and_the_address_of_the_node() -> None:
    server = APIServer(controllers=True)
    server.create(workload("ReplicaSet", "web", replicas=1, image="web:3"))
    status = pods(server)[0]["status"]
    assert (status["containerStatuses"][0]["image"], status["hostIPs"]) == ("web:3", [{"ip": status["hostIP"]}])


def test_a_pod_waits_for_a_node() -> None:
    server = APIServer(controllers=True)
    server.patch("nodes", "node-1", {"spec": {"unschedulable": True}})
    server.create(workload("ReplicaSet", "web", replicas=2))
    assert [pod["status"]["conditions"][0]["reason"] for pod in pods(server)] == ["Unschedulable"] * 2
    server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-2"}})
    assert {pod["spec"]["nodeName"] for pod in pods(server)} == {"node-2"}
    server.patch("nodes", "node-1", {"spec": {"unschedulable": None}})
    server.patch("replicasets", "web", {"spec": {"replicas": 4}})
    assert Counter(pod["spec"]["nodeName"] for pod in pods(server)) == {"node-1": 1, "node-2": 3}
    assert {pod["status"]["phase"] for pod in pods(server)} == {"Running"}


def test_a_pod_of_another_scheduler_or_node_is_left_alone() -> None:
    server = APIServer(controllers=True)
    containers = [{"name": "main"}]
    for name, spec in (("mine", {"schedulerName": "mine"}), ("nowhere", {"nodeName": "no-such-node"})):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        server.create({**pod, "spec": {"containers": containers, **spec}})
        assert status(server, "pods", name)["phase"] == "Pending"


def test_a_pod_is_scheduled_when_its_last_gate_is_removed() -> None:
    server = APIServer(controllers=True)
    spec = {"containers": [{"name": "main"}], "schedulingGates": [{"name": "example.com/quota"}]}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
    assert status(server, "pods", "web")["phase"] == "Pending"
    server.patch("pods", "web", {"spec": {"schedulingGates": None}})
    assert status(server, "pods", "web")["phase"] == "Running"


def test_scheduling_does_not_change_the_generation_of_a_pod() -> None:
    server = APIServer(controllers=True)
    server.create(workload("ReplicaSet", "web", replicas=1))
    (pod,) = pods(server)
    assert (pod["spec"]["nodeName"], pod["metadata"]["generation"]) == ("node-1", 1)


def test_the_node_accepts_pods() -> None:
    assert "taints" not in APIServer(controllers=True).get("nodes", "node-1").get("spec", {})  # type: ignore[operator]


async def test_a_watch_gets_every_write_in_order(nursery: trio.Nursery, autojump_clock: object) -> None:
    server = APIServer(controllers=True)
    await nursery.start(server.run)
    revision = server.statistics().revision
    server.create(workload("Deployment", "web", replicas=2))
    phases: dict[str, list[str]] = {}
    versions = []
    async with server.open_client() as client:
        params = {"watch": "true", "resourceVersion": str(revision), "timeoutSeconds": "1"}
        async with client.stream("GET", "/api/v1/pods", params=params, endless=True) as stream:
            async for line in stream.lines():
                event = json.loads(line)
                metadata, spec = event["object"]["metadata"], event["object"]["spec"]
                versions.append(int(metadata["resourceVersion"]))
                shown = f"{event['type']} {spec.get('nodeName')} {event['object']['status']['phase']}"
                phases.setdefault(metadata["name"], []).append(shown)
    assert versions == sorted(versions)
    assert list(phases.values()) == [["ADDED None Pending", "MODIFIED node-1 Pending", "MODIFIED node-1 Running"]] * 2


async def test_delays_follow_the_clock_and_end_with_the_pod(nursery: trio.Nursery, autojump_clock: object) -> None:
    started = []

    def later(pod: Pod, script: ScriptedPod) -> None:
        script.after(5, lambda: started.append(pod.name))

    server = APIServer(controllers=True, run_pod=later)
    await nursery.start(server.run)
    for name in ("kept", "deleted", "replaced"):
        server.create(Pod(metadata=ObjectMeta(name=name)))
    server.delete("pods", "deleted")
    server.delete("pods", "replaced")
    server.create(Pod(metadata=ObjectMeta(name="replaced")))
    await trio.sleep(4)
    assert not started
    await trio.sleep(2)
    assert started == ["kept", "replaced"]


def test_a_delay_needs_controllers() -> None:
    server = APIServer()
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}})
    script = server.script_pod("web")
    with pytest.raises(RuntimeError, match="controllers"):
        script.after(1, script.start)


def test_a_restored_snapshot_settles() -> None:
    server = APIServer(controllers=True)
    server.create(workload("Deployment", "web", replicas=2))
    snapshot = server.snapshot()
    server.delete("deployments", "web")
    assert not pods(server)
    server.restore(snapshot)
    assert len(pods(server)) == 2
    server.patch("deployments", "web", {"spec": {"replicas": 3}})
    assert len(pods(server)) == 3


def test_servers_that_are_restored_one_after_the_other_give_new_uids_and_addresses() -> None:
    server = APIServer(controllers=True)
    server.create(workload("Deployment", "first", replicas=1))
    for name in ("second", "third"):
        snapshot = server.snapshot()
        server = APIServer(controllers=True)
        server.restore(snapshot)
        server.create(workload("Deployment", name, replicas=1))
    found = pods(server)
    assert len(found) == 3
    assert len({pod["metadata"]["uid"] for pod in found}) == 3
    assert len({pod["status"]["podIP"] for pod in found}) == 3


async def test_a_restored_pod_runs_again(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    server = APIServer(controllers=True, run_pod=lambda _, script: script.after(10, script.start))
    await nursery.start(server.run)
    server.create(workload("ReplicaSet", "web", replicas=1))
    snapshot = server.snapshot()
    await trio.sleep(20)
    server.restore(snapshot)
    assert pods(server)[0]["status"]["phase"] == "Pending"
    await trio.sleep(20)
    assert pods(server)[0]["status"]["phase"] == "Running"


def test_objects_of_a_server_without_controllers_get_a_node() -> None:
    before = APIServer()
    before.create(workload("Deployment", "web", replicas=1))
    server = APIServer(controllers=True)
    server.restore(before.snapshot())
    assert [pod["spec"]["nodeName"] for pod in pods(server)] == ["node-1"]


def test_numbers_that_are_none_and_long_deadlines_are_no_errors() -> None:
    server = APIServer(controllers=True)
    server.create(workload("Job", "long", activeDeadlineSeconds=2**62))
    obj = workload("Deployment", "web", replicas=2)
    annotations = {"controller.kubernetes.io/pod-deletion-cost": "much"}
    obj["spec"]["template"]["metadata"]["annotations"] = annotations
    server.create(obj)
    (replica_set,) = server.list("replicasets")
    name = replica_set["metadata"]["name"]  # type: ignore[index]
    server.patch("replicasets", name, {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "new"}}})
    server.patch("deployments", "web", {"spec": {"replicas": 1}})
    assert len(pods(server, app="web")) == 1


def test_a_ready_condition_without_a_time_counts() -> None:
    server = APIServer(controllers=True, run_pod=lambda _pod, _script: None)
    server.create(workload("ReplicaSet", "web", replicas=1))
    (pod,) = pods(server)
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": None}
    server.patch("pods", pod["metadata"]["name"], {"status": {"phase": "Running", "conditions": [condition]}})
    assert status(server, "replicasets", "web")["availableReplicas"] == 1


def test_a_stateful_set_adopts_only_its_members() -> None:
    server = APIServer(controllers=True)
    server.create(workload("StatefulSet", "db", replicas=1))
    for name in ("debug", "other-1", "db-7"):
        metadata = {"name": name, "labels": {"app": "db"}}
        server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
    assert [pod["metadata"]["name"] for pod in pods(server)] == ["db-0", "debug", "other-1"]


def test_loaded_objects_keep_their_owners(tmp_path: Path) -> None:
    before = APIServer(controllers=True)
    before.create(workload("Deployment", "web", replicas=2))
    kinds = ("pods", "replicasets", "deployments")
    items = [json.loads(json.dumps(one)) for kind in kinds for one in before.list(kind)]
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    server = APIServer(controllers=True)
    server.load(file)
    names = [one["metadata"]["name"] for one in server.list("pods")]  # type: ignore[index]
    assert names == [pod["metadata"]["name"] for pod in pods(before)]
    (replica_set,) = server.list("replicasets")
    assert replica_set["metadata"]["uid"] == pods(server)[0]["metadata"]["ownerReferences"][0]["uid"]  # type: ignore[index]
