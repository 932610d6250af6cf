"""Requests that are put aside: paused objects, and requests whose last call began too recently."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from tests.cache.informer.test_shared_informer_quarantine import bad_pod
from tests.support.controllers import Reconcile, errors_of, pods, watch_and_start
from tests.support.scripted_list_watch import ScriptedListWatch, listing, modified, pod
from trioformer import Client, ConflictError, SharedInformer, SharedInformerFactory
from trioformer.controller import (
    Controller,
    Request,
    RequeueAfter,
    RetryAfter,
    ensure_paused_condition,
    generation_changed,
)
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.conditions import find_condition
from trioformer.models.core_v1 import ConfigMap, Namespace, Secret
from trioformer.testing import APIServer

PAUSED = "example.com/paused"
WEB, OTHER = Request("default", "web"), Request("default", "other")
SET, UNSET = {"metadata": {"annotations": {PAUSED: ""}}}, {"metadata": {"annotations": {PAUSED: None}}}


def config_map(name: str = "web", **metadata: Any) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", **metadata))


@attrs.frozen
class All:
    """A request that names no object."""

    name: str = "all"


@attrs.define(eq=False)
class Setup:
    server: APIServer
    factory: SharedInformerFactory
    controller: Controller[Request]
    reconcile: Reconcile

    async def change(self, patch: dict[str, Any], name: str = "web") -> None:
        """Change a ConfigMap, and wait until the controller has received the change."""
        self.server.patch(ConfigMap, name, patch)
        await trio.sleep(1)

    async def touch(self, times: int = 1) -> None:
        """Change the label of ``web``."""
        for _ in range(times):
            await self.change({"metadata": {"labels": {"at": f"{trio.current_time():g}"}}})

    @property
    def counts(self) -> tuple[int, int]:
        """The paused requests, and the parked requests."""
        statistics = self.controller.statistics()
        assert statistics.queue is not None
        return statistics.paused, statistics.queue.parked


@asynccontextmanager
async def controlled(
    server: APIServer,
    client: Client,
    *,
    predicates: Sequence[Callable[[Any], bool]] = (),
    script: Sequence[Any] = (),
    watch: Callable[[Controller[Request], SharedInformerFactory], object] = lambda controller, factory: None,
    **options: Any,
) -> AsyncIterator[Setup]:
    factory, reconcile = SharedInformerFactory(client), Reconcile(script)
    controller = Controller("web", reconcile, **{"paused_by": PAUSED, **options})
    controller.watch(factory.informer(ConfigMap), predicates=predicates)
    watch(controller, factory)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        await trio.sleep(1)
        yield Setup(server, factory, controller, reconcile)
        nursery.cancel_scope.cancel()


# --- paused objects ---


@pytest.mark.parametrize("value", ["", "false", "true"])
async def test_a_paused_object_is_reconciled_once_when_its_annotation_goes(
    autojump_clock: MockClock,
    api_server: APIServer,
    k8s_client: Client,
    caplog: pytest.LogCaptureFixture,
    value: str,
) -> None:
    caplog.set_level(logging.INFO, "trioformer.controller")
    api_server.create(config_map())
    async with controlled(api_server, k8s_client) as setup:
        assert setup.reconcile.calls == ["web"]
        await setup.change({"metadata": {"annotations": {PAUSED: value}}})
        await setup.touch(3)
        setup.controller.add(WEB)
        await trio.sleep(1_000)
        assert setup.reconcile.calls == ["web"]
        assert setup.counts == (1, 1)
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web", "web"]
        assert setup.counts == (0, 0)
        await trio.sleep(1_000)
        assert (setup.controller.statistics().succeeded, setup.controller.statistics().failed) == (2, 0)
    assert [record.getMessage() for record in caplog.records if "paused" in record.getMessage()] == [
        f"controller web: default/web is paused by the annotation {PAUSED}",
        "controller web: default/web is no longer paused",
    ]


async def test_other_objects_continue_with_one_worker(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    for number in range(20):
        api_server.create(config_map(f"paused-{number}", annotations={PAUSED: "true"}))
    async with controlled(api_server, k8s_client) as setup:
        assert setup.counts == (20, 20)
        api_server.create(config_map("other"))
        await trio.sleep(1)
        assert setup.reconcile.calls == ["other"]


async def test_an_object_that_is_being_deleted_is_paused_too(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}, finalizers=["example.com/a"]))
    async with controlled(api_server, k8s_client) as setup:
        api_server.delete(ConfigMap, "web")
        await trio.sleep(10)
        assert setup.reconcile.calls == []
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web"]


@pytest.mark.parametrize("predicates", [[], [lambda event: False]])
async def test_a_request_goes_on_when_its_object_is_deleted_during_the_pause(
    autojump_clock: MockClock,
    api_server: APIServer,
    k8s_client: Client,
    predicates: list[Callable[[Any], bool]],
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))
    async with controlled(api_server, k8s_client, predicates=predicates) as setup:
        assert setup.counts == (1, 1)
        api_server.delete(ConfigMap, "web")
        await trio.sleep(1)
        assert setup.reconcile.calls == ["web"]
        assert setup.counts == (0, 0)


async def test_a_request_goes_on_if_one_write_ends_the_pause_and_removes_the_object(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}, finalizers=["example.com/a"]))
    async with controlled(api_server, k8s_client) as setup:
        api_server.delete(ConfigMap, "web")
        await setup.change({"metadata": {"annotations": None, "finalizers": None}})
        assert api_server.list(ConfigMap) == []
        assert setup.reconcile.calls == ["web"]
        assert setup.counts == (0, 0)


async def test_an_object_in_quarantine_stays_paused(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    paused = pod("a", 1).evolve(metadata=pod("a", 1).metadata.evolve(annotations={PAUSED: ""}))
    source = ScriptedListWatch([listing(paused, version=3)], [[1.0, modified(bad_pod("a", 5)), None]])
    informer = SharedInformer(source, indexers={"node": lambda obj: [obj.spec.node_name or ""]})
    controller = Controller("pods", reconcile := Reconcile(), paused_by=PAUSED)
    nursery.start_soon(informer.run)
    await trio.sleep(2)
    assert sorted(informer.lister.quarantined()) == ["default/a"]
    caplog.clear()
    controller.watch(informer)
    await nursery.start(controller.run)
    controller.add(Request("default", "a"))
    await trio.sleep(60)
    assert (reconcile.calls, errors_of(caplog)) == ([], [])
    assert controller.statistics().paused == 1


async def test_a_request_goes_on_if_the_watch_missed_the_end_of_the_pause(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))
    async with controlled(api_server, k8s_client, predicates=[lambda event: False]) as setup:
        api_server.fail_next(3, verb="watch", resource="configmaps")
        api_server.disconnect_watches(kind=ConfigMap)
        await trio.sleep(0.01)
        api_server.patch(ConfigMap, "web", UNSET)
        api_server.delete(ConfigMap, "web")
        await trio.sleep(60)
        assert setup.reconcile.calls == ["web"]
        api_server.create(config_map(annotations={PAUSED: ""}))
        await trio.sleep(1)
        assert setup.counts == (1, 1)
        api_server.fail_next(3, verb="watch", resource="configmaps")
        api_server.disconnect_watches(kind=ConfigMap)
        await trio.sleep(0.01)
        api_server.delete(ConfigMap, "web")
        api_server.create(config_map())
        await trio.sleep(60)
        assert setup.reconcile.calls in (["web", "web"], ["web", "web", "web"])  # a deletion and an addition
        assert setup.counts == (0, 0)


async def test_a_pause_begins_and_ends_even_if_predicates_reject_its_events(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(generation=1))
    async with controlled(api_server, k8s_client, predicates=[generation_changed, lambda event: False]) as setup:
        assert setup.reconcile.calls == []
        await setup.change(SET)
        assert setup.counts == (1, 1)
        await setup.touch(2)
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web"]
        await setup.touch(2)
        assert setup.reconcile.calls == ["web"]


async def test_a_request_for_an_object_that_is_not_cached_is_reconciled(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async with controlled(api_server, k8s_client) as setup:
        setup.controller.add(OTHER)
        await trio.sleep(1)
        assert setup.reconcile.calls == ["other"]


async def test_a_pause_outlasts_resyncs_and_a_new_run(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))
    async with controlled(api_server, k8s_client, resync_every=10) as setup:
        await trio.sleep(100)
        await setup.controller.stop()
        assert setup.controller.statistics().paused == 0
        async with trio.open_nursery() as nursery:
            await nursery.start(setup.controller.run)
            await trio.sleep(100)
            assert setup.reconcile.calls == []
            assert setup.counts == (1, 1)
            await setup.change(UNSET)
            assert set(setup.reconcile.calls) == {"web"}
            nursery.cancel_scope.cancel()


async def test_a_pause_counts_as_no_failure_and_keeps_the_earlier_failures(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create(config_map())

    async def pause_and_fail(request: Request) -> None:
        api_server.patch(ConfigMap, "web", SET)
        await trio.sleep(1)
        raise OSError("no")

    async with controlled(api_server, k8s_client, script=[pause_and_fail, OSError("no")]) as setup:
        await trio.sleep(100)
        assert setup.reconcile.calls == ["web"]
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web"] * 3
    assert ["failure 1 in a row" in errors_of(caplog)[0], "failure 2 in a row" in errors_of(caplog)[1]] == [True, True]
    assert len(errors_of(caplog)) == 2


async def test_a_pause_does_not_cancel_a_running_call(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map())
    async with controlled(api_server, k8s_client, script=[10.0]) as setup:
        await setup.change(SET)
        await trio.sleep(100)
        assert setup.reconcile.done == ["web"]
        assert setup.counts == (1, 1)


async def test_an_object_of_another_kind_with_the_same_name_does_not_end_the_pause(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.controller")
    api_server.create(config_map(annotations={PAUSED: ""}))
    api_server.create(Secret(metadata=ObjectMeta(name="web", namespace="default")))
    async with controlled(
        api_server, k8s_client, watch=lambda it, factory: it.watch(factory.informer(Secret))
    ) as setup:
        api_server.patch(Secret, "web", {"metadata": {"labels": {"a": "b"}}})
        await trio.sleep(1)
        api_server.delete(Secret, "web")
        await trio.sleep(1)
        assert setup.reconcile.calls == []
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web"]
    assert sum("paused" in record.getMessage() for record in caplog.records) == 2


async def test_requests_of_several_kinds_are_compared_with_their_own_objects(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map())

    def watch(controller: Controller[Any], factory: SharedInformerFactory) -> None:
        controller.watch(factory.informer(Namespace))
        controller.watch(factory.informer(Secret), enqueue=lambda secret: [All()])

    async with controlled(api_server, k8s_client, watch=watch) as setup:
        api_server.create(Namespace(metadata=ObjectMeta(name="new", annotations={PAUSED: ""})))
        api_server.create(Secret(metadata=ObjectMeta(name="any", namespace="default")))
        await setup.change(SET)
        assert setup.counts == (2, 2)
        api_server.patch(Namespace, "new", UNSET)
        await setup.change(UNSET)
        assert [setup.reconcile.calls.count(name) for name in ("web", "new", "all")] == [2, 1, 1]
        assert setup.controller.statistics().failed == 0


async def test_a_late_informer_that_has_not_synced_stops_nothing(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map())
    async with controlled(api_server, k8s_client) as setup:
        setup.controller.watch(SharedInformerFactory(k8s_client).informer(Secret))
        await setup.change(SET)
        await setup.touch()
        assert setup.counts == (1, 1)
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web", "web"]
        assert setup.controller.statistics().failed == 0


async def test_a_resumed_request_is_reconciled_before_initial_objects(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map("a", annotations={PAUSED: ""}))
    for number in range(8):
        api_server.create(config_map(f"b{number}"))
    async with controlled(api_server, k8s_client, script=[10.0] * 4) as setup:
        await setup.change(UNSET, "a")
        await trio.sleep(100)
        assert setup.reconcile.calls[1] == "a"


# --- on_paused ---


async def test_on_paused_is_called_once_for_each_pause(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map())
    seen: list[Request] = []

    async def on_paused(request: Request) -> None:
        seen.append(request)

    async with controlled(api_server, k8s_client, on_paused=on_paused) as setup:
        for number in (1, 2):
            await setup.change(SET)
            await setup.touch(2)
            assert seen == [WEB] * number
            await setup.change(UNSET)
            assert len(setup.reconcile.calls) == number + 1


async def test_a_failure_of_on_paused_is_retried(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))
    errors = [OSError("no"), OSError("no")]

    async def on_paused(request: Request) -> None:
        if errors:
            raise errors.pop()

    async with controlled(api_server, k8s_client, on_paused=on_paused) as setup:
        assert setup.counts == (1, 1)
        assert errors == []
        assert len(errors_of(caplog)) == 1  # the second line would say the same
        assert setup.reconcile.calls == []


async def test_on_paused_has_the_deadline_and_the_delays_of_reconcile(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))
    steps = [trio.sleep_forever, RetryAfter(10)]
    times: list[float] = []

    async def on_paused(request: Request) -> None:
        times.append(round(trio.current_time()))
        match steps.pop(0) if steps else None:
            case RetryAfter() as later:
                raise later
            case None:
                pass
            case wait:
                await wait()

    async with controlled(api_server, k8s_client, on_paused=on_paused, reconcile_deadline=5) as setup:
        await trio.sleep(30)
        assert times == [0, 5, 15]
        statistics = setup.controller.statistics()
        assert (statistics.failed, statistics.timed_out, statistics.failing, statistics.paused) == (1, 1, 0, 1)


async def test_an_error_of_on_paused_during_a_cancellation_does_not_end_the_program(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))

    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("no")

    async def on_paused(request: Request) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)

    async with controlled(api_server, k8s_client, on_paused=on_paused):
        pass
    assert "the controller is cancelled" in errors_of(caplog)[0]


async def test_a_pause_that_ends_during_on_paused_is_not_missed(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map(annotations={PAUSED: ""}))

    async def on_paused(request: Request) -> None:
        api_server.patch(ConfigMap, "web", UNSET)
        await trio.sleep(1)

    async with controlled(api_server, k8s_client, on_paused=on_paused) as setup:
        await trio.sleep(10)
        assert set(setup.reconcile.calls) == {"web"}
        assert setup.counts == (0, 0)


async def test_the_condition_says_whether_the_object_is_paused(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    labels = {"app": "web"}
    ready = {"type": "Available", "status": "True", "reason": "Up", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    api_server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default", "annotations": {PAUSED: ""}},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
            },
        }
    )
    api_server.patch(Deployment, "web", {"status": {"conditions": [ready]}}, subresource="status")
    factory = SharedInformerFactory(k8s_client)
    lister = factory.informer(Deployment).lister

    async def report(request: Request) -> None:
        await ensure_paused_condition(k8s_client, lister[str(request)], PAUSED)

    controller = Controller("web", report, paused_by=PAUSED, on_paused=report)
    controller.watch(factory.informer(Deployment))
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        await trio.sleep(1)
        assert condition(api_server) == ("True", "Paused")
        api_server.patch(Deployment, "web", UNSET)
        await trio.sleep(10)
        assert condition(api_server) == ("False", "NotPaused")
        assert sum(each.verb == "patch" for each in api_server.requests) == 2
        stored = api_server.get(Deployment, "web")
        kept = find_condition(stored.status.conditions, "Available")
        assert kept is not None
        assert kept.last_update_time is not None
        assert await ensure_paused_condition(k8s_client.api(Deployment), stored, PAUSED) is stored
        api_server.patch(Deployment, "web", SET)
        behind = stored.evolve(metadata=stored.metadata.evolve(annotations={PAUSED: "true"}))
        with pytest.raises(ConflictError):
            await ensure_paused_condition(k8s_client, behind, PAUSED)
        nursery.cancel_scope.cancel()


def condition(server: APIServer) -> tuple[str | None, str | None]:
    found = find_condition(server.get(Deployment, "web").status.conditions, "Paused")
    assert found is not None
    return found.status, found.reason


# --- mistakes ---


async def test_a_controller_must_watch_the_objects_that_can_be_paused(autojump_clock: MockClock) -> None:
    for options in ({"paused_by": PAUSED}, {"resync_every": 10.0}):
        controller = Controller("web", Reconcile(), **options)  # type: ignore[arg-type]  # one of two options
        controller.watch(pods("a"), enqueue=lambda obj: [Request.of(obj)])
        with pytest.raises(RuntimeError, match=r"controller web watches no objects that it reconciles"):
            await controller.run()


def test_on_paused_requires_the_annotation() -> None:
    with pytest.raises(ValueError, match="on_paused requires paused_by"):
        Controller("web", Reconcile(), on_paused=Reconcile())
    with pytest.raises(TypeError, match="on_paused must be an async function"):
        Controller("web", Reconcile(), paused_by=PAUSED, on_paused=lambda: None)  # type: ignore[arg-type,misc]


# --- min_interval ---


async def test_the_first_call_begins_at_once_and_a_burst_is_one_call(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps = [10.0, *(step for version in range(2, 42) for step in (0.1, modified(pod("a", version))))]
    controller = Controller("pods", reconcile := Reconcile(), min_interval=5)
    await watch_and_start(nursery, controller, pods("a", steps=steps))
    began = trio.current_time()
    await trio.sleep(100)
    assert [round(at - began, 3) for at in reconcile.at] == [0, 10.1, 15.1]
    statistics = controller.statistics().queue
    assert statistics is not None
    assert (statistics.parked, statistics.delayed) == (0, 0)


async def test_other_requests_do_not_wait(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    controller = Controller("pods", reconcile := Reconcile(), min_interval=60)
    await watch_and_start(nursery, controller, pods(*"abcd"))
    await trio.sleep(1)
    for name in "abcd":
        controller.add(Request("default", name))
    await trio.sleep(1)
    controller.add(Request("default", "e"))
    await trio.sleep(1)
    assert reconcile.calls == [*"abcd", "e"]
    await trio.sleep(100)
    assert sorted(reconcile.calls[5:]) == [*"abcd"]


@pytest.mark.parametrize(
    ("script", "gaps"),
    [
        ([RequeueAfter(1), None], [5]),
        ([RequeueAfter(7), None], [7]),
        ([OSError(), OSError(), None], [5, 5]),
        ([3.0], []),
    ],
)
async def test_retries_and_requeues_wait_too(
    nursery: trio.Nursery, autojump_clock: MockClock, script: list[Any], gaps: list[float]
) -> None:
    controller = Controller("pods", reconcile := Reconcile(script), min_interval=5)
    await watch_and_start(nursery, controller, pods("a"))
    await trio.sleep(100)
    assert reconcile.gaps() == gaps
    assert controller.statistics().failing == 0


async def test_the_interval_begins_with_the_call(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    controller = Controller("pods", reconcile := Reconcile([3.0, 8.0]), min_interval=5)
    await watch_and_start(nursery, controller, pods("a"))
    for _ in range(4):
        await trio.sleep(1)
        controller.add(Request("default", "a"))
    await trio.sleep(2)
    controller.add(Request("default", "a"))
    await trio.sleep(100)
    assert reconcile.gaps() == [5, 8]


async def test_a_paused_request_is_reconciled_after_both_waits(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(config_map())
    async with controlled(api_server, k8s_client, min_interval=30) as setup:
        await setup.touch()
        assert setup.counts == (0, 1)
        await setup.change(SET)
        await trio.sleep(60)
        assert setup.counts == (1, 1)
        assert setup.reconcile.calls == ["web"]
        await setup.change(UNSET)
        assert setup.reconcile.calls == ["web", "web"]


def test_an_interval_must_be_a_finite_number() -> None:
    for options in ({"min_interval": -1.0}, {"min_interval": math.inf}, {"resync_every": 0.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Controller("web", Reconcile(), **options)  # type: ignore[arg-type]  # one of two options


# --- everything together ---


@pytest.mark.parametrize("seed", range(20))
async def test_no_paused_object_is_reconciled_and_no_request_is_lost(
    autojump_clock: MockClock, api_server: APIServer, k8s_client: Client, seed: int
) -> None:
    chance, names = random.Random(seed), ["a", "b", "c"]
    seen: dict[str, str] = {}
    began: dict[str, float] = {}
    is_over = False

    async def reconcile(request: Request) -> RequeueAfter | None:
        obj = setup.factory.informer(ConfigMap).lister.get(request)
        assert obj is None or PAUSED not in obj.metadata.annotations
        now = trio.current_time()
        assert now - began.get(request.name, -math.inf) > 1.999
        seen[request.name], began[request.name] = "" if obj is None else obj.resource_version, now
        await trio.sleep(chance.choice([0, 0.3, 3]))
        if chance.random() < 0.1:
            raise OSError("no")
        return None if is_over else chance.choice([None, None, RequeueAfter(1)])  # a timer hides lost requests

    async def on_paused(request: Request) -> None:
        await trio.sleep(chance.choice([0, 0, 0.5]))
        if chance.random() < 0.2:
            raise OSError("no")

    async with controlled(
        api_server,
        k8s_client,
        script=[reconcile] * 10_000,
        on_paused=on_paused,
        min_interval=2,
        resync_every=chance.choice([7, math.inf]),
        workers=chance.choice([1, 2]),
    ) as setup:
        for _ in range(60):
            name = chance.choice(names)
            there = [one.name for one in api_server.list(ConfigMap)]
            match chance.randrange(8):
                case 0 | 1 | 2 if name in there:
                    api_server.patch(ConfigMap, name, chance.choice([SET, UNSET]))
                case 3 if name in there:
                    api_server.patch(ConfigMap, name, {"metadata": {"labels": {"a": str(chance.random())}}})
                case 4 if name in there:
                    api_server.delete(ConfigMap, name)
                case 5:
                    setup.controller.add(Request("default", name))
                case 6:
                    api_server.fail_next(chance.choice([1, 2]), verb="watch", resource="configmaps")
                    api_server.disconnect_watches(kind=ConfigMap)
                case _ if name not in there:
                    api_server.create(config_map(name, annotations=chance.choice([{}, {PAUSED: ""}])))
            await trio.sleep(chance.choice([0, 0.01, 0.4, 1.5]))
        is_over = True
        for one in api_server.list(ConfigMap):
            api_server.patch(ConfigMap, one.name, UNSET)
        await trio.sleep(200)
        statistics = setup.controller.statistics()
        assert (statistics.paused, statistics.phase) == (0, "running")
        versions = {one.name: one.resource_version for one in api_server.list(ConfigMap)}
        assert {name: version for name, version in seen.items() if version} == versions
