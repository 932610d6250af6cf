"""Helpers of all packages: a nursery whose tasks serve a block, errors that are stored, and a limit of log lines."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer._util import MAX_LOG_KEYS, LogLimit, open_serving_nursery, remove_frames


@pytest.mark.parametrize("raised", [KeyError("mine"), KeyboardInterrupt(), ExceptionGroup("two", [OSError()])])
async def test_what_the_block_of_a_serving_nursery_raises_leaves_unchanged(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught:  # noqa: PT012  # the block is what raises
        async with open_serving_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise raised
    assert caught.value is raised


async def test_the_tasks_of_a_serving_nursery_end_with_the_block(autojump_clock: trio.testing.MockClock) -> None:
    ended: list[float] = []

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    async with open_serving_nursery() as nursery:
        nursery.start_soon(task)
        await trio.sleep(3)
    assert ended == [3]


async def test_a_cancellation_of_a_serving_nursery_is_not_raised_in_a_group() -> None:
    left: list[type[BaseException]] = []
    with trio.CancelScope() as scope:
        try:
            async with open_serving_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                await trio.sleep_forever()
        except BaseException as error:
            left.append(type(error))
            raise
    assert left == [trio.Cancelled]


async def test_an_error_of_a_task_cancels_the_block_of_a_serving_nursery() -> None:
    async def task() -> None:
        raise KeyError("the task's")

    with pytest.RaisesGroup(KeyError):
        async with open_serving_nursery() as nursery:
            nursery.start_soon(task)
            await trio.sleep_forever()


def test_an_error_remove_frames_keeps_its_causes_and_contexts_without_theirs() -> None:
    def fail() -> None:
        try:
            {}["context"]
        except KeyError:
            raise ValueError("cause")  # noqa: B904  # a context, not a cause

    with pytest.raises(ValueError, match="cause") as caught:
        fail()
    stored = OSError("stored")
    stored.__cause__ = cause = caught.value
    context = cause.__context__
    assert isinstance(context, KeyError)
    context.__context__ = cause  # a cycle, which a program can make
    remove_frames(stored)
    assert (stored.__cause__, cause.__context__) == (cause, context)
    assert [each.__traceback__ for each in (stored, cause, context)] == [None, None, None]


async def test_a_log_limit_allows_a_line_per_key_and_period(autojump_clock: trio.testing.MockClock) -> None:
    limit = LogLimit(60)
    assert [limit.count(key) for key in "ababa"] == [1, 1, 0, 0, 0]
    await trio.sleep(60)
    assert [limit.count(key) for key in "abab"] == [3, 2, 0, 0]


async def test_a_log_limit_sums_up_what_it_has_suppressed(autojump_clock: trio.testing.MockClock) -> None:
    limit = LogLimit(60)
    for example, key in enumerate("abaca"):
        limit.count(key, str(example))
    assert list(limit.sum_up()) == [("a", 2, "4")]
    assert list(limit.sum_up()) == []
    assert limit.count("a") == 1


async def test_a_log_limit_may_allow_several_lines_a_period(autojump_clock: trio.testing.MockClock) -> None:
    limit = LogLimit(60, lines=2)
    for _ in range(2):
        assert [limit.count("a") for _ in range(4)][1:] == [1, 0, 0]
        await trio.sleep(60)
    assert limit.count("a") == 3


async def test_a_log_limit_forgets_the_oldest_line(autojump_clock: trio.testing.MockClock) -> None:
    limit = LogLimit(60)
    assert {limit.count(key) for key in range(MAX_LOG_KEYS + 1)} == {1}
    assert (limit.count(1), limit.count(0)) == (0, 1)
