"""The objects of a new cluster."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from trioformer.errors import NotFoundError
from trioformer.models.core_v1 import Service
from trioformer.models.networking_v1 import IPAddress, ServiceCIDR
from trioformer.models.rbac_v1 import ClusterRole
from trioformer.testing import APIServer


def test_a_new_cluster_has_the_service_of_its_api_server() -> None:
    server = APIServer()
    service = server.get(Service, "kubernetes")
    assert service.spec.cluster_ip == "10.0.0.1"
    endpoints: dict[str, object] = server.get("endpointslices", "kubernetes")
    assert endpoints["ports"] == [{"name": "https", "port": service.spec.ports[0].target_port, "protocol": "TCP"}]
    assert {one.name for one in server.list(ClusterRole)} >= {"admin", "cluster-admin", "view"}


def test_reading_them_is_no_write() -> None:
    server = APIServer(first_revision=100)
    before = server.statistics().revision
    assert server.get(Service, "kubernetes").resource_version == "100"
    assert server.statistics().revision == before


def test_they_are_changed_and_deleted_like_other_objects() -> None:
    server = APIServer()
    server.patch(Service, "kubernetes", {"metadata": {"labels": {"a": "b"}}})
    assert server.get(Service, "kubernetes").metadata.labels["component"] == "apiserver"
    snapshot = server.snapshot()
    server.delete(Service, "kubernetes")
    assert server.list(Service) == []
    server.restore(snapshot)
    assert server.get(Service, "kubernetes").metadata.labels["a"] == "b"


def test_a_snapshot_from_before_their_first_use_has_them() -> None:
    server = APIServer()
    snapshot = server.snapshot()
    server.delete(Service, "kubernetes")
    server.restore(snapshot)
    assert server.get(Service, "kubernetes").namespace == "default"


def test_other_services_have_other_addresses() -> None:
    server = APIServer()
    spec = {"ports": [{"port": 80}]}
    for i in range(5):
        server.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{i}"}, "spec": spec})
    addresses = [one.spec.cluster_ip for one in server.list(Service)]
    assert len(set(addresses)) == len(addresses) == 6
    (network,) = server.get(ServiceCIDR, "kubernetes").spec.cidrs
    assert all(ip_address(each) in ip_network(network) for each in addresses)
    assert server.get(IPAddress, "10.0.0.1").spec.parent_ref.name == "kubernetes"


def test_a_server_without_defaults_has_none_of_them() -> None:
    server = APIServer(defaults=False)
    assert server.list("clusterroles") == []
    with pytest.raises(NotFoundError):
        server.get(Service, "kubernetes")
