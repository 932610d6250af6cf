"""A replica that caches its share of a kind, and counts what it receives.

It says ``{"ready": true}`` when its share is cached and even, and measures from ``begin`` to ``end`` on standard input.
``count`` asks how many notifications came since ``begin``.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import measure
import trio
from measure import Meter

from trioformer import SharedInformerFactory, open_client
from trioformer.models import KubernetesObject
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.sharding import Shares, open_shares
from trioformer.sharding._kinds import KindShare

RANGES = 16
KINDS: dict[str, type[KubernetesObject]] = {"ConfigMap": ConfigMap, "Pod": Pod}


class Counts:
    """What the replica has received, and what the controllers would have been notified of."""

    received = 0
    notified = 0


def count_received() -> None:
    """Count the objects that come from the server, before those of other ranges are dropped."""
    part_of_received = KindShare.part_of_received

    def counted(self: KindShare[KubernetesObject], obj: KubernetesObject) -> str:
        Counts.received += 1
        return part_of_received(self, obj)

    KindShare.part_of_received = counted  # type: ignore[method-assign]


def peak() -> float:
    """The most memory that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024.0


async def told() -> str:
    line = await trio.to_thread.run_sync(sys.stdin.readline)
    return line.strip()


async def main(options: argparse.Namespace) -> None:
    """Fill the cache, and measure events."""
    kind = KINDS[options.kind]
    before = Meter()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client(kubeconfig=options.kubeconfig))
        factory = SharedInformerFactory(client)

        async def until_even() -> None:
            pass

        @asynccontextmanager
        async def sharing() -> AsyncIterator[None]:
            nonlocal until_even
            async with (
                open_client(kubeconfig=options.leases) as other,
                open_shares(other, Shares("bench", RANGES, options.by), factory) as opened,
            ):

                async def until_even() -> None:
                    own = ["ready"] * (RANGES // options.replicas)
                    while [*opened.state.own.values()] != own:  # noqa: ASYNC110  # the state has no event
                        await trio.sleep(0.1)

                yield

        if options.replicas:
            await stack.enter_async_context(sharing())
        informer = factory.informer(kind)

        async def count(*, task_status: trio.TaskStatus[None]) -> None:
            with informer.subscribe() as notifications:
                task_status.started()
                async for _ in notifications:
                    Counts.notified += 1

        async with trio.open_nursery() as nursery:
            await nursery.start(factory.run)
            await nursery.start(count)
            await until_even()
            await trio.sleep(0.5)
            filled = {**measure.of_list(before.read()), "list_received": Counts.received, "peak": peak()}
            measure.ready()
            idle = Meter()
            await told()
            waited = idle.read()
            idle_rate = waited["cpu"] / waited["wall"]
            Counts.received = Counts.notified = 0
            meter = Meter()
            measure.say(begun=True)
            while await told() == "count":
                measure.say(notified=Counts.notified)
            used = meter.read()
            received = Counts.received if options.replicas else Counts.notified
            kept = sum(1 for _ in informer.lister)
            result = {**filled, "rss": measure.rss(), "received": received, "kept": kept, "notified": Counts.notified}
            event_cpu = max(0.0, used["cpu"] - idle_rate * used["wall"])
            measure.finish({**result, "idle_cpu": idle_rate * 1_000, "cpu": event_cpu})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True, help="of the objects")
    parser.add_argument("--leases", help="the kubeconfig of the Leases")
    parser.add_argument("--replicas", type=int, default=0, help="0 for no shares")
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--by", choices=("namespace", "uid"), default="namespace")
    logging.basicConfig(level=logging.WARNING)
    count_received()
    trio.run(main, parser.parse_args())
