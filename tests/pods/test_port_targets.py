"""Which pod and which port are meant, as kubectl chooses them."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.client import Client
from trioformer.errors import NotFoundError, PortForwardError
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod, Service
from trioformer.pods._port_targets import _rank, find_target
from trioformer.testing import APIServer

PORTS = [
    {"name": "http", "containerPort": 8080, "protocol": "TCP"},
    {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
    {"name": "syslog", "containerPort": 514, "protocol": "UDP"},
]


def add(server: APIServer, kind: str, name: str, spec: dict[str, Any], **members: Any) -> None:
    version = "apps/v1" if kind in ("Deployment", "StatefulSet") else "v1"
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web", "pod": name}}
    server.create({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **members})


def add_pod(server: APIServer, name: str, *, is_running: bool = True, is_ready: bool = True, **spec: Any) -> None:
    containers = [{"name": "main", "image": "x", "ports": PORTS}]
    add(server, "Pod", name, {"nodeName": "node-1", "containers": containers, **spec})
    if is_running:
        server.script_pod(name)
        if not is_ready:
            server.patch(Pod, name, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    add_pod(api_server, "web-0", is_ready=False)
    add_pod(api_server, "web-1")
    add_pod(api_server, "web-2", is_running=False)
    return api_server


async def find(client: Client, kind: Any, name: str, port: int | str) -> tuple[str, int]:
    pods = client.api(Pod, "default")
    found = await find_target(client.api(kind, "default"), pods, name, port, where="here")
    return found.pod, found.port


async def test_the_port_of_a_pod_is_a_number_or_a_name(server: APIServer, client: Client) -> None:
    for port, expected in [
        (8080, 8080),
        ("http", 8080),
        ("dns", 53),
        (1234, 1234),
        ("none", "Pod 'web-0' does not have a named port 'none'; it has http, dns, dns-tcp, syslog"),
        (514, "UDP protocol is not supported for 514"),
    ]:
        if isinstance(expected, int):
            assert await find(client, Pod, "web-0", port) == ("web-0", expected)
        else:
            with pytest.raises(PortForwardError, match=f"^here: {expected}"):
                await find(client, Pod, "web-0", port)


async def test_a_pod_must_run(server: APIServer, client: Client) -> None:
    with pytest.raises(PortForwardError, match=r"here: unable to .* not running\. Current status=Pending"):
        await find(client, Pod, "web-2", 80)
    with pytest.raises(NotFoundError):
        await find(client, Pod, "none", 80)


async def test_the_port_of_a_service_is_its_own(server: APIServer, client: Client) -> None:
    ports = [
        {"name": "web", "port": 80, "targetPort": "http"},
        {"name": "b", "port": 81, "targetPort": 8081},
        {"name": "d", "port": 83, "protocol": "UDP"},
        {"name": "e", "port": 84, "targetPort": "none"},
    ]
    add(server, "Service", "web", {"selector": {"app": "web"}, "ports": ports})
    for port, expected in ((80, 8080), ("web", 8080), (81, 8081)):
        assert await find(client, Service, "web", port) == ("web-1", expected)
    for port, text in (
        (84, "Pod 'web-1' does not have a named port 'none'"),
        (90, "Service web does not have a service port 90; it has 80, 81, 83, 84"),
        ("none", "Service 'web' does not have a named port 'none'; it has web, b, d, e"),
        ("d", "UDP protocol is not supported for d"),
    ):
        with pytest.raises(PortForwardError, match=f"^here: {text}"):
            await find(client, Service, "web", port)


async def test_a_headless_service_has_the_ports_of_its_pods(server: APIServer, client: Client) -> None:
    ports = [{"port": 80, "targetPort": 8080}]
    add(server, "Service", "web", {"selector": {"app": "web"}, "clusterIP": "None", "ports": ports})
    assert await find(client, Service, "web", 80) == ("web-1", 80)


async def test_a_service_without_pods_is_an_error(server: APIServer, client: Client) -> None:
    add(server, "Service", "bare", {"ports": [{"port": 80}]})
    with pytest.raises(PortForwardError, match=r"Service 'bare' .* no selector"):
        await find(client, Service, "bare", 80)
    add(server, "Service", "empty", {"selector": {"app": "none"}, "ports": [{"port": 80}]})
    problem = "no pod in namespace default matches the selector app=none of Service 'empty'$"
    with pytest.raises(PortForwardError, match=problem):
        await find(client, Service, "empty", 80)
    add(server, "Service", "pending", {"selector": {"pod": "web-2"}, "ports": [{"port": 80}]})
    with pytest.raises(PortForwardError, match="Current status=Pending"):
        await find(client, Service, "pending", 80)


async def test_the_selector_of_a_workload_has_expressions(server: APIServer, client: Client) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    expressions = [{"key": "app", "operator": "Exists"}, {"key": "pod", "operator": "NotIn", "values": ["web-0"]}]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}
    add(server, "Deployment", "web", {"selector": selector, "template": template})
    assert await find(client, Deployment, "web", "http") == ("web-1", 8080)


def described(name: str, **differences: Any) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    statuses = [{"restartCount": differences.pop("restarts", 0)}]
    if "ready_since" in differences:
        ready["lastTransitionTime"] = differences.pop("ready_since")
    status = {"phase": "Running", "conditions": [ready], "containerStatuses": statuses}
    if differences.pop("is_ready", True) is False:
        status["conditions"] = [{**ready, "status": "False"}]
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", **differences}
    return {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}


def test_what_counts_more_comes_first() -> None:
    pods = [
        described("unready", is_ready=False),
        described("leaving", deletionTimestamp="2026-01-01T00:00:00Z"),
        described("leaving-later", deletionTimestamp="2026-01-02T00:00:00Z"),
        described("young", ready_since="2026-01-02T00:00:00Z"),
        described("crashed", restarts=3),
        described("good"),
    ]
    ordered = [pod["metadata"]["name"] for pod in sorted(pods, key=_rank)]
    assert ordered == ["unready", "leaving", "leaving-later", "young", "crashed", "good"]
