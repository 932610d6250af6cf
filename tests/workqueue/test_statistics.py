"""The statistics of a queue, and the calls of its observer."""

from __future__ import annotations

import math

import attrs
import pytest
import trio
import trio.testing

from trioformer.workqueue import QueueObserver, RateLimitingQueue, WorkQueue

Clock = trio.testing.MockClock


@attrs.define(eq=False)
class Recorder:
    """Records the calls, and raises in the method that ``raises`` names."""

    log: list[tuple[object, ...]] = attrs.field(factory=list)
    raises: str = ""

    def _record(self, method: str, *arguments: object) -> None:
        self.log.append((method, *arguments))
        if method == self.raises:
            raise OSError(method)

    def added(self, key: str, *, priority: int) -> None:
        self._record("added", key, priority)

    def delayed(self, key: str, *, delay: float) -> None:
        self._record("delayed", key, delay)

    def taken(self, key: str, *, waited: float) -> None:
        self._record("taken", key, waited)

    def finished(self, key: str, *, duration: float) -> None:
        self._record("finished", key, duration)

    def take(self) -> list[tuple[object, ...]]:
        """Return the calls since the last take."""
        calls, self.log = self.log, []
        return calls


def implements(observer: QueueObserver[str]) -> QueueObserver[str]:
    return observer


def test_an_observer_with_an_async_method_is_refused() -> None:
    class Async(Recorder):
        async def taken(self, key: str, *, waited: float) -> None:  # type: ignore[override]  # the point
            raise AssertionError

    for kind in (WorkQueue, RateLimitingQueue):
        with pytest.raises(TypeError, match=r"observer\.taken must not be async"):
            kind[str](observer=Async())


async def test_depth_latency_and_unfinished_work_are_measured(mock_clock: Clock) -> None:
    """client-go: TestMetrics"""
    recorder = Recorder()
    queue = WorkQueue[str](observer=implements(recorder))
    queue.add("foo")
    assert recorder.take() == [("added", "foo", 0)]
    assert (queue.statistics().adds, queue.statistics().depth) == (1, 1)
    mock_clock.jump(50)
    async with queue.take():
        assert recorder.take() == [("taken", "foo", 50)]
        for _ in range(5):
            queue.add("foo")
        assert recorder.take() == [("added", "foo", 0)]
        assert (queue.statistics().adds, queue.statistics().depth) == (2, 1)
        mock_clock.jump(25)
        assert queue.statistics().depth == 1
    assert recorder.take() == [("finished", "foo", 25)]
    assert queue.statistics().depth == 1
    async with queue.take():
        assert recorder.take() == [("taken", "foo", 25)]
        mock_clock.jump(1)
        assert queue.statistics().unfinished_work == 1
        assert queue.statistics().longest_running == 1
    assert recorder.take() == [("finished", "foo", 1)]


async def test_measuring_needs_no_task_and_no_timer() -> None:
    """client-go: TestMetricShutdown"""
    before = trio.lowlevel.current_statistics()
    recorder = Recorder()
    queue = WorkQueue[str](observer=recorder)
    queue.add("a")
    queue.add_after("b", 5)
    async with queue.take():
        pass
    during = trio.lowlevel.current_statistics()
    assert during.tasks_living == before.tasks_living
    assert during.seconds_to_next_deadline == math.inf
    await queue.drain()
    recorder.take()
    queue.add("c")
    assert recorder.log == []


async def do_nothing(key: str) -> None:
    """Process a key."""


async def test_a_delayed_key_waits_from_its_due_time(mock_clock: Clock) -> None:
    recorder = Recorder()
    queue = WorkQueue[str](observer=recorder)
    queue.add_after("a", 5, priority=3)
    assert recorder.take() == [("delayed", "a", 5)]
    mock_clock.jump(7)
    async with queue.take():
        pass
    assert recorder.take() == [("added", "a", 3), ("taken", "a", 2), ("finished", "a", 0)]


async def test_a_key_that_becomes_due_for_a_waiting_worker_has_not_waited(autojump_clock: Clock) -> None:
    recorder = Recorder()
    queue = WorkQueue[str](observer=recorder)
    queue.add_after("a", 5)
    async with queue.take():
        await trio.sleep(2)
    assert recorder.take()[1:] == [("added", "a", 0), ("taken", "a", 0), ("finished", "a", 2)]


async def test_a_key_that_is_added_again_before_its_worker_runs_is_processed_once(
    mock_clock: Clock, nursery: trio.Nursery
) -> None:
    recorder = Recorder()
    queue = WorkQueue[str](observer=recorder)

    async def handle(key: str) -> None:
        await trio.lowlevel.checkpoint()

    nursery.start_soon(queue.process, handle)
    await trio.testing.wait_all_tasks_blocked()
    queue.add("a")
    queue.add("a")  # given to the worker, and added again
    await trio.testing.wait_all_tasks_blocked()
    queue.shut_down()
    assert recorder.take() == [("added", "a", 0), ("taken", "a", 0), ("finished", "a", 0)]


@pytest.mark.parametrize("kind", [WorkQueue, RateLimitingQueue])
@pytest.mark.parametrize("raises", ["added", "delayed", "taken", "finished"])
async def test_the_queue_stays_consistent_when_an_observer_raises(
    raises: str, kind: type[WorkQueue[str]], mock_clock: Clock
) -> None:
    recorder = Recorder()
    queue = kind(observer=recorder)
    queue.add("a")
    recorder.raises = raises

    async def act() -> None:
        if raises == "added":
            queue.add("b")
        elif raises == "delayed":
            queue.add_after("b", 5)
        else:
            async with queue.take():
                pass

    with pytest.raises(OSError, match=raises):
        await act()
    left = queue.remaining()
    assert left.processing == ()
    expected = {"added": {"a", "b"}, "delayed": {"a", "b"}, "taken": {"a"}, "finished": set[str]()}
    assert {*left.ready, *left.delayed} == expected[raises]
    recorder.raises = ""
    queue.shut_down()

    async def handle(key: str) -> None:
        expected[raises].discard(key)

    await queue.process(handle)
    assert expected[raises] == set(left.delayed)


async def test_no_due_key_is_lost_when_an_observer_raises(mock_clock: Clock) -> None:
    recorder = Recorder()
    queue = WorkQueue[str](observer=recorder)
    for key in "abc":
        queue.add_after(key, 1)
    mock_clock.jump(1)
    recorder.raises = "added"
    for key in ("d", "e"):
        with pytest.raises(OSError, match="added"):
            queue.add(key)
    with pytest.raises(OSError, match="added"):
        async with queue.take():
            pytest.fail("the observer raised before")
    assert queue.remaining().ready == ("b", "c", "d", "e", "a")
    recorder.raises = ""
    queue.add("b")
    assert [call[1] for call in recorder.take() if call[0] == "added"] == ["a", "b", "c", "d", "e", "a"]


async def test_a_waiting_worker_receives_its_key_when_the_observer_raises_in_add() -> None:
    recorder = Recorder()
    queue = WorkQueue[str](observer=recorder)
    seen = []

    async def handle(key: str) -> None:
        seen.append(key)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.process, handle)
        await trio.testing.wait_all_tasks_blocked()
        recorder.raises = "added"
        with pytest.raises(OSError, match="added"):
            queue.add("a")
        recorder.raises = ""
        await trio.testing.wait_all_tasks_blocked()
        assert seen == ["a"]
        nursery.cancel_scope.cancel()


async def test_a_worker_woken_by_its_deadline_puts_its_key_back_when_observers_raise(autojump_clock: Clock) -> None:
    recorder = Recorder(raises="added")
    queue = WorkQueue[str](observer=recorder)
    for key in "ab":
        queue.add_after(key, 1)
    with pytest.raises(OSError, match="added"):
        async with queue.take():
            pytest.fail("the observer raised before")
    assert queue.remaining().processing == ()
    assert sorted(queue.remaining().ready) == ["a", "b"]
    assert queue._reports is not None
    assert queue._reports.waited == {}
