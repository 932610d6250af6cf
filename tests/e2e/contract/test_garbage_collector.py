"""Owner references and propagation policies, in an embedded and in a real cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
import trio

from tests.e2e.workloads import make_namespace
from trioformer.client import Api, Client
from trioformer.errors import NotFoundError
from trioformer.models import KubernetesObject, ObjectMeta, OwnerReference, from_dict
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.models.rbac_v1 import ClusterRole
from trioformer.watchtools import deleted, wait_for

T = TypeVar("T", bound=KubernetesObject)
HOLD = "example.com/hold"


def reference(owner: KubernetesObject, *, blocks: bool = False, name: str | None = None) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=name or owner.name,
        uid=owner.uid,
        block_owner_deletion=blocks or None,
    )


async def make(api: Api[ConfigMap], name: str, *owners: OwnerReference, held: bool = False) -> ConfigMap:
    finalizers = (HOLD,) if held else ()
    metadata = ObjectMeta(name=name, owner_references=owners, finalizers=finalizers)
    return await api.create(ConfigMap(metadata=metadata))


async def get(api: Api[ConfigMap], name: str) -> ConfigMap | None:
    try:
        return await api.get(name)
    except NotFoundError:
        return None


async def wait_until(condition: Callable[[ConfigMap], bool], api: Api[ConfigMap], name: str) -> None:
    with trio.fail_after(30):
        await wait_for(api, name, condition)


async def wait_until_gone(api: Api[T], name: str) -> None:
    with trio.fail_after(60):
        await wait_for(api, name, deleted())


def is_deleted(found: ConfigMap) -> bool:
    return found.metadata.deletion_timestamp is not None


async def settle(api: Api[ConfigMap]) -> None:
    """Wait until the collector has seen every object of now: it deletes one that has an owner of the past."""
    gone = OwnerReference(api_version="v1", kind="ConfigMap", name="never", uid="0b0e7a1c-0000-4000-8000-000000000000")
    await make(api, "settle", gone)
    await wait_until_gone(api, "settle")


@pytest.fixture
async def api(cluster_client: Client) -> Api[ConfigMap]:
    return cluster_client.api(ConfigMap, await make_namespace(cluster_client, "garbage"))


async def test_dependents_are_deleted_after_their_owner(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    child = await make(api, "child", reference(owner))
    await make(api, "grandchild", reference(child))
    await settle(api)
    await api.delete("owner", propagation_policy="Background")
    assert await get(api, "owner") is None
    await wait_until_gone(api, "child")
    await wait_until_gone(api, "grandchild")


async def test_an_object_whose_owner_never_existed_is_deleted(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    await make(api, "of-another-name", reference(owner, name="another"))
    await wait_until_gone(api, "of-another-name")
    assert await get(api, "owner") is not None


async def test_an_owner_in_another_namespace_does_not_exist(cluster_client: Client, api: Api[ConfigMap]) -> None:
    other = cluster_client.api(ConfigMap, await make_namespace(cluster_client, "garbage"))
    await make(api, "child", reference(await make(other, "owner")))
    await wait_until_gone(api, "child")
    assert await get(other, "owner") is not None


async def test_an_object_with_another_owner_only_loses_the_reference(api: Api[ConfigMap]) -> None:
    first, second = await make(api, "first"), await make(api, "second")
    await make(api, "child", reference(first), reference(second))
    await settle(api)
    await api.delete("first")
    await wait_until(lambda found: len(found.metadata.owner_references) == 1, api, "child")
    await settle(api)
    assert [owner.name for owner in (await api.get("child")).metadata.owner_references] == ["second"]
    await api.delete("second")
    await wait_until_gone(api, "child")


async def test_orphaned_dependents_stay_and_forget_their_owner(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    await make(api, "child", reference(owner, blocks=True))
    await settle(api)
    left = await api.delete("owner", propagation_policy="Orphan")
    assert left is not None
    assert (left.metadata.finalizers, left.metadata.deletion_grace_period_seconds) == (("orphan",), 0)
    await wait_until_gone(api, "owner")
    await settle(api)
    assert (await api.get("child")).metadata.owner_references == ()


async def test_an_owner_waits_in_the_foreground_for_those_that_block_it(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    await make(api, "blocking", reference(owner, blocks=True), held=True)
    await make(api, "other", reference(owner), held=True)
    await settle(api)
    left = await api.delete("owner", propagation_policy="Foreground")
    assert left is not None
    assert left.metadata.finalizers == ("foregroundDeletion",)
    await wait_until(is_deleted, api, "blocking")
    await wait_until(is_deleted, api, "other")
    await settle(api)
    assert is_deleted(await api.get("owner"))
    await api.patch("blocking", {"metadata": {"finalizers": None}})
    await wait_until_gone(api, "owner")
    assert await get(api, "other") is not None
    await api.patch("other", {"metadata": {"finalizers": None}})


async def test_generations_are_deleted_in_the_foreground_from_the_youngest(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    child = await make(api, "child", reference(owner, blocks=True))
    await make(api, "grandchild", reference(child, blocks=True), held=True)
    await settle(api)
    await api.delete("owner", propagation_policy="Foreground")
    await wait_until(is_deleted, api, "grandchild")
    await settle(api)
    for name in ("owner", "child"):
        found = await api.get(name)
        assert found.metadata.finalizers == ("foregroundDeletion",)
    await api.patch("grandchild", {"metadata": {"finalizers": None}})
    for name in ("grandchild", "child", "owner"):
        await wait_until_gone(api, name)


async def test_a_foreground_deletion_ends_when_it_is_asked_for_in_the_background(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    await make(api, "child", reference(owner, blocks=True), held=True)
    await settle(api)
    await api.delete("owner", propagation_policy="Foreground")
    await wait_until(is_deleted, api, "child")
    assert await api.delete("owner", propagation_policy="Background") is None
    assert await get(api, "owner") is None
    await api.patch("child", {"metadata": {"finalizers": None}})


async def test_a_reference_that_blocks_no_more_lets_the_owner_go(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    await make(api, "child", reference(owner, blocks=True), held=True)
    await settle(api)
    await api.delete("owner", propagation_policy="Foreground")
    await wait_until(is_deleted, api, "child")
    await api.patch("child", {"metadata": {"ownerReferences": None}})
    await wait_until_gone(api, "owner")
    await api.patch("child", {"metadata": {"finalizers": None}})


async def test_two_that_own_each_other_are_deleted_in_the_foreground(api: Api[ConfigMap]) -> None:
    one = await make(api, "one")
    two = await make(api, "two", reference(one, blocks=True))
    back = {"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two.uid, "blockOwnerDeletion": True}
    await api.patch("one", {"metadata": {"ownerReferences": [back]}})
    await settle(api)
    await api.delete("one", propagation_policy="Foreground")
    await wait_until_gone(api, "one")
    await wait_until_gone(api, "two")


async def test_an_owner_of_an_unknown_kind_keeps_its_dependents(api: Api[ConfigMap]) -> None:
    unknown = OwnerReference(api_version="no.example.com/v1", kind="Unknown", name="x", uid="not-known")
    await make(api, "child", unknown)
    await settle(api)
    assert await get(api, "child") is not None


async def test_a_job_is_orphaned_unless_a_policy_is_given(cluster_client: Client, api: Api[ConfigMap]) -> None:
    assert api.namespace is not None
    jobs = cluster_client.api(Job, api.namespace)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    job = from_dict(Job, {"metadata": {"name": "j"}, "spec": {"suspend": True, "template": template}})
    await make(api, "child", reference(await jobs.create(job)))
    await settle(api)
    left = await jobs.delete("j")
    assert left is not None
    assert left.metadata.finalizers == ("orphan",)
    await wait_until(lambda found: not found.metadata.owner_references, api, "child")


async def test_dependents_of_a_cluster_wide_object_are_deleted(cluster_client: Client, api: Api[ConfigMap]) -> None:
    roles = cluster_client.api(ClusterRole)
    owner = await roles.create(ClusterRole(metadata=ObjectMeta(generate_name="garbage-")))
    await make(api, "child", reference(owner))
    await settle(api)
    assert await get(api, "child") is not None
    await roles.delete(owner)
    await wait_until_gone(api, "child")


async def test_a_collection_is_deleted_with_a_policy(api: Api[ConfigMap]) -> None:
    owner = await make(api, "owner")
    await make(api, "child", reference(owner))
    await settle(api)
    await api.delete_collection(field_selector="metadata.name=owner", propagation_policy="Orphan")
    await wait_until_gone(api, "owner")
    assert (await api.get("child")).metadata.owner_references == ()


async def test_a_namespace_is_deleted_with_what_owns_each_other(cluster_client: Client, api: Api[ConfigMap]) -> None:
    assert api.namespace is not None
    owner = await make(api, "owner")
    await make(api, "child", reference(owner, blocks=True))
    await settle(api)
    namespaces = cluster_client.api(Namespace)
    await namespaces.delete(api.namespace)
    await wait_until_gone(namespaces, api.namespace)
