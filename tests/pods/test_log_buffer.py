"""The buffer between those that follow logs and the reader."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trioformer.pods import LogLine
from trioformer.pods._log_buffer import LogBuffer


def lines(*texts: str, pod: str = "web-0") -> list[LogLine]:
    return [LogLine(data=text.encode(), pod=pod, namespace="default", container="main") for text in texts]


async def test_a_full_buffer_makes_writers_wait_in_turn(nursery: trio.Nursery) -> None:
    buffer = LogBuffer(2, "block")
    nursery.start_soon(buffer.put_all, lines("1", "2", "3"))
    await wait_all_tasks_blocked()
    nursery.start_soon(buffer.put_all, lines("4"))
    await wait_all_tasks_blocked()
    assert [str(line) for line in await buffer.take(1)] == ["1"]
    await wait_all_tasks_blocked()
    assert [str(line) for line in await buffer.take(9)] == ["2", "3"]
    await wait_all_tasks_blocked()
    assert [str(line) for line in await buffer.take(9)] == ["4"]
    assert (buffer.high_water, buffer.delivered, buffer.omitted) == (2, 4, 0)


async def test_coalescing_counts_the_lines_of_each_container_that_are_left_out() -> None:
    buffer = LogBuffer(2, "coalesce")
    await buffer.put_all(lines("1", "2", "3", "4"))
    await buffer.put_all(lines("a", pod="other"))
    assert [line.omitted for line in await buffer.take(9)] == [0, 0]
    await buffer.put_all(lines("5", "6"))
    assert [(str(line), line.omitted) for line in await buffer.take(9)] == [("5", 2), ("6", 0)]
    await buffer.put_all(lines("b", pod="other"))
    assert [(str(line), line.omitted) for line in await buffer.take(9)] == [("b", 1)]
    assert buffer.omitted == 3


async def test_a_failure_wakes_the_reader_and_the_writers(nursery: trio.Nursery) -> None:
    buffer = LogBuffer(1, "block")
    nursery.start_soon(buffer.put_all, lines("1", "2"))
    await wait_all_tasks_blocked()
    buffer.fail(OSError("first"))
    buffer.fail(OSError("second"))
    await wait_all_tasks_blocked()
    with pytest.raises(OSError, match="first"):
        await buffer.take(1)
    empty = LogBuffer(1, "block")

    async def read() -> None:
        with pytest.raises(OSError, match="third"):
            await empty.take(1)

    nursery.start_soon(read)
    await wait_all_tasks_blocked()
    with pytest.raises(trio.BusyResourceError):
        await empty.take(1)
    empty.fail(OSError("third"))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="buffer_size must be an int of at least 1, not 0"):
        LogBuffer(0, "block")
    with pytest.raises(ValueError, match="overflow must be 'coalesce' or 'block', not 'drop'"):
        LogBuffer(1, "drop")  # type: ignore[arg-type]  # that is the mistake
