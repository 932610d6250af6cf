"""Which connection gives way to a new one."""

from __future__ import annotations

from functools import partial

import trio
import trio.testing

from trioformer._serving._places import Places


async def wait_in(places: Places, log: list[str], name: str, *, seconds: float = 1_000) -> None:
    await places.take()
    log.append(f"{name} has a place")
    try:
        with places.waiting(seconds):
            await trio.sleep_forever()
        log.append(f"{name} is closed at {trio.current_time():g}")
    finally:
        places.release()


async def test_the_connection_that_has_waited_longest_gives_way(autojump_clock: trio.testing.MockClock) -> None:
    places, log = Places(2), list[str]()
    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(wait_in, places, log, name)
            await trio.testing.wait_all_tasks_blocked()
        assert log == ["a has a place", "b has a place", "a is closed at 0", "c has a place"]
        nursery.cancel_scope.cancel()


async def test_a_new_connection_waits_while_all_others_serve_requests(autojump_clock: trio.testing.MockClock) -> None:
    places, log = Places(2), list[str]()

    async def busy() -> None:
        await places.take()
        await trio.sleep(7)
        places.release()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(busy)
        nursery.start_soon(busy)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(partial(wait_in, places, log, "c", seconds=1))
    assert log == ["c has a place", "c is closed at 8"]


async def test_a_connection_that_waits_no_longer_is_not_closed(autojump_clock: trio.testing.MockClock) -> None:
    places = Places(1)
    with places.waiting(5) as scope:
        pass
    places.close_one()
    assert not scope.cancel_called


async def test_a_cancelled_wait_takes_no_place(autojump_clock: trio.testing.MockClock) -> None:
    places = Places(1)
    await places.take()
    with trio.move_on_after(1):
        await places.take()
    places.release()
    with trio.fail_after(1):
        await places.take()
