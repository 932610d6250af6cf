"""``examples/workqueue_controller.py``: handlers, queue, workers and retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from examples.workqueue_controller import Item, PodController
from tests.support.processes import HERE_OR_AS_PROCESS, Result
from trioformer import Client, SharedInformerFactory
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

PROGRAM = "examples/workqueue_controller.py"


def create(server: APIServer, name: str, phase: str = "Running") -> None:
    metadata = {"name": name, "namespace": "default"}
    status = {"phase": phase}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status})


def change(server: APIServer, name: str, phase: str) -> None:
    server.patch(Pod, name, {"status": {"phase": phase}})


@attrs.define(eq=False)
class RecordingController(PodController):
    """The example's controller; records when it processes which key, and how many at the same time."""

    duration: float = 0.0
    synced: list[tuple[str, float]] = attrs.field(factory=list)
    in_progress: Counter[str] = attrs.field(factory=Counter)
    max_concurrent: int = 0

    async def sync(self, item: Item) -> None:
        assert not self.in_progress[item.key], "two workers process one key"
        self.in_progress[item.key] += 1
        self.max_concurrent = max(self.max_concurrent, self.in_progress.total())
        self.synced.append((item.key.removeprefix("default/"), trio.current_time()))
        try:
            await trio.sleep(self.duration)
            await super().sync(item)
        finally:
            self.in_progress[item.key] -= 1

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.synced]


@asynccontextmanager
async def running_controller(
    client: Client, *, workers: int = 2, duration: float = 0.0
) -> AsyncIterator[RecordingController]:
    """Run a controller while the block runs, and then shut it down gracefully."""
    factory = SharedInformerFactory(client)
    controller = RecordingController(factory.informer(Pod), duration=duration)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        async with trio.open_nursery() as working:
            working.start_soon(controller.run, workers, stop)
            await wait_all_tasks_blocked()
            yield controller
            stop.set()
        nursery.cancel_scope.cancel()


async def test_pods_are_processed_when_they_are_added_changed_and_deleted(
    autojump_clock: MockClock, api_server: APIServer, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    create(api_server, "web-0")
    async with running_controller(client):
        await trio.sleep(1)
        create(api_server, "web-1")
        await trio.sleep(1)
        change(api_server, "web-1", "Failed")
        await trio.sleep(1)
        api_server.delete(Pod, "web-0")
        await trio.sleep(1)
    assert capsys.readouterr().out.splitlines() == [
        "Pod default/web-0: Running",
        "Pod default/web-1: Running",
        "Pod default/web-1: Failed",
        "Pod default/web-0 does not exist any more",
    ]


async def test_a_failing_pod_is_retried_five_times_and_dropped_until_its_next_event(
    autojump_clock: MockClock, api_server: APIServer, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_controller(client) as controller:
        begin = trio.current_time()
        create(api_server, "web-0", "Pending")
        await trio.sleep(1_000)
        times = [round(at - begin, 6) for _, at in controller.synced]
        assert times == [0, 0.005, 0.015, 0.035, 0.075, 0.155]  # 5 ms, twice as long each time
        assert controller.queue.num_requeues(Item("Pod", "default/web-0")) == 0
        change(api_server, "web-0", "Running")
        await trio.sleep(1_000)
    retries = [f"Pod default/web-0: it is pending; retry {number}" for number in range(1, 6)]
    assert capsys.readouterr().out.splitlines() == [
        *retries,
        "Pod default/web-0: it is pending; dropped after 5 retries",
        "Pod default/web-0: Running",
    ]


async def test_changes_during_an_outage_are_processed_after_it(
    autojump_clock: MockClock, api_server: APIServer, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    create(api_server, "web-0")
    create(api_server, "web-1")
    async with running_controller(client):
        with api_server.unreachable():
            api_server.delete(Pod, "web-0")
            change(api_server, "web-1", "Succeeded")
            create(api_server, "web-2")
            await trio.sleep(60)
        api_server.compact()
        await trio.sleep(300)
    lines = set(capsys.readouterr().out.splitlines())
    missed = {"Pod default/web-0 does not exist any more", "Pod default/web-1: Succeeded", "Pod default/web-2: Running"}
    assert missed <= lines


async def test_shutdown_finishes_the_queued_pods_and_accepts_no_new_ones(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    async def create_late() -> None:
        await trio.sleep(0.7)
        create(api_server, "late")

    for number in range(4):
        create(api_server, f"web-{number}")
    async with running_controller(client, workers=2, duration=1) as controller:
        nursery.start_soon(create_late)
        await trio.sleep(0.5)
    assert api_server.get(Pod, "late")
    assert sorted(controller.names) == ["web-0", "web-1", "web-2", "web-3"]
    assert controller.in_progress.total() == 0
    assert not controller.queue.remaining()


async def test_shutdown_is_bounded(autojump_clock: MockClock, api_server: APIServer, client: Client) -> None:
    create(api_server, "web-0")
    async with running_controller(client, duration=1_000_000):
        end = trio.current_time()
    assert trio.current_time() == end + 10


@pytest.mark.parametrize("result", HERE_OR_AS_PROCESS)
def test_embedded_it_shows_retries_a_drop_and_a_success(result: Result) -> None:
    code, lines, errors = result(PROGRAM, "--embedded", "--workers", "1", is_virtual=True, interrupt_after=5)
    dropped = next(line for line in lines if "dropped after 5 retries" in line)
    back = f"{dropped.partition(':')[0]}: Running"
    assert back in lines[lines.index(dropped) :]
    assert any("does not exist any more" in line for line in lines)
    assert (code, errors) == (0, [])
