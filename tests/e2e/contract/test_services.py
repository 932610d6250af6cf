"""The addresses and node ports of Services, on an embedded and on a real server."""

from __future__ import annotations

from typing import Any

from tests.e2e.contract.observed import observe
from trioformer.client import Client

MERGE = "application/merge-patch+json"
TAKEN = "FieldValueInvalid: Invalid value: {}: provided port is already allocated"


def service(name: str, *ports: dict[str, Any], kind: str = "NodePort", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": kind, "ports": [{"name": "a", "port": 80}, *ports], **spec},
    }


async def test_a_node_port_belongs_to_one_service(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    made = (await observe(server_client, "POST", path, service("first")))["object"]["spec"]
    taken = made["ports"][0]["nodePort"]
    more = {"name": "b", "port": 81, "nodePort": taken}
    causes = [f"spec.ports[1].nodePort: {TAKEN.format(taken)}"]
    for params in ({}, {"dryRun": "All"}):
        refused = await observe(server_client, "POST", path, service("second", more), **params)
        assert (refused["code"], refused["causes"]) == (422, causes)
        refused = await observe(server_client, "POST", path, service("second", more | {"protocol": "UDP"}), **params)
        assert (refused["code"], refused["causes"]) == (422, causes)
    await observe(server_client, "POST", path, service("second"))
    refused = await observe(server_client, "PATCH", f"{path}/second", service("second", more), content_type=MERGE)
    assert (refused["code"], refused["causes"]) == (422, causes)
    same = {"spec": {"ports": [{"name": "a", "port": 82, "nodePort": taken}]}}
    assert (await observe(server_client, "PATCH", f"{path}/first", same, content_type=MERGE))["code"] == 200
    await server_client.request("DELETE", f"{path}/first")
    assert (await observe(server_client, "POST", path, service("third", more)))["code"] == 201


async def test_a_node_port_is_in_the_range(server_client: Client, namespace: str) -> None:
    for port in (80, 29_999, 32_768):
        body = service("a", {"name": "b", "port": 81, "nodePort": port})
        refused = await observe(server_client, "POST", f"/api/v1/namespaces/{namespace}/services", body)
        assert refused["code"] == 422
        assert "provided port is not in the valid range" in refused["causes"][0]


async def test_an_address_belongs_to_one_service_and_is_in_the_range(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    made = (await observe(server_client, "POST", path, service("first", kind="ClusterIP")))["object"]["spec"]
    for address, problem in (
        (made["clusterIP"], "provided IP is already allocated"),
        ("10.0.0.1", "provided IP is already allocated"),
        ("10.0.0.0", "the provided "),  # a real server that has just started has other words
        ("192.0.2.1", "the provided "),
    ):
        refused = await observe(server_client, "POST", path, service("b", kind="ClusterIP", clusterIP=address))
        cause = f'spec.clusterIPs: FieldValueInvalid: Invalid value: ["{address}"]: failed to allocate IP {address}: '
        assert (refused["code"], len(refused["causes"])) == (422, 1)
        assert refused["causes"][0].startswith(cause + problem)
    for address in ("10.0.0.250", "None"):
        changed = {"spec": {"clusterIP": address}}
        refused = await observe(server_client, "PATCH", f"{path}/first", changed, content_type=MERGE)
        assert refused["causes"] == [
            f'spec.clusterIPs[0]: FieldValueInvalid: Invalid value: ["{address}"]: may not change once set'
        ]
    await server_client.request("DELETE", f"{path}/first")
    again = service("again", kind="ClusterIP", clusterIP=made["clusterIP"])
    assert (await observe(server_client, "POST", path, again))["code"] == 201
