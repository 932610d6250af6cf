"""The order of tasks in trio."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing
from trio._core import _run

from trioformer.testing.simulation import Schedule
from trioformer.testing.simulation._schedule import MOST_BATCHES, Order, ordered


def order_of_tasks(schedule: Schedule, replica_of: Callable[[object], int] = lambda _: -1) -> list[int]:
    """Return the order in which ten tasks run three times each."""
    found: list[int] = []

    async def note(number: int) -> None:
        for _ in range(3):
            found.append(number)
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(note, number, name=str(number))

    with ordered(Order(schedule, replica_of, lambda: 0.0, lambda: None)):
        trio.run(main, clock=trio.testing.MockClock())
    return found


def test_tasks_run_in_the_order_in_which_they_were_spawned() -> None:
    assert order_of_tasks(Schedule()) == [*range(10)] * 3


def test_a_random_order_depends_on_the_number_only() -> None:
    one, same, other = (order_of_tasks(Schedule(policy="random", number=number)) for number in (1, 1, 2))
    assert one == same
    assert one != other
    assert sorted(one[:10]) == [*range(10)]


def test_one_replica_is_late_in_most_batches() -> None:
    def replica_of(task: object) -> int:
        return int(str(getattr(task, "name", "")).isdecimal() and getattr(task, "name", "") < "5")

    found = order_of_tasks(Schedule(policy="late", number=1), replica_of)
    batches = [found[start : start + 10] for start in (0, 10, 20)]
    assert sum(batch == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4] for batch in batches) in (2, 3)


def test_trio_is_as_before_after_the_block() -> None:
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    order_of_tasks(Schedule())
    assert (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r) == before


def test_a_trio_without_the_hook_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_run, "_r")
    with pytest.raises(RuntimeError, match="trio"):
        order_of_tasks(Schedule())


def test_a_loop_at_one_instant_is_noticed_once() -> None:
    stops: list[int] = []
    order = Order(Schedule(), lambda _: -1, lambda: 0.0, lambda: stops.append(1))
    for _ in range(MOST_BATCHES + 10):
        order.shuffle([])
    assert stops == [1]
