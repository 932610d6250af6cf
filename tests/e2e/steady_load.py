"""Requests at a steady rate and watches, which must not notice that anything happens to the credentials."""

from __future__ import annotations

import math

import attrs
import trio

from tests.e2e.credentials import credential_id, whoami
from trioformer import Client, ObjectMeta, ResourceEventHandler, SharedInformerFactory, TrioformerError
from trioformer.models.core_v1 import ConfigMap
from trioformer.watchtools import resuming_watch

PER_MINUTE = 1_000
WATCHES = 20
BEAT_PERIOD = 0.1
"""Seconds between two changes of the object that is watched."""
BEAT = "beat"


def beat_of(obj: ConfigMap) -> int:
    return int(obj.data["number"])


@attrs.define(eq=False)
class Watcher(ResourceEventHandler[ConfigMap]):
    """Writes down when one watch has brought which beat."""

    seen: list[tuple[float, int]] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)

    def note(self, obj: ConfigMap) -> None:
        if obj.name == BEAT:
            self.seen.append((trio.current_time(), beat_of(obj)))
            self._news.set()

    async def wait_for(self, number: int) -> None:
        """Wait for a beat, or a later one."""
        while not self.seen or self.seen[-1][1] < number:
            self._news = trio.Event()
            await self._news.wait()

    async def on_add(self, obj: ConfigMap, *, is_initial: bool) -> None:
        self.note(obj)

    async def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        self.note(new)

    def longest_delay(self, written: list[float]) -> float:
        """Return after how many seconds a beat, or a later one, was here at the latest; infinity if one is missing."""
        worst, index = 0.0, 0
        for number, when in enumerate(written):
            while index < len(self.seen) and self.seen[index][1] < number:
                index += 1
            worst = max(worst, self.seen[index][0] - when if index < len(self.seen) else math.inf)
        return worst


@attrs.define(eq=False)
class SteadyLoad:
    """1,000 requests a minute and 20 watches of one client: ten of informers, and ten that resume by themselves.

    Another client writes what is watched.
    """

    client: Client
    writer: Client
    namespace: str
    requests: int = 0
    failures: list[str] = attrs.field(factory=list)
    slowest: float = 0.0
    """The longest request, in seconds."""
    credentials: dict[str, None] = attrs.field(factory=dict)
    """The ids of the credentials that the server has seen, in order."""
    written: list[float] = attrs.field(factory=list)
    """When each beat was written."""
    retries: list[str] = attrs.field(factory=list)
    """What the watches that resume by themselves have reported."""
    watchers: list[Watcher] = attrs.field(factory=list)
    _beats: int = 0
    """How many beats every watch must have brought."""

    @property
    def delays(self) -> list[float]:
        """The longest time that each of the watches was behind, in seconds; every other watch is an informer's."""
        # Not one that was written while the watches were cancelled.
        written = self.written[: self._beats]
        return [round(watcher.longest_delay(written), 3) for watcher in self.watchers]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load the server until cancelled; started when all watches are there."""
        beats = self.writer.api(ConfigMap, namespace=self.namespace)
        for name in (BEAT, *(f"target-{number}" for number in range(10))):
            made = await beats.create(ConfigMap(metadata=ObjectMeta(name=name), data={"number": "-1"}))
        async with trio.open_nursery() as nursery:
            for number in range(WATCHES):
                self.watchers.append(Watcher())
                if number % 2:
                    factory = SharedInformerFactory(self.client, namespace=self.namespace)
                    factory.informer(ConfigMap).add_event_handler(self.watchers[-1])
                    await nursery.start(factory.run)
                else:
                    nursery.start_soon(self._watch, self.watchers[-1], made.resource_version)
            nursery.start_soon(self._beat)
            nursery.start_soon(self._request_steadily)
            task_status.started()

    async def finish(self, nursery: trio.Nursery) -> None:
        """Wait until the last beat has had the time to arrive, and cancel the nursery that it runs in."""
        self._beats = len(self.written)
        with trio.move_on_after(10):
            for watcher in self.watchers:
                await watcher.wait_for(self._beats - 1)
        nursery.cancel_scope.cancel()

    async def _watch(self, watcher: Watcher, resource_version: str) -> None:
        configs = self.client.api(ConfigMap, namespace=self.namespace)

        def report(error: TrioformerError) -> None:
            self.retries.append(str(error))

        async with resuming_watch(configs, resource_version=resource_version, on_retry=report) as events:
            async for event in events:
                watcher.note(event.object)

    async def _beat(self) -> None:
        beats = self.writer.api(ConfigMap, namespace=self.namespace)
        while True:
            await beats.patch(BEAT, {"data": {"number": str(len(self.written))}})
            self.written.append(trio.current_time())
            await trio.sleep(BEAT_PERIOD)

    async def _request_steadily(self) -> None:
        """Begin a request every so often, however long the others take."""
        begin = trio.current_time()
        async with trio.open_nursery() as nursery:
            while True:
                await trio.sleep_until(begin + self.requests * 60 / PER_MINUTE)
                nursery.start_soon(self._request, self.requests)
                self.requests += 1

    async def _request(self, number: int) -> None:
        configs = self.client.api(ConfigMap, namespace=self.namespace)
        begin = trio.current_time()
        name = f"target-{number % 10}"
        try:
            match number % 4:
                case 0:
                    self.credentials[credential_id(await whoami(self.client))] = None
                case 1:
                    await configs.get(name)
                case 2:
                    await configs.patch(name, {"data": {"number": str(number)}})
                case _:
                    await configs.list()
        except TrioformerError as error:
            self.failures.append(f"request {number}: {error!r}")
        self.slowest = max(self.slowest, trio.current_time() - begin)
