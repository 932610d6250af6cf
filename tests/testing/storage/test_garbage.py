"""The garbage collector as an option of the embedded server; tests/e2e/contract has its rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trioformer.client import Client
from trioformer.models import ObjectMeta, OwnerReference
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer


@asynccontextmanager
async def running(server: APIServer) -> AsyncIterator[Client]:
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            yield client
        nursery.cancel_scope.cancel()


def owned_by(owner: ConfigMap, name: str, *, blocks: bool = False, **more: Any) -> ConfigMap:
    reference = OwnerReference(
        api_version="v1", kind="ConfigMap", name=owner.name, uid=owner.uid, block_owner_deletion=blocks or None
    )
    return ConfigMap(metadata=ObjectMeta(name=name, owner_references=(reference,), **more))


def names(server: APIServer) -> list[str]:
    return [one.name for one in server.list(ConfigMap)]


def make_owner(server: APIServer) -> ConfigMap:
    return server.create(ConfigMap(metadata=ObjectMeta(name="owner")))


async def test_without_a_collector_an_owner_keeps_the_finalizer_of_its_deletion() -> None:
    server = APIServer()
    server.create(owned_by(make_owner(server), "child", blocks=True))
    async with running(server) as client:
        waiting = await client.api(ConfigMap, "default").delete("owner", propagation_policy="Foreground")
        assert waiting is not None
        assert waiting.metadata.finalizers == ("foregroundDeletion",)
        await wait_all_tasks_blocked()
        assert names(server) == ["child", "owner"]
        server.delete(ConfigMap, "owner")
    assert names(server) == ["child"]


async def test_what_the_direct_api_deletes_is_collected_in_virtual_time(autojump_clock: MockClock) -> None:
    server = APIServer(garbage_collector=True)
    async with running(server):
        server.create(owned_by(make_owner(server), "child"))
        await wait_all_tasks_blocked()
        server.delete(ConfigMap, "owner")
        assert names(server) == ["child"]
        await wait_all_tasks_blocked()
        assert names(server) == []
    assert trio.current_time() == autojump_clock.current_time()


async def test_what_happened_before_the_server_runs_is_collected_when_it_runs() -> None:
    server = APIServer(garbage_collector=True)
    owner = make_owner(server)
    child = server.create(owned_by(owner, "child"))
    server.create(owned_by(child, "grandchild"))
    server.delete(ConfigMap, "owner")
    assert names(server) == ["child", "grandchild"]
    for _ in range(2):  # it may run again
        async with running(server):
            await wait_all_tasks_blocked()
        assert names(server) == []
        server.create(owned_by(owner, "late"))


async def test_history_that_is_compacted_is_read_again() -> None:
    server = APIServer(garbage_collector=True, history_limit=4)
    async with running(server):
        owner = make_owner(server)
        for number in range(50):
            server.create(owned_by(owner, f"child-{number}"))
        await wait_all_tasks_blocked()
        server.delete(ConfigMap, "owner")
        for number in range(50):
            server.create(Pod(metadata=ObjectMeta(name=f"pod-{number}")))
            server.create(ConfigMap(metadata=ObjectMeta(name=f"other-{number}")))
        server.compact()
        await wait_all_tasks_blocked()
        assert names(server) == sorted(f"other-{number}" for number in range(50))


async def test_a_long_chain_and_a_wide_tree_do_not_hold_up_other_tasks() -> None:
    server = APIServer(garbage_collector=True)
    async with running(server):
        owner = make_owner(server)
        last = owner
        for number in range(300):
            last = server.create(owned_by(last, f"chain-{number:03}"))
            server.create(owned_by(owner, f"leaf-{number:03}"))
        await wait_all_tasks_blocked()
        server.delete(ConfigMap, "owner")
        turns = 0
        while names(server):
            await trio.lowlevel.checkpoint()
            turns += 1
        assert 3 <= turns <= 100


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def test_the_dependents_of_a_custom_object_wait_until_its_kind_is_served() -> None:
    server = APIServer(garbage_collector=True)
    async with running(server):
        reference = OwnerReference(api_version="example.com/v1", kind="Widget", name="w", uid="gone")
        server.create(ConfigMap(metadata=ObjectMeta(name="child", owner_references=(reference,))))
        await wait_all_tasks_blocked()
        assert names(server) == ["child"]
        server.create(DEFINITION)
        await wait_all_tasks_blocked()
        assert names(server) == []


async def test_an_object_that_is_replaced_by_one_of_its_name_is_another_owner() -> None:
    server = APIServer(garbage_collector=True)
    async with running(server):
        server.create(owned_by(make_owner(server), "child"))
        server.delete(ConfigMap, "owner")
        make_owner(server)
        await wait_all_tasks_blocked()
        assert names(server) == ["owner"]
