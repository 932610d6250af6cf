"""Informers with the embedded API server, in virtual time and without sockets."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import Recorder
from trioformer import (
    Client,
    ForbiddenError,
    NotFoundError,
    ObjectMeta,
    ReflectorOptions,
    SharedInformerFactory,
)
from trioformer.models import ResourceInfo
from trioformer.models.core_v1 import ConfigMap, Container, Pod, PodSpec
from trioformer.testing import APIServer


def pod(name: str, *, namespace: str = "default", node: str | None = None, **labels: str) -> Pod:
    container = Container(name="main", image="busybox")
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=PodSpec(containers=(container,), node_name=node),
    )


@attrs.define(eq=False)
class Steps(trio.abc.Instrument):
    """Counts how often a task was run until it waited again."""

    count: int = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


def names(seen: list[str]) -> list[str]:
    """Return the notifications of a recorder without the resourceVersions."""
    return [
        word.partition("@")[0] + ("*" if word.endswith("*") else "") + ("?" if word.endswith("?") else "")
        for word in seen
    ]


async def test_ten_minutes_of_resync_are_an_update_a_minute_and_few_steps_of_tasks(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """One update of each object per minute, none for a handler without resync, while watches end and resume."""
    for name in "abc":
        api_server.create(pod(name))
    factory = SharedInformerFactory(client, resync_period=60)
    resynced, quiet = Recorder(), Recorder()
    factory.informer(Pod).add_event_handler(resynced)
    factory.informer(Pod).add_event_handler(quiet, resync_period=0)
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    await nursery.start(factory.run)
    await trio.sleep(10 * 60 + 1)
    trio.lowlevel.remove_instrument(steps)
    assert steps.count < 400  # less than a look a second
    assert names(resynced.seen) == ["+a*", "+b*", "+c*"] + ["a", "b", "c"] * 10
    assert names(quiet.seen) == ["+a*", "+b*", "+c*"]


async def test_a_quiet_day_needs_one_list(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    factory = SharedInformerFactory(client)
    await nursery.start(factory.run)
    informer = factory.informer(Pod)
    await informer.wait_until_synced()
    await trio.sleep(24 * 3_600)
    statistics = informer.statistics().reflector
    assert statistics.lists == 1
    assert 144 <= statistics.watches <= 290
    api_server.create(pod("late"))
    await trio.sleep(1)
    assert "default/late" in informer.lister


async def test_it_relists_after_history_is_compacted(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for name in ("before", "gone", "kept"):
        api_server.create(pod(name))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(factory.run)
    await trio.sleep(40)
    api_server.disconnect_watches()
    api_server.delete(Pod, "gone")
    api_server.create(pod("after"))
    api_server.compact()
    await trio.sleep(60)
    assert names(recorder.seen) == ["+before*", "+gone*", "+kept*", "-gone?", "+after"]
    assert {each.name: each.resource_version for each in informer.lister} == {
        each.name: each.resource_version for each in api_server.list(Pod)
    }
    assert informer.statistics().reflector.lists == 2


async def test_a_kind_that_cannot_sync_does_not_delay_a_later_request(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.fail_next(10_000, resource="pods", status=403)
    factory = SharedInformerFactory(
        client, options=ReflectorOptions(retry_forever=True, watch_error_handler=lambda error: None)
    )
    factory.informer(Pod)
    nursery.start_soon(factory.run)
    await trio.sleep(1)
    with trio.fail_after(10):
        await factory.informer(ConfigMap).wait_until_synced()
    assert not factory.has_synced


async def test_a_kind_unknown_to_the_server_ends_the_factory_with_its_name(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    class Widget(Pod):
        __resource__ = ResourceInfo(group="apps", version="v1", kind="Widget", plural="widgets", namespaced=True)

    factory = SharedInformerFactory(client)
    factory.informer(Pod)
    factory.informer(Widget)
    with pytest.RaisesGroup(pytest.RaisesGroup(NotFoundError)) as caught:
        await factory.run()
    leaf = caught.value.exceptions[0].exceptions[0]  # type: ignore[union-attr]  # a group in a group
    assert leaf.__notes__[1:] == ["informer of Widget: only permanent errors for 30 s"]
    assert trio.current_time() == pytest.approx(30, abs=0.01)


async def test_a_lost_permission_does_not_end_a_synced_informer(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    errors: list[Exception] = []
    factory = SharedInformerFactory(client, options=ReflectorOptions(watch_error_handler=errors.append, grace_period=0))
    informer = factory.informer(Pod)
    await nursery.start(factory.run)
    await trio.sleep(60)
    api_server.fail_next(6, status=403)
    api_server.disconnect_watches()
    await trio.sleep(200)
    assert all(isinstance(error, ForbiddenError) for error in errors)
    assert len(errors) == 6
    api_server.create(pod("again"))
    await trio.sleep(60)
    assert "default/again" in informer.lister


async def test_a_factory_runs_once(
    autojump_clock: trio.testing.MockClock, client: Client, nursery: trio.Nursery
) -> None:
    factory = SharedInformerFactory(client)
    await nursery.start(factory.run)
    with pytest.raises(RuntimeError, match="a factory can run only once"):
        await factory.run()


async def test_a_list_of_many_pages_is_complete(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for number in range(1_203):
        api_server.create(pod(f"p{number:04}"))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    await nursery.start(factory.run)
    assert len(informer.lister) == 1_203


async def test_managed_fields_can_be_dropped_from_lists_and_watches(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    managed = [
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {}},
        }
    ]
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "managedFields": managed}, "spec": {}}
    api_server.create(document)
    factory = SharedInformerFactory(client, drop_managed_fields=True)
    informer = factory.informer(Pod)
    await nursery.start(factory.run)
    api_server.create(document | {"metadata": {"name": "b", "managedFields": managed}})
    await trio.sleep(1)
    assert len(informer.lister) == 2
    assert all(each.metadata.managed_fields == () for each in informer.lister)
    whole = await client.api(Pod).list()
    assert all(each.metadata.managed_fields for each in whole), "the server still has them"
