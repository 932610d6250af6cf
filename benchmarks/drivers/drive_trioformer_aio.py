"""trioformer: a cache with a subscription, in trio or through ``trioformer.aio`` on asyncio or uvloop."""

from __future__ import annotations

import asyncio
from argparse import Namespace

import crud
import measure
import trio
from lags import Lags
from measure import Meter

from trioformer import Notification, SharedInformerFactory, Updated, open_client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod


class Measured:
    """Measures the list, and the updates after it."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._initial = options.pods
        self._last = str(1_000_000_000 + options.pods + options.events)
        self._updates = 0
        self._list: dict[str, object] = {}
        self.lags = Lags()
        self._meter = Meter()

    def listed(self, objects: int) -> None:
        """The cache has synced."""
        self._list = measure.of_list({"objects": objects, **self._meter.read(), **self.lags.report()})

    def take(self, notification: Notification[Pod]) -> None:
        """Take a notification; ends the process after the last event's."""
        if isinstance(notification, Updated):
            self._updates += 1
            if notification.new.resource_version == self._last:
                result = {"events": self._options.events, **self._meter.read(), **self.lags.report()}
                measure.finish({**result, "coalesced": self._options.events - self._updates, **self._list})
            return
        self._initial -= 1
        if not self._initial:
            self.lags.report()
            measure.ready()
            self._meter = Meter()


async def in_trio(options: Namespace) -> None:
    async with open_client(kubeconfig=options.kubeconfig) as client, trio.open_nursery() as nursery:
        measured = Measured(options)
        nursery.start_soon(measured.lags.run, trio.sleep)
        factory = SharedInformerFactory(client)
        informer = factory.informer(Pod)
        await nursery.start(factory.run)
        measured.listed(len(informer.lister))
        with informer.subscribe() as notifications:
            async for notification in notifications:
                measured.take(notification)


async def in_asyncio(options: Namespace) -> None:
    from trioformer import aio  # noqa: PLC0415  # not in the row that shows what trio alone costs

    async with aio.open_client(kubeconfig=options.kubeconfig) as client:
        if options.workload == "crud":
            config_maps = client.api(ConfigMap, namespace=crud.NAMESPACE)

            async def work(name: str) -> None:
                await config_maps.create(ConfigMap(metadata=ObjectMeta(name=name), data=crud.DATA))
                await config_maps.get(name)
                await config_maps.patch(name, crud.PATCH)
                await config_maps.delete(name)

            await crud.drive(options, work)
        measured = Measured(options)
        measured.lags.start()
        async with aio.open_cache(Pod, client=client) as pods:
            await pods.wait_until_synced()
            measured.listed(len(pods))
            async for notification in pods.subscribe():
                measured.take(notification)


def main() -> None:
    options = measure.options()
    if options.door == "trio":
        trio.run(in_trio, options)
    elif options.door == "asyncio":
        asyncio.run(in_asyncio(options))
    else:
        import uvloop  # noqa: PLC0415  # only for this row

        uvloop.run(in_asyncio(options))


if __name__ == "__main__":
    main()
