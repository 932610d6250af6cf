"""The defaults of built-in kinds, which ``contract/test_builtin_defaults.py`` compares with those of kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.testing import APIServer
from trioformer.testing._storage import _services

CONTAINER = {"name": "main", "image": "busybox"}


def create(server: APIServer, kind: str, api_version: str = "v1", name: str = "a", **fields: Any) -> dict[str, Any]:
    return server.create({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields})


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    return {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}


def test_absent_fields_get_their_defaults_at_every_level() -> None:
    spec = create(APIServer(), "Pod", spec={"containers": [CONTAINER], "volumes": [{"name": "v"}]})["spec"]
    assert (spec["restartPolicy"], spec["enableServiceLinks"], spec["securityContext"]) == ("Always", True, {})
    (container,) = spec["containers"]
    assert (container["terminationMessagePolicy"], container["resources"]) == ("File", {})
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_fields_that_are_set_are_kept() -> None:
    made = create(APIServer(), "Deployment", "apps/v1", spec=deployment(replicas=0, revisionHistoryLimit=3))
    assert (made["spec"]["replicas"], made["spec"]["revisionHistoryLimit"]) == (0, 3)


def test_a_template_has_other_defaults_than_a_pod() -> None:
    spec: Any = create(APIServer(), "Deployment", "apps/v1", spec=deployment())["spec"]
    assert "enableServiceLinks" not in spec["template"]["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("registry:5000/busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("busybox@sha256:" + 64 * "2", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_from_the_tag(image: str, policy: str) -> None:
    made = create(APIServer(), "Pod", spec={"containers": [{"name": "main", "image": image}]})
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_absent_fields_have_their_zero_values_and_empty_fields_are_removed() -> None:
    server = APIServer()
    made = create(server, "ReplicaSet", "apps/v1", spec={**deployment(minReadySeconds=0), "template": {}})
    assert made["status"] == {"replicas": 0}
    assert "minReadySeconds" not in made["spec"]
    assert made["spec"]["template"]["metadata"] == {}
    assert create(server, "Role", "rbac.authorization.k8s.io/v1")["rules"] is None


def test_quantities_have_their_canonical_form() -> None:
    resources = {"limits": {"cpu": 0.5, "memory": "1024Mi"}}
    spec = create(APIServer(), "Pod", spec={"containers": [{**CONTAINER, "resources": resources}]})["spec"]
    amounts = {"cpu": "500m", "memory": "1Gi"}
    assert spec["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_the_quality_of_service_of_a_pod(resources: Any, quality: str) -> None:
    made = create(APIServer(), "Pod", spec={"containers": [{**CONTAINER, "resources": resources}]})
    assert made["status"]["qosClass"] == quality


def test_services_have_different_addresses_and_ports() -> None:
    server = APIServer()
    specs = [
        create(server, "Service", name=f"s{i}", spec={"type": "NodePort", "ports": [{"port": 80}]})["spec"]
        for i in range(50)
    ]
    assert len({spec["clusterIP"] for spec in specs}) == 50
    ports = {spec["ports"][0]["nodePort"] for spec in specs}
    assert len(ports) == 50
    assert ports <= set(range(30_000, 32_768))


def test_the_ports_of_deleted_and_restored_services_are_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_services, "NODE_PORTS", range(30_000, 30_003))
    first, server = APIServer(), APIServer()

    def add(to: APIServer, name: str, **port: int) -> int:
        made = create(to, "Service", name=name, spec={"type": "NodePort", "ports": [{"port": 80, **port}]})
        return int(made["spec"]["ports"][0]["nodePort"])

    add(first, "given", nodePort=30_001)
    add(server, "lost", nodePort=30_000)
    server.restore(first.snapshot())
    others = {name: add(server, name) for name in ("a", "b")}
    assert set(others.values()) == {30_000, 30_002}
    server.delete("services", "a")
    assert add(server, "c") == others["a"]


def test_a_service_keeps_its_address_until_its_type_needs_none() -> None:
    server = APIServer()
    made = create(server, "Service", spec={"ports": [{"port": 80}]})
    replaced = server.replace({**made, "spec": {"ports": [{"port": 81}]}})
    assert replaced["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    external = server.patch("services", "a", {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert "clusterIP" not in external["spec"]


@pytest.mark.parametrize("labels", [{}, {"a": "b"}])
def test_a_job_selects_its_pods_by_its_uid(labels: dict[str, str]) -> None:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
    made: Any = create(APIServer(), "Job", "batch/v1", spec={"template": template})
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert labels["job-name"] == "a"
    assert labels["batch.kubernetes.io/controller-uid"] == made["metadata"]["uid"]
    assert made["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert made["metadata"]["labels"] == labels


def test_the_priority_of_a_pod_is_the_value_of_its_class() -> None:
    server = APIServer()
    create(server, "PriorityClass", "scheduling.k8s.io/v1", name="high", value=7, preemptionPolicy="Never")
    spec = create(server, "Pod", spec={"containers": [CONTAINER], "priorityClassName": "high"})["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
    assert server.patch("pods", "a", {"spec": {"priority": None}})["spec"]["priority"] == 7


def test_a_daemon_set_counts_the_changes_of_its_template() -> None:
    server = APIServer()
    create(server, "DaemonSet", "apps/v1", spec=deployment())
    changed = server.patch("daemonsets", "a", {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    assert changed["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "2"  # type: ignore[index]


@pytest.mark.parametrize("value", [1, "x", [], [1], [{}], {"a": 1}, True])
def test_values_of_other_types_are_stored_as_they_are(value: Any) -> None:
    server = APIServer()
    for kind, api_version in (("Pod", "v1"), ("Service", "v1"), ("Job", "batch/v1"), ("DaemonSet", "apps/v1")):
        fields = ("containers", "ports", "template", "type", "clusterIPs", "tolerations")
        made = create(server, kind, api_version, spec=dict.fromkeys(fields, value))
        assert server.replace({**made, "spec": {"template": value}})


def test_without_defaults_objects_are_stored_as_they_are_written() -> None:
    server = APIServer(defaults=False)
    spec = {"containers": [CONTAINER]}
    assert create(server, "Pod", spec=spec)["spec"] == spec
    assert create(server, "Service", spec={"ports": [{"port": 80}]})["spec"] == {"ports": [{"port": 80}]}
