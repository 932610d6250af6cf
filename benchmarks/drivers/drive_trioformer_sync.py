"""trioformer.sync: four threads read a cache while events arrive; with ``--door dict`` they read a dictionary instead.

The replay server sends the events in a known order, so the newest resourceVersion of a list tells those of all other
pods: a list that mixes two moments is seen.
One index is of the pods' nodes, which stay; in the other, each event moves a pod.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import cycle

import measure

from trioformer import Updated, field_index, sync
from trioformer.models.core_v1 import Pod

THREADS = 4
PHASE = 4.0
"""Seconds of each kind of reads."""
STEP = 7919
"""From one event's pod to the next one's."""
SLOTS = 16
FIRST = 1_000_000_000


def slot_of(pod: Pod) -> tuple[str, ...]:
    return (str(version_of(pod) % SLOTS),)


def version_of(pod: Pod) -> int:
    return int(pod.metadata.resource_version or 0) - FIRST


def number_of(pod: Pod) -> int:
    return int(pod.metadata.name[-6:])


class Readers:
    """Threads that read, and what they have read."""

    def __init__(self, pods: sync.Cache[Pod], *, from_dict: bool) -> None:
        self._pods = pods
        everything = pods.list()
        self._count = len(everything)
        self._first_event = {number * STEP % self._count: number for number in range(self._count)}
        self._names = [(pod.metadata.name, pod.metadata.namespace) for pod in everything]
        self._nodes = pods.index_values("node")
        self._store: Mapping[str, Pod] | None = None
        if from_dict:
            self._store = {f"{pod.metadata.namespace}/{pod.metadata.name}": pod for pod in everything}
            self._keys = {node: pods.index_keys("node", node) for node in self._nodes}
        self.wrong: list[str] = []
        self.result: dict[str, float] = {}

    def run(self) -> None:
        """Read in each way for a while."""
        if self._store is None:
            self.result["checked_per_s"] = self.per_second(self.checked)
        self.result["gets_per_s"] = self.per_second(self.gets)
        self.result["lists_per_s"] = self.per_second(self.lists)

    def per_second(self, read: Callable[[int, float], int]) -> float:
        """How many reads a second all threads make; ``read`` is called with the thread's number and its end."""
        counts = [0] * THREADS
        began = time.perf_counter()

        def run(number: int) -> None:
            try:
                counts[number] = read(number, began + PHASE)
            except Exception as error:  # noqa: BLE001  # it is what is looked for
                self.wrong.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.perf_counter() - began)

    def gets(self, number: int, end: float) -> int:
        count, store, pods = 0, self._store, self._pods
        names = self._names[number::THREADS]
        while time.perf_counter() < end:
            if store is not None:
                for name, namespace in names:
                    store[f"{namespace}/{name}"]
            else:
                for name, namespace in names:
                    pods.get(name, namespace=namespace)
            count += len(names)
        return count

    def lists(self, number: int, end: float) -> int:
        count, store, pods = 0, self._store, self._pods
        while time.perf_counter() < end:
            for node in self._nodes:
                if store is not None:
                    tuple(map(store.__getitem__, self._keys[node]))
                else:
                    pods.by_index("node", node)
            count += len(self._nodes)
        return count

    def checked(self, number: int, end: float) -> int:
        """Read in every way, and compare what is read with what must be true at each moment."""
        count, pods, seen = 0, self._pods, dict.fromkeys(self._names, 0)
        for (name, namespace), node in zip(cycle(self._names[number::THREADS]), cycle(self._nodes)):
            if time.perf_counter() >= end or self.wrong:
                return count
            pod = pods.get(name, namespace=namespace)
            if pod is None or version_of(pod) < seen[name, namespace]:
                raise ValueError(f"{name} was {seen[name, namespace]} and is {pod}")
            seen[name, namespace] = version_of(pod)
            self._check(pods.by_index("node", node), self._count // len(self._nodes))
            slot = str(count % SLOTS)
            if any(slot_of(pod) != (slot,) for pod in pods.by_index("slot", slot)):
                raise ValueError(f"the index has other pods under {slot}")
            if not count % 50:
                self._check(pods.list(), self._count)
            count += 1
        return count

    def _check(self, pods: tuple[Pod, ...], count: int) -> None:
        """Compare pods, which are all or those of a node, with what they were when the newest of them came."""
        versions = {number_of(pod): version_of(pod) for pod in pods}
        events = max(versions.values()) - self._count
        if not len(pods) == len(versions) == count or any(
            version != self._version_after(events, number) for number, version in versions.items()
        ):
            raise ValueError(f"{len(pods)} pods, of different moments or not all, after {events} events")

    def _version_after(self, events: int, number: int) -> int:
        first = self._first_event[number]
        if first >= events:
            return number + 1
        return self._count + 1 + first + (events - 1 - first) // self._count * self._count


def main() -> None:
    options = measure.options()
    indexers = {"node": field_index("spec.node_name"), "slot": slot_of}
    with sync.open_cache(Pod, kubeconfig=options.kubeconfig, indexers=indexers) as pods:
        pods.wait_until_synced()
        readers = Readers(pods, from_dict=options.door == "dict")
        reads = threading.Thread(target=readers.run)
        initial, late, began = options.pods, [], 0.0
        for notification in pods.subscribe():
            if isinstance(notification, Updated):
                sent = version_of(notification.new) - options.pods
                late.append((time.perf_counter() - began - sent / options.rate) * 1000)
                if sent == options.events:
                    break
            else:
                initial -= 1
                if not initial:
                    sys.setswitchinterval(options.switch_interval)
                    reads.start()
                    measure.ready()
                    began = time.perf_counter()
        reads.join()
        for text in readers.wrong:
            print(text, file=sys.stderr)
        merged = options.events - len(late)
        measure.finish({**readers.result, "wrong": len(readers.wrong), "coalesced": merged, **measure.quantiles(late)})


if __name__ == "__main__":
    main()
