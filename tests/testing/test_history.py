"""``expect`` and ``expect_absent``: waiting for objects in virtual time, with their history when they fail."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.support.raw_requests import config_map, pod
from trioformer.client import Client
from trioformer.errors import NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Node, Secret
from trioformer.testing import APIServer


async def failure_of(server: APIServer, kind: type[ConfigMap | Secret], name: str) -> str:
    with pytest.raises(AssertionError) as caught:
        await server.expect(kind, name, lambda _: False, within=5)
    return str(caught.value)


async def test_an_object_is_returned_when_it_meets_the_condition(
    api_server: APIServer, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    async def change() -> None:
        for number in range(3):
            await trio.sleep(10)
            if number:
                api_server.patch(ConfigMap, "a", {"data": {"number": str(number)}})
            else:
                api_server.create(config_map("a"))

    nursery.start_soon(change)
    before = trio.current_time()
    assert (await api_server.expect(ConfigMap, "a")).name == "a"
    assert trio.current_time() - before == 10
    found = await api_server.expect(ConfigMap, "a", lambda one: one.data.get("number") == "2")
    assert found.data["number"] == "2"
    assert trio.current_time() - before == 30
    assert await api_server.expect(ConfigMap, "a", within=0) == found


async def test_an_object_may_be_gone_already_or_later(
    api_server: APIServer, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    await api_server.expect_absent(ConfigMap, "a")
    api_server.create(config_map("a"))

    async def remove() -> None:
        await trio.sleep(3)
        api_server.delete(ConfigMap, "a")

    nursery.start_soon(remove)
    before = trio.current_time()
    await api_server.expect_absent("configmaps", "a")
    assert trio.current_time() - before == 3


async def test_an_object_that_stays_is_an_error_with_its_fields(
    api_server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    api_server.create(pod("web"))
    with pytest.raises(AssertionError, match="Pod default/web still existed after 5 s") as caught:
        await api_server.expect_absent("pods", "web", within=5)
    assert "ADDED at resourceVersion" in str(caught.value)


async def test_a_failure_shows_what_each_write_has_changed(
    api_server: APIServer, k8s_client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    config_maps = k8s_client.api(ConfigMap, "default")
    created = ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1", "y": "2"})
    await config_maps.create(created, field_manager="first")
    await config_maps.patch("a", {"data": {"x": "3", "y": None, "z": "9" * 500}}, field_manager="second")
    before = trio.current_time()
    text = await failure_of(api_server, ConfigMap, "a")
    assert trio.current_time() - before == 5
    first, _, second = text.partition("MODIFIED")
    assert "by first" in first
    assert "data.x: '1'" in first
    assert "by second" in second
    assert "data.x: '1' -> '3'" in second
    assert "data.y was removed, it was '2'" in second
    assert "9" * 100 not in second
    assert "managedFields" not in text


@pytest.mark.parametrize("tracks", [True, False])
async def test_a_failure_names_the_managers_of_objects_that_have_none(
    autojump_clock: trio.testing.MockClock, *, tracks: bool
) -> None:
    server = APIServer(managed_fields=tracks)
    server.create(config_map("a"))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client(field_manager="operator") as client:
            await client.api(ConfigMap, "default").patch("a", {"data": {"x": "1"}})
        server.patch(ConfigMap, "a", {"data": {"x": "2"}})
        text = await failure_of(server, ConfigMap, "a")
        nursery.cancel_scope.cancel()
    states = [line for line in text.splitlines() if "at resourceVersion" in line]
    assert [line.partition(" by ")[2] for line in states] == ["", "operator", "APIServer"]


async def test_a_failure_never_shows_a_secret(api_server: APIServer, autojump_clock: trio.testing.MockClock) -> None:
    api_server.create(Secret(metadata=ObjectMeta(name="a", labels={"app": "shop"}), data={"password": b"hunter2"}))
    api_server.patch(Secret, "a", {"data": {"password": "aHVudGVyMw==", "other": "aHVudGVyMw=="}})
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"password":"aHVudGVyMw=="}}'}
    api_server.patch(Secret, "a", {"metadata": {"annotations": applied}})
    text = await failure_of(api_server, Secret, "a")
    assert "data.password" in text
    assert "app: 'shop'" in text
    assert "aHVudGVy" not in text


async def test_a_failure_is_short_and_knows_compacted_and_absent_objects(
    api_server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    assert "it has never existed" in await failure_of(api_server, ConfigMap, "a")
    api_server.create(config_map("a"))
    for number in range(100):
        api_server.patch(ConfigMap, "a", {"data": {"number": str(number)}})
    text = await failure_of(api_server, ConfigMap, "a")
    assert len(text.splitlines()) < 60
    assert "'98' -> '99'" in text
    api_server.compact()
    assert "data.number: '99'" in await failure_of(api_server, ConfigMap, "a")
    api_server.patch(ConfigMap, "a", {"data": {str(number): "x" for number in range(100)}})
    assert "more fields" in await failure_of(api_server, ConfigMap, "a")


async def test_a_wait_can_be_cancelled_and_a_condition_may_raise(
    api_server: APIServer, autojump_clock: trio.testing.MockClock
) -> None:
    with trio.move_on_after(7) as scope:
        await api_server.expect(Node, "a")
    assert scope.cancelled_caught
    api_server.create(config_map("a"))
    with pytest.raises(KeyError) as caught:
        await api_server.expect(ConfigMap, "a", lambda one: one.data["absent"])
    assert "ConfigMap default/a at resourceVersion" in caught.value.__notes__[0]
    with pytest.raises(NotFoundError):
        await api_server.expect_absent("nonsenses", "a")


async def test_a_rollout_is_awaited_in_virtual_time(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer(controllers=True)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        server.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
        await server.expect(Deployment, "web", lambda found: found.status.ready_replicas == 3)
        nursery.cancel_scope.cancel()


async def test_what_is_met_already_takes_one_checkpoint_and_no_time(api_server: APIServer) -> None:
    api_server.create(config_map("a"))
    with trio.testing.assert_checkpoints():
        await api_server.expect(ConfigMap, "a", within=0)
    with trio.testing.assert_checkpoints():
        await api_server.expect_absent(ConfigMap, "b", within=0)
