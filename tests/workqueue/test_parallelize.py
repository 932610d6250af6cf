"""parallelize(): many items in a few tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest
import trio
import trio.lowlevel
import trio.testing

from trioformer import _util
from trioformer.workqueue import parallelize


@pytest.mark.parametrize(("workers", "pieces"), [(10, 1_000), (10, 999), (1, 5), (10, 3), (5, 0)])
async def test_the_function_is_called_once_for_every_item(workers: int, pieces: int) -> None:
    """client-go: TestParallelizeUntil"""
    seen = Counter[int]()
    busy = most = 0

    async def work(piece: int) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await trio.lowlevel.checkpoint()
        seen[piece] += 1
        busy -= 1

    await parallelize(workers, range(pieces), work)
    assert seen == Counter(range(pieces))
    assert most == min(workers, pieces)


async def test_items_are_read_when_a_worker_is_free(autojump_clock: trio.testing.MockClock) -> None:
    read = 0

    def endless() -> Iterator[int]:
        nonlocal read
        while True:
            read += 1
            yield read

    async def work(item: int) -> None:
        await trio.sleep(1)

    with trio.move_on_after(10.5):
        await parallelize(3, endless(), work)
    assert read == 33


async def test_the_first_error_cancels_the_other_workers_and_is_in_a_group() -> None:
    begun = []

    async def work(item: int) -> None:
        begun.append(item)
        if item == 2:
            raise KeyError(item)
        await trio.sleep_forever()

    with pytest.raises(ExceptionGroup) as caught:
        await parallelize(3, range(100), work)
    assert [repr(error) for error in caught.value.exceptions] == ["KeyError(2)"]
    assert len(begun) <= 3


@pytest.mark.parametrize("good", [0, 1, 5])
async def test_an_error_of_the_iterable_is_in_a_group(good: int) -> None:
    def items() -> Iterator[int]:
        yield from range(good)
        raise KeyError

    async def work(item: int) -> None:
        await trio.lowlevel.checkpoint()

    with pytest.raises(ExceptionGroup) as caught:
        await parallelize(3, items(), work)
    assert caught.group_contains(KeyError)


async def test_after_a_cancellation_the_iterator_has_the_items_not_read() -> None:
    items = iter(range(10))

    async def work(item: int) -> None:
        if item == 4:
            scope.cancel()
        await trio.lowlevel.checkpoint()

    with trio.CancelScope() as scope:
        await parallelize(1, items, work)
    assert list(items) == [5, 6, 7, 8, 9]


async def test_work_that_never_waits_lets_other_tasks_run(
    monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(_util, "SLICE_ITEMS", 10)
    done = 0
    seen = set()

    async def work(item: int) -> None:
        nonlocal done
        done += 1

    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            while True:
                seen.add(done)
                await trio.lowlevel.checkpoint()

        nursery.start_soon(watch)
        await parallelize(1, range(100), work)
        nursery.cancel_scope.cancel()
    # Which of two tasks runs first is random, so the watching task may run after two slices.
    assert max(after - before for before, after in pairwise(sorted(seen))) <= 20


@pytest.mark.parametrize("workers", [0, -1])
async def test_parallelize_needs_at_least_one_worker(workers: int) -> None:
    async def work(item: int) -> None:
        pytest.fail("there is no worker")

    with pytest.raises(ValueError, match="workers must be at least 1"):
        await parallelize(workers, [1], work)
