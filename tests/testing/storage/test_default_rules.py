"""The defaults that depend on other fields.  The contract tests compare them with those of kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.testing import APIServer


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "web:1", **spec.pop("container", {})}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def created(api_server: APIServer, obj: dict[str, Any]) -> Any:
    return api_server.create(obj)


async def test_pods_get_ports_policies_and_tolerations(api_server: APIServer) -> None:
    volumes = [{"name": "i", "image": {"reference": "data:latest"}}, {"name": "e"}]
    container = {"ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    found = created(api_server, pod(hostNetwork=True, volumes=volumes, container=container))
    (main,) = found["spec"]["containers"]
    assert main["ports"][0]["hostPort"] == 80
    assert main["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert found["spec"]["volumes"][0]["image"]["pullPolicy"] == "Always"
    assert found["spec"]["volumes"][1]["emptyDir"] == {}
    assert found["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"cpu": "much"}}, "BestEffort"),
        ({"requests": {"example.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
    ],
)
async def test_the_quality_of_service_follows_from_the_resources(
    api_server: APIServer, resources: dict[str, Any], expected: str
) -> None:
    found = created(api_server, pod(container={"resources": resources}))
    assert found["status"]["qosClass"] == expected


async def test_pods_get_the_priority_of_the_default_class(api_server: APIServer) -> None:
    for name, value in (("high", 7), ("low", 3)):
        metadata = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        created(api_server, {**metadata, "value": value, "globalDefault": True})
    assert created(api_server, pod())["spec"]["priority"] == 3
    assert created(api_server, pod("b", priorityClassName="high"))["spec"]["priority"] == 7
    assert created(api_server, pod("c", priorityClassName="absent"))["spec"]["priority"] == 0


async def test_statuses_and_limits_get_what_follows_from_their_other_fields(api_server: APIServer) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    assert created(api_server, node)["status"]["allocatable"] == {"cpu": "4"}
    limits = [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}}]
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    (item,) = created(api_server, limit_range)["spec"]["limits"]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {}}
    assert "lastPhaseTransitionTime" in created(api_server, volume)["status"]


async def test_services_get_addresses_and_ports(api_server: APIServer) -> None:
    def service(name: str, **spec: Any) -> Any:
        metadata = {"name": name}
        return created(api_server, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})["spec"]

    ports = [{"port": 80}]
    sticky = service("sticky", ports=ports, sessionAffinity="ClientIP")
    assert sticky["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10_800}}
    local = service("local", type="LoadBalancer", ports=ports, externalTrafficPolicy="Local")
    taken = {local["healthCheckNodePort"], local["ports"][0]["nodePort"]}
    assert len(taken) == 2
    assert service("external", ports=ports, externalIPs=["192.0.2.1"])["externalTrafficPolicy"] == "Cluster"
    ingress = [{"ip": "192.0.2.1"}, {"hostname": "a.test"}]
    found = created(
        api_server,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "balanced"},
            "spec": {"type": "LoadBalancer", "ports": ports},
            "status": {"loadBalancer": {"ingress": ingress}},
        },
    )
    assert [one.get("ipMode") for one in found["status"]["loadBalancer"]["ingress"]] == ["VIP", None]


async def test_a_job_with_a_selector_of_its_own_keeps_its_labels(api_server: APIServer) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never", "containers": []}}
    spec = {"manualSelector": True, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    job = created(api_server, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    assert job["spec"]["template"]["metadata"]["labels"] == {"app": "a"}
    assert job["metadata"]["labels"] == {"app": "a"}
