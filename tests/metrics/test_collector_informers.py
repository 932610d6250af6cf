"""Metrics of informers, handlers and elections, on an embedded server and in virtual time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector_undecodable import BROKEN_UID, item, page
from tests.support.controllers import Reconcile
from tests.support.metric_samples import by_label, samples, value
from tests.support.raw_requests import pod
from tests.support.scripted_http import InMemory, response
from trioformer import Notification, ResourceEventHandler, SharedInformerFactory
from trioformer.cache import ReflectorOptions
from trioformer.client import Client, ClientOptions, open_client
from trioformer.controller import Controller
from trioformer.kubeconfig import ClusterConfig
from trioformer.leaderelection import LeaderElectionOptions, LeaderElector, Leadership
from trioformer.metrics import Metrics
from trioformer.models import metadata_kind, unstructured_kind
from trioformer.models.core_v1 import ConfigMap, Event, Pod
from trioformer.models.events_v1 import Event as NewEvent
from trioformer.testing import APIServer
from trioformer.workqueue import WorkQueue

Clock = trio.testing.MockClock


class Slow(ResourceEventHandler[Pod]):
    """Takes five seconds for each pod that is added."""

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        await trio.sleep(5)


@attrs.define(eq=False)
class World:
    """An embedded server with a client whose requests are observed."""

    server: APIServer
    metrics: Metrics
    client: Client


@asynccontextmanager
async def world(*names: str) -> AsyncIterator[World]:
    server, metrics = APIServer(), Metrics()
    for name in names:
        server.create(pod(name))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        carrier = server.http_transport()
        async with open_client(server.config, http_transport=carrier, observer=metrics.request_observer()) as client:
            yield World(server, metrics, client)
        nursery.cancel_scope.cancel()


# --- informers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protobuf", [False, True])
async def test_the_bytes_of_a_cache_are_those_of_the_objects_that_it_stores(
    protobuf: bool, autojump_clock: Clock
) -> None:
    def without_labels(obj: Pod) -> Pod:
        return obj.evolve(metadata=obj.metadata.evolve(labels={}))

    server, metrics, options = APIServer(), Metrics(), ClientOptions(protobuf=protobuf)
    server.create(pod("a", labels={"app": "x" * 63}))
    found: list[list[float]] = []
    async with (
        open_client(server.config, http_transport=server.http_transport(), options=options) as client,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(server.run)
        for transform in (None, without_labels):
            factory = SharedInformerFactory(client)
            factory.informer(Pod, transform=transform)
            metrics.register_factory(factory)
            await nursery.start(factory.run)
            found.append([value(metrics, "trioformer_informer_bytes")])
            created = partial(server.create, pod("b", labels={"app": "x" * 63}))
            for change in (created, partial(server.delete, Pod, "b", namespace="default")):
                change()
                await trio.testing.wait_all_tasks_blocked()
                found[-1].append(value(metrics, "trioformer_informer_bytes"))
            metrics.unregister(factory)
        nursery.cancel_scope.cancel()
    for one, two, again in found:
        assert two > 1.9 * one
        assert again == one
    assert found[0][0] - found[1][0] > 63


async def test_an_informer_has_metrics_of_its_objects_and_its_state(autojump_clock: Clock) -> None:
    async with world("a", "b") as here, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(here.client)
        here.metrics.register_factory(factory, name="mine")
        factory.informer(Pod).add_event_handler(Slow())
        of = partial(value, here.metrics, name="mine", group="", version="v1", resource="pods", informer="Pod")
        doing = partial(by_label, here.metrics, "trioformer_informer_state", "state", name="mine")
        assert [state for state, is_so in doing().items() if is_so] == ["not started"]
        assert of("trioformer_informer_objects") == 0
        assert of("trioformer_informer_data_age_seconds") == math.inf
        assert (of("trioformer_informer_synced"), of("trioformer_informer_healthy")) == (0, 0)
        await nursery.start(factory.run)
        await trio.testing.wait_all_tasks_blocked()
        assert [state for state, is_so in doing().items() if is_so] == ["watching"]
        assert len(doing()) == 9
        assert of("trioformer_informer_objects") == 2
        assert 400 < of("trioformer_informer_bytes") < 4_000
        assert of("trioformer_informer_pending_changes") == 0
        assert of("trioformer_informer_data_age_seconds") == 0
        assert (of("trioformer_informer_synced"), of("trioformer_informer_healthy")) == (1, 1)
        assert of("trioformer_informer_failures_in_a_row") == 0
        assert of("trioformer_informer_readers") == 1
        assert (of("trioformer_informer_lists_total"), of("trioformer_informer_watches_total")) == (1, 1)
        events = of("trioformer_informer_events_total")
        here.server.create(pod("c"))
        await trio.testing.wait_all_tasks_blocked()
        assert of("trioformer_informer_objects") == 3
        assert of("trioformer_informer_events_total") == events + 1
        assert of("trioformer_informer_undecodable_total") == 0
        nursery.cancel_scope.cancel()


async def test_an_informer_without_a_server_has_the_age_of_its_data(autojump_clock: Clock) -> None:
    async with world("a") as here, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(here.client, options=ReflectorOptions(watch_error_handler=lambda _: None))
        factory.informer(Pod)
        here.metrics.register_factory(factory)
        await nursery.start(factory.run)
        await trio.testing.wait_all_tasks_blocked()
        of = partial(value, here.metrics, resource="pods")
        with here.server.unreachable():
            await trio.sleep(200)
            assert of("trioformer_informer_data_age_seconds") == pytest.approx(200, abs=1)
            assert (of("trioformer_informer_synced"), of("trioformer_informer_healthy")) == (0, 0)
            assert of("trioformer_informer_failures_in_a_row") >= 5
            assert of("trioformer_informer_state", state="watching") == 0
            assert of("trioformer_informer_objects") == 1
        await trio.sleep(60)
        assert (of("trioformer_informer_lists_total"), of("trioformer_informer_watches_total")) == (1, 2)
        assert of("trioformer_informer_data_age_seconds") == 0
        assert (of("trioformer_informer_synced"), of("trioformer_informer_healthy")) == (1, 1)
        assert of("trioformer_informer_state", state="watching") == 1
        nursery.cancel_scope.cancel()
    assert of("trioformer_informer_state", state="stopped") == 1


async def test_an_informer_that_waits_for_its_first_list_is_healthy_and_not_synced(nursery: trio.Nursery) -> None:
    metrics = Metrics()
    hanging = InMemory([1e9])
    async with open_client(ClusterConfig(server="http://api.test"), http_transport=hanging) as client:
        factory = SharedInformerFactory(client)
        factory.informer(Pod)
        metrics.register_factory(factory)
        nursery.start_soon(factory.run)
        await trio.testing.wait_all_tasks_blocked()
        assert value(metrics, "trioformer_informer_synced") == 0
        assert value(metrics, "trioformer_informer_healthy") == 1
        nursery.cancel_scope.cancel()


async def test_undecodable_objects_are_counted(nursery: trio.Nursery) -> None:
    metrics = Metrics()
    broken = response(200, page(item("a", 1), item("b", 2, BROKEN_UID), item("c", 3, BROKEN_UID), version=5))
    server = InMemory([broken, response(200, None)])
    async with open_client(ClusterConfig(server="http://api.test"), http_transport=server) as client:
        factory = SharedInformerFactory(client, options=ReflectorOptions(watch_list=False))
        factory.informer(Pod)
        metrics.register_factory(factory)
        await nursery.start(factory.run)
        assert value(metrics, "trioformer_informer_undecodable_total") == 2
        assert value(metrics, "trioformer_informer_objects") == 1
        reasons = by_label(metrics, "trioformer_informer_quarantined_objects", "reason")
        assert reasons == {
            "undecodable": 2,
            "transform failed": 0,
            "index function failed": 0,
        }
        assert value(metrics, "trioformer_informer_missing_objects") == 2
        nursery.cancel_scope.cancel()


async def test_informers_are_labelled_by_resource_selection_factory_and_number() -> None:
    async with world() as here:
        factories = {name: SharedInformerFactory(here.client) for name in ("one", "two")}
        for name, factory in factories.items():
            here.metrics.register_factory(factory, name=name)
        factories["one"].informer(Event)
        factories["one"].informer(NewEvent)
        factories["one"].informer(Pod, namespace="default", label_selector="app=web")
        factories["one"].informer(metadata_kind(Pod))
        factories["two"].informer(Pod)
        factories["two"].informer(unstructured_kind(Pod.__resource__))
        labels = ("name", "group", "version", "resource", "informer")
        found = [
            tuple(sample.labels[label] for label in labels)
            for sample in samples(here.metrics, "trioformer_informer_objects")
        ]
        assert found == [
            ("one", "", "v1", "events", "Event"),
            ("one", "events.k8s.io", "v1", "events", "Event"),
            ("one", "", "v1", "pods", "Pod in namespace default where app=web"),
            ("one", "", "v1", "pods", "metadata of Pod"),
            ("two", "", "v1", "pods", "Pod"),
            ("two", "", "v1", "pods", "Pod (2)"),
        ]


async def test_a_handler_has_metrics_of_its_backlog_and_calls(autojump_clock: Clock) -> None:
    async with world("a", "b", "c") as here, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(here.client)
        registration = factory.informer(Pod).add_event_handler(Slow())
        here.metrics.register_handler(registration)
        of = partial(value, here.metrics, handler="handler Slow of informer Pod")
        await nursery.start(factory.run)
        await trio.sleep(7)
        for name in "de":
            here.server.create(pod(name))
        await trio.sleep(1)
        statistics = registration.statistics()
        assert of("trioformer_handler_waiting") == statistics.buffer.buffered > 0
        assert of("trioformer_handler_most_waiting") == statistics.buffer.high_water > 0
        assert of("trioformer_handler_delivered_total") == 2
        assert of("trioformer_handler_coalesced_total") == 0
        assert of("trioformer_handler_failed_total") == 0
        assert of("trioformer_handler_running_call_seconds") == pytest.approx(3)
        assert of("trioformer_handler_slowest_call_seconds") == pytest.approx(5)
        await trio.sleep(60)
        assert of("trioformer_handler_waiting") == 0
        assert of("trioformer_handler_delivered_total") == 5
        nursery.cancel_scope.cancel()


async def test_a_handler_has_metrics_of_coalesced_notifications_and_failures(autojump_clock: Clock) -> None:
    class Failing(Slow):
        async def on_update(self, old: Pod, new: Pod) -> None:
            raise OSError(new.name)

    async def ignore(error: Exception, notification: Notification[Pod]) -> None:
        assert isinstance(error, OSError)

    async with world("a", "b") as here, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(here.client)
        registration = factory.informer(Pod).add_event_handler(Failing(), buffer_size=1, on_error=ignore)
        here.metrics.register_handler(registration)
        await nursery.start(factory.run)
        for change in ("1", "2", "3"):
            for name in ("a", "b"):
                here.server.patch(Pod, name, {"metadata": {"labels": {"change": change}}})
        await trio.sleep(1)
        of = partial(value, here.metrics)
        buffer = registration.statistics().buffer
        assert buffer.pending_objects > 0
        assert of("trioformer_handler_waiting") == buffer.buffered + buffer.pending_objects
        assert of("trioformer_handler_coalesced_total") == buffer.coalesced > 0
        assert of("trioformer_handler_failed_total") == 0
        await trio.sleep(60)
        assert of("trioformer_handler_failed_total") == registration.statistics().failed > 0
        nursery.cancel_scope.cancel()


# --- names ------------------------------------------------------------------------------------------------------------


async def test_names_of_registered_objects_are_unique_until_unregister() -> None:
    """client-go: TestNewInformerName"""
    metrics = Metrics()
    async with world() as here:
        factory, other = SharedInformerFactory(here.client), SharedInformerFactory(here.client)
        metrics.register_factory(factory, name="mine")
        with pytest.raises(ValueError, match="factory named 'mine'"):
            metrics.register_factory(other, name="mine")
        metrics.register_factory(other, name="yours")
        metrics.unregister(factory)
        metrics.register_factory(factory, name="mine")
        elector = LeaderElector(here.client, name="lease", namespace="default")
        metrics.register_elector(elector, name="lease")
        with pytest.raises(ValueError, match="elector named 'lease'"):
            metrics.register_elector(elector, name="lease")
    metrics.register_controller(Controller("web", Reconcile()))
    with pytest.raises(ValueError, match="named 'web'"):
        metrics.register_controller(Controller("web", Reconcile()))
    with pytest.raises(ValueError, match="named 'web'"):
        metrics.register_queue(WorkQueue[str](name="web"))
    with pytest.raises(ValueError, match="a queue without a name cannot be registered"):
        metrics.register_queue(WorkQueue[str]())


async def test_each_informer_of_a_registered_factory_has_its_own_metrics() -> None:
    """client-go: TestWithResource"""
    async with world() as here:
        factory, unregistered = SharedInformerFactory(here.client), SharedInformerFactory(here.client)
        here.metrics.register_factory(factory, name="mine")
        for each in (factory, unregistered):
            each.informer(Pod)
            each.informer(Pod)
            each.informer(Pod, label_selector="app=web")
            each.informer(ConfigMap)
        found = by_label(here.metrics, "trioformer_informer_objects", "informer")
        assert found == {"Pod": 0, "Pod where app=web": 0, "ConfigMap": 0}


async def test_unregister_removes_metrics_that_are_read_and_keeps_counters() -> None:
    """client-go: TestRelease"""
    async with world() as here:
        metrics = here.metrics
        queue = WorkQueue[str](name="queue", observer=metrics.queue_observer("queue"))
        queue.add("a")
        factory = SharedInformerFactory(here.client)
        registration = factory.informer(Pod).add_event_handler(Slow())
        elector = LeaderElector(here.client, name="lease", namespace="default")
        metrics.register_queue(queue)
        metrics.register_factory(factory)
        metrics.register_handler(registration)
        metrics.register_elector(elector, name="lease")
        names = ("workqueue_depth", "trioformer_informer_objects", "trioformer_handler_waiting")
        names += ("leader_election_master_status",)
        assert [len(samples(metrics, name)) for name in names] == [1, 1, 1, 1]
        for _ in range(2):
            metrics.unregister(queue)
            metrics.unregister(factory)
            metrics.unregister(registration)
            metrics.unregister(elector)
        assert [len(samples(metrics, name)) for name in names] == [0, 0, 0, 0]
        assert value(metrics, "workqueue_adds_total") == 1
        metrics.register_queue(queue)
        assert value(metrics, "workqueue_depth") == 1


# --- elections --------------------------------------------------------------------------------------------------------


async def test_one_of_two_candidates_has_the_leader_status(autojump_clock: Clock) -> None:
    async with world() as here, trio.open_nursery() as nursery:
        for identity in ("one", "two"):
            elector = LeaderElector(here.client, name="lease", namespace="default", identity=identity)
            # Two processes would both use the name of the lease.
            here.metrics.register_elector(elector, name=identity)
            nursery.start_soon(elector.run, lead)
            await trio.sleep(1)
        status = partial(by_label, here.metrics, "leader_election_master_status", "name")
        assert status() == {"one": 1, "two": 0}
        await trio.sleep(30)
        assert status() == {"one": 0, "two": 1}
        nursery.cancel_scope.cancel()
    assert status() == {"one": 0, "two": 0}


async def lead(_: Leadership) -> None:
    await trio.sleep(20)


async def test_a_leader_that_cannot_renew_loses_the_leader_status(autojump_clock: Clock) -> None:
    async def ignore_cancellation(_: Leadership) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)

    async with world() as here, trio.open_nursery() as nursery:
        options = LeaderElectionOptions()
        elector = LeaderElector(here.client, name="lease", namespace="default", options=options)
        here.metrics.register_elector(elector, name="lease")
        nursery.start_soon(partial(elector.run, ignore_cancellation, again_after_loss=True))
        await trio.sleep(5)
        status = partial(value, here.metrics, "leader_election_master_status", name="lease")
        assert status() == 1
        with here.server.unreachable():
            await trio.sleep(7)
            assert status() == 1
            await trio.sleep(4)
            assert status() == 0
        nursery.cancel_scope.cancel()
