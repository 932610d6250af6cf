"""Deleting collections, on an embedded and on a real server."""

from __future__ import annotations

import pytest

from trioformer.client import Client
from trioformer.errors import BadRequestError, ConflictError, InvalidError, MethodNotAllowedError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace


async def make(client: Client, namespace: str, count: int) -> list[ConfigMap]:
    api = client.api(ConfigMap, namespace)
    return [
        await api.create(ConfigMap(metadata=ObjectMeta(name=f"c-{i}", labels={"odd": "yes" if i % 2 else "no"})))
        for i in range(count)
    ]


async def test_the_selected_objects_of_a_namespace_are_deleted(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    made = await make(server_client, namespace, 4)
    deleted = await api.delete_collection(label_selector="odd=yes")
    assert [(one.name, one.uid, one.resource_version) for one in deleted] == [
        (one.name, one.uid, one.resource_version) for one in made if one.name in ("c-1", "c-3")
    ]
    assert [one.name for one in await api.list()] == ["c-0", "c-2"]
    assert [one.name for one in await api.delete_collection(field_selector="metadata.name=c-2")] == ["c-2"]
    assert [one.name for one in await api.delete_collection(everything=True)] == ["c-0"]
    assert list(await api.delete_collection(everything=True)) == []


async def test_pages_delete_all_objects(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await make(server_client, namespace, 7)
    deleted = await api.delete_collection(everything=True, page_size=3)
    assert [one.name for one in deleted] == [f"c-{i}" for i in range(7)]
    assert deleted.pages == 3
    assert list(await api.list()) == []


async def test_a_dry_run_deletes_nothing(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await make(server_client, namespace, 3)
    assert len(await api.delete_collection(everything=True, dry_run=True, page_size=2)) == 3
    assert len(await api.list()) == 3


async def test_an_object_with_a_finalizer_stays_and_is_listed_again(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await api.create(ConfigMap(metadata=ObjectMeta(name="held", finalizers=("example.com/hold",))))
    (first,) = await api.delete_collection(everything=True)
    assert first.metadata.deletion_timestamp is None
    (second,) = await api.delete_collection(everything=True)
    assert second.metadata.deletion_timestamp is not None
    await api.patch("held", {"metadata": {"finalizers": None}})
    assert list(await api.list()) == []


async def test_a_collection_that_cannot_be_deleted_is_an_error(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    await make(server_client, namespace, 1)
    with pytest.raises(MethodNotAllowedError):
        await server_client.api(Namespace).delete_collection(label_selector="a=b")
    with pytest.raises(BadRequestError, match="not a known field selector"):
        await api.delete_collection(field_selector="data.x=1")
    with pytest.raises(InvalidError, match="propagationPolicy: Unsupported value"):
        await api.delete_collection(everything=True, propagation_policy="Nope")  # type: ignore[arg-type]  # the mistake
    assert len(await api.list()) == 1


async def test_options_in_the_body_and_in_the_query_are_checked(server_client: Client, namespace: str) -> None:
    await make(server_client, namespace, 1)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for body in (
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {"dryRun": ["Some"]},
    ):
        with pytest.raises(InvalidError, match=r"DeleteOptions\.meta\.k8s\.io"):
            await server_client.request("DELETE", f"{path}/c-0", body=body)
    with pytest.raises(InvalidError, match="propagationPolicy: Unsupported value"):
        await server_client.request("DELETE", path, params={"propagationPolicy": "Nope"})
    with pytest.raises(InvalidError, match="dryRun: Unsupported value"):
        await server_client.request("DELETE", path, params={"dryRun": "Some"})
    with pytest.raises(ConflictError, match=r'ConfigMap "c-0": the UID in the precondition'):
        await server_client.request("DELETE", path, body={"preconditions": {"uid": "another"}})
    assert (await server_client.request("GET", path)).code == 200
