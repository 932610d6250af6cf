from __future__ import annotations

from typing import Any

import pytest

from tests.testing.controllers.workloads import owner, workload
from trioformer.testing import APIServer

OF_WEB = "kubernetes.io/service-name=web"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "labels": {"team": "a"}},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
}


@pytest.fixture
def server() -> APIServer:
    ips = iter(["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    server = APIServer(controllers=True, run_pod=lambda _, script: script.start(ip=next(ips)))
    server.create(SERVICE)
    web = workload("ReplicaSet", "web", replicas=2)
    web["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 8080}]
    server.create(web)
    return server


def only(server: APIServer) -> Any:
    (found,) = server.list("endpointslices", label_selector=OF_WEB)
    return found


def test_a_service_has_the_addresses_of_its_pods(server: APIServer) -> None:
    found = only(server)
    assert sorted(one["addresses"] for one in found["endpoints"]) == [["192.0.2.1"], ["192.0.2.2"]]
    assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == owner(found)["name"] == "web"
    assert found["metadata"]["labels"]["team"] == "a"
    assert {one["targetRef"]["name"] for one in found["endpoints"]} == {
        pod["metadata"]["name"]  # type: ignore[index]
        for pod in server.list("pods")
    }


def test_only_ready_pods_are_ready_endpoints(server: APIServer) -> None:
    name = only(server)["endpoints"][0]["targetRef"]["name"]
    server.patch("pods", name, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    ready = {one["targetRef"]["name"]: one["conditions"]["ready"] for one in only(server)["endpoints"]}
    assert ready.pop(name) is False
    assert list(ready.values()) == [True]


def test_endpoints_follow_the_pods(server: APIServer) -> None:
    server.patch("replicasets", "web", {"spec": {"replicas": 1}})
    assert len(only(server)["endpoints"]) == 1
    server.patch("services", "web", {"spec": {"selector": {"app": "other"}}})
    assert not only(server).get("endpoints")
    server.delete("services", "web")
    assert not server.list("endpointslices", label_selector=OF_WEB)
