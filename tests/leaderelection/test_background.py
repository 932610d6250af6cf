"""A task beside a block: what reaches the block, what reaches the task, and what leaves."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer.leaderelection._background import background


async def test_the_task_runs_until_the_block_has_ended(autojump_clock: trio.testing.MockClock) -> None:
    steps: list[str] = []

    async def task() -> None:
        try:
            steps.append("begins")
            await trio.sleep_forever()
        finally:
            steps.append("ends")

    async with background(task):
        await trio.sleep(1)
        steps.append("the block ends")
    assert steps == ["begins", "the block ends", "ends"]


@pytest.mark.parametrize("raised", [KeyError("mine"), KeyboardInterrupt(), ExceptionGroup("two", [OSError()])])
async def test_what_the_block_raises_leaves_unchanged(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught:
        async with background(trio.sleep_forever):
            raise raised
    assert caught.value is raised


async def test_a_cancellation_reaches_the_task_only_when_the_block_has_ended(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended: list[tuple[str, float]] = []

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(("task", trio.current_time()))

    with trio.move_on_after(1) as scope:
        async with background(task):
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(5)
                ended.append(("block", trio.current_time()))
    assert scope.cancelled_caught
    assert ended == [("block", 6), ("task", 6)]


async def test_a_block_without_checkpoint_ends_normally_although_the_caller_is_cancelled() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        async with background(trio.sleep_forever):
            pass
        reached = True
    assert reached
    assert not scope.cancelled_caught


async def test_a_task_that_ends_slowly_is_waited_for_without_a_cancellation(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)

    with trio.move_on_after(1) as scope:
        async with background(task):
            scope.cancel()
            error = KeyError("mine")
            with pytest.raises(KeyError):
                async with background(task):
                    raise error
        assert trio.current_time() == 6
    assert not scope.cancelled_caught


async def test_an_error_of_the_task_cancels_the_block_and_leaves_in_a_group() -> None:
    async def task() -> None:
        raise KeyError("the task's")

    with pytest.RaisesGroup(KeyError):
        async with background(task):
            await trio.sleep_forever()
