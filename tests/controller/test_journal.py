"""The journal: each call to reconcile has its causes and its writes."""

from __future__ import annotations

from contextlib import suppress

import attrs
import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from trioformer import Client, SharedInformerFactory
from trioformer.cache import Notification
from trioformer.controller import Controller, Request, RequeueAfter
from trioformer.controller._journal import JournalEntry
from trioformer.controller._results import Reconcile
from trioformer.errors import ConflictError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

WEB = Request("default", "web")


def config(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def not_labelled(event: Notification[ConfigMap]) -> bool:
    obj = getattr(event, "new", None) or getattr(event, "object", None)
    return obj is not None and not obj.metadata.labels


@attrs.frozen
class Setup:
    server: APIServer
    client: Client
    nursery: trio.Nursery

    async def run(self, reconcile: Reconcile[Request]) -> Controller:
        factory = SharedInformerFactory(self.client)
        controller = Controller("configs", reconcile, journal=True)
        controller.watch(factory.informer(ConfigMap), predicates=[not_labelled])
        self.nursery.start_soon(factory.run)
        await self.nursery.start(controller.run)
        return controller


@pytest.fixture
async def setup(api_server: APIServer, client: Client, nursery: trio.Nursery) -> Setup:
    return Setup(api_server, client, nursery)


async def test_a_write_is_the_cause_of_the_next_call(autojump_clock: MockClock, setup: Setup) -> None:
    async def reconcile(request: Request) -> None:
        api = setup.client.api(ConfigMap)
        found = await api.get(request)
        if "done" not in found.data:
            await api.patch(request, {"data": {"done": "yes"}})

    setup.server.create(config("web", page="a"))
    controller = await setup.run(reconcile)
    await trio.sleep(1)
    first, second = controller.journal(WEB)
    (cause,) = first.causes
    assert (cause.why, cause.resource, cause.key) == ("initial", "configmaps", "default/web")
    assert (cause.predicates, cause.enqueue) == (("not_labelled",), "request_for_object")
    assert cause.reconcile_id == ""
    (write,) = first.writes
    assert (write.method, write.code) == ("PATCH", 200)
    assert write.path == "/api/v1/namespaces/default/configmaps/web"
    (effect,) = second.causes
    assert (effect.why, effect.changes) == ("updated", ("data.done",))
    assert (effect.uid, effect.resource_version) == (write.uid, write.resource_version)
    assert effect.reconcile_id == first.reconcile_id
    assert second.writes == ()
    assert [entry.result for entry in controller.journal()] == ["success", "success"]


async def test_merged_events_and_a_retry_have_their_causes(autojump_clock: MockClock, setup: Setup) -> None:
    async def reconcile(request: Request) -> RequeueAfter | None:
        await trio.sleep(1)
        results.append(request)
        match len(results):
            case 1:
                return None
            case 2:
                raise OSError("disk full")
            case 3:
                return RequeueAfter(5)
        return None

    results: list[Request] = []
    setup.server.create(config("web"))
    controller = await setup.run(reconcile)
    await trio.sleep(0.5)
    (running,) = controller.journal()
    assert (running.ended, running.result) == (None, None)
    setup.server.patch(ConfigMap, "web", {"data": {"a": "1"}})
    await trio.sleep(0.1)
    setup.server.patch(ConfigMap, "web", {"data": {"a": "2", "b": "1"}})
    setup.server.patch(ConfigMap, "web", {"metadata": {"labels": {"l": "1"}}})  # the predicate rejects it
    controller.add(WEB)
    await trio.sleep(20)
    entries = controller.journal(WEB)
    causes = [[(cause.why, cause.changes) for cause in entry.causes] for entry in entries]
    updates = [("updated", ("data",)), ("Controller.add", ()), ("updated", ("data.a", "data.b"))]
    assert sorted(causes[1]) == sorted(updates)
    assert causes[2:] == [[("retry", ())], [("requeue", ())]]
    assert [entry.result for entry in entries] == ["success", "error", "requeue_after", "success"]
    assert [entry.causes[0].reconcile_id for entry in entries[2:]] == [entry.reconcile_id for entry in entries[1:3]]
    assert "disk full" in entries[1].error
    assert "data.a" in str(entries[1])
    assert entries[1].began >= 1.0


async def test_failed_writes_and_writes_of_tasks_are_recorded_until_the_call_ends(
    autojump_clock: MockClock, setup: Setup
) -> None:
    async def create(name: str) -> None:
        labelled = ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels={"a": "b"}))
        await setup.client.api(ConfigMap).create(labelled)

    async def create_late() -> None:
        await trio.sleep(5)
        await create("late")

    async def reconcile(request: Request) -> None:
        if request.name != "web":
            return
        with suppress(ConflictError):
            await create("web")
        async with trio.open_nursery() as inner:
            inner.start_soon(create, "in-a-task")
        setup.nursery.start_soon(create_late)
        await setup.client.api(ConfigMap, namespace="default").create(config("dry"), dry_run=True)

    setup.server.create(config("web"))
    controller = await setup.run(reconcile)
    await trio.sleep(10)
    (entry,) = controller.journal(WEB)
    assert [write.code for write in entry.writes] == [409, 201]
    assert entry.writes[0].uid == ""
    assert setup.server.get(ConfigMap, "late").name == "late"


async def test_a_journal_is_bounded_and_optional(autojump_clock: MockClock, setup: Setup) -> None:
    async def reconcile(request: Request) -> None: ...

    controller = await setup.run(reconcile)
    for i in range(300):
        controller.add(Request("default", str(i)))
    for _ in range(30):
        controller.add(WEB)
    await trio.sleep(1)
    entries: tuple[JournalEntry, ...] = controller.journal()
    assert len(entries) == 256
    assert entries[-1].request == WEB
    assert (len(entries[-1].causes), entries[-1].more_causes) == (16, 14)


async def test_a_request_that_was_refused_at_the_end_of_a_run_causes_nothing(
    autojump_clock: MockClock, setup: Setup
) -> None:
    async def reconcile(request: Request) -> RequeueAfter:
        await trio.sleep(5)
        return RequeueAfter(60)

    setup.server.create(config("web"))
    controller = await setup.run(reconcile)
    await trio.sleep(1)
    await controller.stop()
    await setup.nursery.start(controller.run)
    await trio.sleep(1)
    assert [[cause.why for cause in entry.causes] for entry in controller.journal()] == [["initial"], ["initial"]]


async def test_a_controller_outside_of_tests_has_no_journal() -> None:
    async def reconcile(request: Request) -> None: ...

    with pytest.raises(RuntimeError, match="journal=True"):
        Controller("pods", reconcile).journal()
