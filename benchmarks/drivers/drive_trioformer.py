"""trioformer: a factory with an informer of pods, the namespace index, and handlers that count."""

from __future__ import annotations

import random
import time
from argparse import Namespace
from collections.abc import Iterable, Mapping

import crud
import measure
import trio
from measure import Meter
from ticking import ticking

from trioformer import (
    Client,
    HandlerRegistration,
    Lister,
    ResourceEventHandler,
    SharedInformer,
    SharedInformerFactory,
    field_index,
    open_client,
)
from trioformer.cache.store._indexer import IndexFunc
from trioformer.client import ClientOptions
from trioformer.controller import Controller, Request
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod

RESYNC_PERIOD = 8.0


class Counter(ResourceEventHandler[Pod]):
    """Does next to nothing with each notification."""

    def __init__(self, events: int) -> None:
        self.left = events
        self.done = trio.Event()

    async def on_update(self, old: Pod, new: Pod) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


class Reader(Counter):
    """Reads what a controller reads of each pod."""

    async def on_update(self, old: Pod, new: Pod) -> None:
        if new.metadata.labels["pod-template-hash"] and new.spec.node_name and new.status.phase:
            await super().on_update(old, new)


class Stopwatch(Counter):
    """Notes when each write was sent, and when it was seen."""

    def __init__(self, events: int) -> None:
        super().__init__(events)
        self.seen: list[tuple[Pod, int]] = []

    async def on_update(self, old: Pod, new: Pod) -> None:
        self.seen.append((new, time.time_ns()))
        await super().on_update(old, new)

    def latencies(self) -> dict[str, float]:
        return measure.latencies([(int(pod.metadata.annotations[measure.SENT]), at) for pod, at in self.seen])


class Resynced(Counter):
    """Notes the first and the last repetition, and the CPU between them."""

    def __init__(self, events: int) -> None:
        super().__init__(events)
        self.meter: Meter | None = None
        self.began = 0.0
        self.result: dict[str, object] = {}

    async def on_update(self, old: Pod, new: Pod) -> None:
        if self.meter is None:
            self.meter = Meter()
            self.began = trio.current_time()
        self.left -= 1
        if not self.left:
            self.result = {**self.meter.read()}
            self.done.set()


HANDLERS = {"storm": Counter, "latency": Stopwatch, "resync": Resynced, "ticker": Resynced}


class Setup:
    """A factory, its informer, and the handlers."""

    def __init__(self, client: Client, options: Namespace, *, resync_period: float = 0.0) -> None:
        self.factory = SharedInformerFactory(
            client, resync_period=resync_period, drop_managed_fields=options.drop_managed_fields
        )
        indexers: dict[str, IndexFunc[Pod]] = {"node": field_index("spec.node_name")} if options.node_index else {}
        if options.workload == "lookups":
            indexers["group"] = by_twenties
        self.informer: SharedInformer[Pod] = self.factory.informer(Pod, indexers=indexers)
        made = Reader if options.read else HANDLERS.get(options.workload, Counter)
        events = options.events or options.pods
        self.handlers = [made(events) for _ in range(options.handlers)]
        self.registrations: list[HandlerRegistration[Pod]] = [
            self.informer.add_event_handler(handler) for handler in self.handlers
        ]

    async def sync(self, nursery: trio.Nursery) -> dict[str, object]:
        meter = Meter()
        await nursery.start(self.factory.run)
        synced = meter.read()
        for registration in self.registrations:
            await registration.wait_until_synced()
        handled = {f"handled_{name}": value for name, value in meter.read().items()}
        return {"objects": len(self.informer.lister), **synced, **handled}

    def buffers(self) -> Mapping[str, object]:
        """Statistics of the listener buffers: nothing may be merged."""
        all_of_them = [registration.statistics().buffer for registration in self.registrations]
        return {
            "coalesced": sum(box.coalesced for box in all_of_them),
            "high_water": max(box.high_water for box in all_of_them),
        }


async def finished(setup: Setup) -> None:
    """Wait until every handler has counted all events, or receives no more because some were merged."""
    for handler in setup.handlers:
        while not handler.done.is_set():
            with trio.move_on_after(1):
                await handler.done.wait()
            boxes = [registration.statistics().buffer for registration in setup.registrations]
            if any(box.coalesced for box in boxes) and not any(box.buffered or box.pending_objects for box in boxes):
                return


async def sync(options: Namespace, client: Client) -> None:
    async with trio.open_nursery() as nursery:
        setup = Setup(client, options)
        measure.finish({**await setup.sync(nursery)})


async def do_nothing(request: Request) -> None:
    """Be called by a controller."""


async def storm(options: Namespace, client: Client) -> None:
    """Also the workload ``latency``: the same with writes that come one by one."""
    async with trio.open_nursery() as nursery:
        setup = Setup(client, options)
        if options.controller:
            controller = Controller("storm", do_nothing, journal=options.controller == "journal")
            controller.watch(setup.informer)
            nursery.start_soon(controller.run)
        await setup.sync(nursery)
        measure.ready()
        meter = Meter()
        await finished(setup)
        result = {"events": options.events, **meter.read(), **setup.buffers()}
        for handler in setup.handlers:
            if isinstance(handler, Stopwatch):
                result |= handler.latencies()
        measure.finish(result)


async def resync(options: Namespace, client: Client) -> None:
    async with trio.open_nursery() as nursery:
        setup = Setup(client, options, resync_period=RESYNC_PERIOD)
        await setup.sync(nursery)
        (handler,) = setup.handlers
        assert isinstance(handler, Resynced)
        before = measure.rss()
        await handler.done.wait()
        measure.finish({**handler.result, "rss": measure.rss() - before, **setup.buffers()})


async def ticker(options: Namespace, client: Client) -> None:
    async with trio.open_nursery() as nursery:
        setup = Setup(client, options, resync_period=RESYNC_PERIOD)
        (handler,) = setup.handlers
        async with ticking() as ticks:
            await setup.sync(nursery)
        result = {f"sync_{name}": value for name, value in ticks.report().items()}
        async with ticking() as ticks:
            await handler.done.wait()
        # The ticks before it are idle, but for what the resync does before the handler receives the first object.
        report = ticks.report(since=handler.began - 0.05)
        result |= {f"resync_{name}": value for name, value in report.items()}
        measure.finish(result)


async def lookups(options: Namespace, client: Client) -> None:
    async with trio.open_nursery() as nursery:
        setup = Setup(client, options)
        await setup.sync(nursery)
        lister = setup.informer.lister
        names = [(pod.name, pod.namespace) for pod in lister.list()]
        random.Random(1).shuffle(names)
        result = {
            "gets_per_s": gets_per_s(lister, names),
            "hot_gets_per_s": gets_per_s(lister, names[:1_000]),  # the same number for every size of the cache
        }
        groups = lister.index_values("group")[:: max(1, options.pods // 1_000)]
        rounds = 20_000 // len(groups)
        meter = Meter()
        for _ in range(rounds):
            for group in groups:
                lister.by_index("group", group)
        each = meter.read()["cpu"] / (rounds * len(groups))
        measure.finish({**result, "by_index_us": each * 1e6})


def by_twenties(pod: Pod) -> tuple[str, ...]:
    """An index with twenty pods under each value, however many there are."""
    return (str(int(pod.name[-6:]) // 20),)


def gets_per_s(lister: Lister[Pod], names: list[tuple[str, str | None]]) -> float:
    """How many ``get`` a second: a million of them."""
    rounds = max(1, 1_000_000 // len(names))
    meter = Meter()
    for _ in range(rounds):
        for name, namespace in names:
            lister.get(name, namespace=namespace)
    return rounds * len(names) / meter.read()["cpu"]


async def requests(options: Namespace, client: Client) -> None:
    config_maps = client.api(ConfigMap, crud.NAMESPACE)

    async def work(names: Iterable[str]) -> None:
        for name in names:
            await config_maps.create(ConfigMap(metadata=ObjectMeta(name=name), data=crud.DATA))
            await config_maps.get(name)
            await config_maps.patch(name, crud.PATCH)
            await config_maps.delete(name)

    async with trio.open_nursery() as nursery:
        for name in crud.warm_up_names():
            nursery.start_soon(work, [name])
    names = crud.measured_names(options)
    meter = Meter()
    async with trio.open_nursery() as nursery:
        for _ in range(crud.WORKERS):
            nursery.start_soon(work, names)
    crud.finish(options, meter)


WORKLOADS = {
    "crud": requests,
    "sync": sync,
    "storm": storm,
    "latency": storm,
    "resync": resync,
    "ticker": ticker,
    "lookups": lookups,
}


async def main() -> None:
    options = measure.options()
    client_options = ClientOptions(protobuf=not options.json)
    async with open_client(kubeconfig=options.kubeconfig, options=client_options) as client:
        await WORKLOADS[options.workload](options, client)


if __name__ == "__main__":
    trio.run(main)
