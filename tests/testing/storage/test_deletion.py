"""Deleting objects of the embedded API server: preconditions, finalizers, collections, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.raw_requests import PODS, config_map, failure_of, merge_patch, pod, running
from trioformer.testing import APIServer

# --- deleting -------------------------------------------------------------------------------------------------------


async def test_a_deleted_pod_is_removed_immediately() -> None:
    async with running(APIServer()) as http:
        await http.post(PODS, json=pod())
        response = await http.request("DELETE", f"{PODS}/web-1", json={"gracePeriodSeconds": 30})
        metadata = response.json()["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == 0
        assert metadata["deletionTimestamp"]
        assert (await http.get(f"{PODS}/web-1")).status_code == 404


async def test_finalizers_hold_an_object_until_the_last_is_removed() -> None:
    server = APIServer()
    async with running(server) as http:
        await http.post(PODS, json={**pod(), "metadata": {"name": "a", "finalizers": ["x.com/1", "x.com/2"]}})
        held = (await http.delete(f"{PODS}/a")).json()["metadata"]
        assert held["deletionTimestamp"]
        assert held["deletionGracePeriodSeconds"] == 0
        assert held["generation"] == 2
        again = (await http.delete(f"{PODS}/a")).json()["metadata"]
        assert again == held
        more = await http.patch(f"{PODS}/a", **merge_patch({"metadata": {"finalizers": ["x.com/1", "x.com/3"]}}))
        assert failure_of(more) == (
            422,
            "Invalid",
            (
                'Pod "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
                'being deleted, found new finalizers []string{"x.com/3"}'
            ),
        )
        fewer = await http.patch(f"{PODS}/a", **merge_patch({"metadata": {"finalizers": ["x.com/2"]}}))
        assert fewer.json()["metadata"]["finalizers"] == ["x.com/2"]
        last = await http.patch(f"{PODS}/a", **merge_patch({"metadata": {"finalizers": None}}))
        # kube-apiserver responds with the object's last revision too.
        assert "finalizers" not in last.json()["metadata"]
        assert last.json()["metadata"]["resourceVersion"] == fewer.json()["metadata"]["resourceVersion"]
        assert (await http.get(f"{PODS}/a")).status_code == 404


@pytest.mark.parametrize(
    ("preconditions", "problem"),
    [
        (
            {"uid": "0"},
            (
                "the UID in the precondition (0) does not match the UID in record ({uid}). "
                "The object might have been deleted and then recreated"
            ),
        ),
        (
            {"resourceVersion": "1"},
            (
                "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({rv}). "
                "The object might have been modified"
            ),
        ),
    ],
)
async def test_a_delete_can_have_preconditions(preconditions: Any, problem: str) -> None:
    async with running(APIServer()) as http:
        metadata = (await http.post(PODS, json=pod())).json()["metadata"]
        response = await http.request("DELETE", f"{PODS}/web-1", json={"preconditions": preconditions})
        problem = problem.format(uid=metadata["uid"], rv=metadata["resourceVersion"])
        assert failure_of(response) == (409, "Conflict", f'Operation cannot be fulfilled on Pod "web-1": {problem}')
        assert response.json()["details"] == {"name": "web-1", "kind": "Pod"}
        options = {"preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}}
        assert (await http.request("DELETE", f"{PODS}/web-1", json=options)).status_code == 200


@pytest.mark.parametrize("body", [b"{nope", b"[]", b'{"preconditions": 5}'])
async def test_invalid_delete_options_are_rejected(body: bytes) -> None:
    async with running(APIServer()) as http:
        await http.post(PODS, json=pod())
        assert failure_of(await http.request("DELETE", f"{PODS}/web-1", content=body))[0] == 400


# --- namespaces -----------------------------------------------------------------------------------------------------


async def test_a_new_server_has_the_system_namespaces() -> None:
    async with running(APIServer()) as http:
        listed = (await http.get("/api/v1/namespaces")).json()["items"]
        assert [one["metadata"]["name"] for one in listed] == [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
        ]
        assert listed[0]["status"] == {"phase": "Active"}
        assert listed[0]["spec"] == {"finalizers": ["kubernetes"]}
        assert listed[0]["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}
        assert failure_of(await http.delete("/api/v1/namespaces/default")) == (
            403,
            "Forbidden",
            'namespaces "default" is forbidden: this namespace may not be deleted',
        )


async def test_a_terminating_namespace_waits_for_finalizers_and_rejects_new_objects() -> None:
    server = APIServer()
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    server.create(config_map("held", namespace="shop", finalizers=["x.com/1"]))
    path = "/api/v1/namespaces/shop"
    async with running(server) as http:
        await http.delete(path)
        assert (await http.get(path)).json()["status"]["phase"] == "Terminating"
        assert (await http.delete(path)).status_code == 200
        response = await http.post(f"{path}/configmaps", json={"metadata": {"name": "new"}})
        assert response.json()["details"] == {
            "name": "new",
            "kind": "configmaps",
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": "namespace shop is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        }
        assert failure_of(response) == (
            403,
            "Forbidden",
            (
                'configmaps "new" is forbidden: '
                "unable to create new content in namespace shop because it is being terminated"
            ),
        )
        await http.patch(f"{path}/configmaps/held", **merge_patch({"metadata": {"finalizers": []}}))
        assert (await http.get(path)).status_code == 404


async def test_a_namespace_waits_for_its_own_finalizers_too() -> None:
    server = APIServer()
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "finalizers": ["x.com/1"]}})
    path = "/api/v1/namespaces/shop"
    async with running(server) as http:
        await http.delete(path)
        assert (await http.get(path)).status_code == 200
        await http.patch(path, **merge_patch({"metadata": {"finalizers": None}}))
        assert (await http.get(path)).status_code == 404
