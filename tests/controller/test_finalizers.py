"""Finalizers are added and removed one at a time, and those of other controllers stay."""

from __future__ import annotations

import pytest

from trioformer import Api, Client, ObjectMeta
from trioformer.controller import drop_finalizer, ensure_finalizer
from trioformer.errors import ConflictError, InvalidError, NotFoundError, ServiceUnavailableError
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

OURS, OTHER = "example.com/ours", "example.com/other"


@pytest.fixture
def api(client: Client) -> Api[ConfigMap]:
    return client.api(ConfigMap)


def create(server: APIServer, *finalizers: str) -> ConfigMap:
    server.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "default", "finalizers": finalizers},
        }
    )
    return stored(server)


def stored(server: APIServer) -> ConfigMap:
    return server.get(ConfigMap, "a")


def patches(server: APIServer) -> int:
    return sum(each.verb == "patch" for each in server.requests)


async def test_a_finalizer_is_added_after_those_of_others(api: Api[ConfigMap], api_server: APIServer) -> None:
    changed = await ensure_finalizer(api, create(api_server, OTHER), OURS)
    assert changed == stored(api_server)
    assert changed.metadata.finalizers == (OTHER, OURS)


async def test_a_finalizer_that_is_there_costs_no_request(api: Api[ConfigMap], api_server: APIServer) -> None:
    obj = create(api_server, OURS)
    assert await ensure_finalizer(api, obj, OURS) is obj
    assert await drop_finalizer(api, obj, OTHER) is obj
    assert patches(api_server) == 0


async def test_the_last_finalizer_of_a_deleted_object_lets_it_go(api: Api[ConfigMap], api_server: APIServer) -> None:
    create(api_server, OURS)
    api_server.delete(ConfigMap, "a")
    last = await drop_finalizer(api, stored(api_server), OURS)
    assert last is not None
    assert api_server.list(ConfigMap) == []


async def test_finalizers_that_the_cache_does_not_show_yet_stay(api: Api[ConfigMap], api_server: APIServer) -> None:
    stale = create(api_server, OURS)
    api_server.patch(ConfigMap, "a", {"metadata": {"finalizers": [OURS, OTHER]}})
    await drop_finalizer(api, stale, OURS)
    assert stored(api_server).metadata.finalizers == (OTHER,)
    await ensure_finalizer(api, stored(api_server), OURS)
    older = stored(api_server)
    api_server.patch(ConfigMap, "a", {"metadata": {"finalizers": ["example.com/third"]}})
    await ensure_finalizer(api, older, OURS)  # that state has it: nothing to do
    assert stored(api_server).metadata.finalizers == ("example.com/third",)


async def test_a_finalizer_that_somebody_else_has_set_meanwhile_is_not_set_twice(
    api: Api[ConfigMap], api_server: APIServer
) -> None:
    stale = create(api_server)
    now = api_server.patch(ConfigMap, "a", {"metadata": {"finalizers": [OURS]}})
    assert await ensure_finalizer(api, stale, OURS) == now
    assert stored(api_server).metadata.finalizers == (OURS,)


async def test_after_four_conflicts_the_error_is_raised(api: Api[ConfigMap], api_server: APIServer) -> None:
    obj = create(api_server)
    api_server.fail_next(4, verb="patch", resource="configmaps", status=409)
    with pytest.raises(ConflictError):
        await ensure_finalizer(api, obj, OURS)
    assert patches(api_server) == 4
    api_server.fail_next(3, verb="patch", resource="configmaps", status=409)
    await ensure_finalizer(api, obj, OURS)
    assert stored(api_server).metadata.finalizers == (OURS,)


async def test_an_object_that_is_gone_or_replaced_has_no_finalizer_to_drop(
    api: Api[ConfigMap], api_server: APIServer
) -> None:
    with_it = create(api_server, OURS)
    api_server.patch(ConfigMap, "a", {"metadata": {"finalizers": None}})
    without = stored(api_server)
    api_server.delete(ConfigMap, "a")
    assert await drop_finalizer(api, with_it, OURS) is None
    with pytest.raises(NotFoundError):
        await ensure_finalizer(api, without, OURS)
    create(api_server, OURS)
    assert await drop_finalizer(api, with_it, OURS) is None
    assert stored(api_server).metadata.finalizers == (OURS,)
    with pytest.raises(ConflictError, match="no longer exists"):
        await ensure_finalizer(api, without, OTHER)


async def test_a_proxy_that_finds_nothing_does_not_count_as_a_missing_object(
    api: Api[ConfigMap], api_server: APIServer
) -> None:
    obj = create(api_server, OURS)
    api_server.fail_next(1, verb="patch", resource="configmaps", status=503)
    with pytest.raises(ServiceUnavailableError):
        await drop_finalizer(api, obj, OURS)
    assert stored(api_server).metadata.finalizers == (OURS,)


async def test_an_object_that_is_being_deleted_gets_no_finalizer(api: Api[ConfigMap], api_server: APIServer) -> None:
    before = create(api_server, OTHER)
    api_server.delete(ConfigMap, "a")
    with pytest.raises(ValueError, match="being deleted"):
        await ensure_finalizer(api, stored(api_server), OURS)
    with pytest.raises(InvalidError):  # after a conflict, by the server
        await ensure_finalizer(api, before, OURS)


async def test_an_object_that_the_program_has_made_is_read_first(api: Api[ConfigMap], api_server: APIServer) -> None:
    made = ConfigMap(metadata=ObjectMeta(name="a", namespace="default", finalizers=(OURS,)))
    assert await drop_finalizer(api, made, OURS) is None
    with pytest.raises(NotFoundError):
        await ensure_finalizer(api, made, OURS)
    create(api_server, OTHER)
    await ensure_finalizer(api, made, OURS)
    assert stored(api_server).metadata.finalizers == (OTHER, OURS)
    await ensure_finalizer(api, ConfigMap(metadata=ObjectMeta(name="a", namespace="default")), OURS)
    assert patches(api_server) == 1
    left = await drop_finalizer(api, ConfigMap(metadata=ObjectMeta(name="a", namespace="default")), OURS)
    assert left == stored(api_server)
    assert left.metadata.finalizers == (OTHER,)
    replaced = ConfigMap(metadata=ObjectMeta(name="a", namespace="default", uid="earlier"))
    with pytest.raises(ConflictError, match="no longer exists"):
        await ensure_finalizer(api, replaced, OURS)
    assert await drop_finalizer(api, replaced, OTHER) is None
    assert stored(api_server).metadata.finalizers == (OTHER,)
