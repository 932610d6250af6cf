"""Followers of a log whose container is started again, or whose reads are ended, in virtual time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.pods.test_logs import STAMP, body, ended, in_state, lines_of, log_requests, running
from trioformer.client import Api
from trioformer.errors import NotFoundError
from trioformer.models.core_v1 import Pod
from trioformer.pods import follow_logs
from trioformer.pods._read_logs import follow_instance
from trioformer.testing import APIServer, ScriptedPod

# --- restarts ---


@pytest.mark.parametrize("gap", [0.01, 0.79])
async def test_the_lines_of_a_container_that_restarts_after_the_response_are_its_own(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock, gap: float
) -> None:
    async def play() -> None:
        await trio.sleep(8)
        web.write_log("two")
        await trio.sleep(0.1)
        web.disconnect("clean")  # the status still says that it runs
        await trio.sleep(gap)
        web.write_log("last words")
        web.restart()
        web.write_log("of the next instance")

    web.write_log("one")
    with trio.fail_after(600):
        async with follow_logs(pods, "web-0") as lines:
            nursery.start_soon(play)
            assert [line.text async for line in lines] == ["one", "two", "last words"]


def restarted(times: int = 1) -> Any:
    return in_state(times, running={})


async def test_the_rest_is_that_of_the_instance_if_it_is_restarted_before_the_response(
    autojump_clock: MockClock,
) -> None:
    one, two, other = STAMP + b"one\n", STAMP + b"two\n", STAMP + b"of the next instance\n"
    crashed = in_state(0, terminated={"exitCode": 1}, phase="Running")
    found = await lines_of(running(), body(one), crashed, body(other), restarted(), body(one, two), restarted())
    assert [line.text for line in found] == ["one", "two"]


async def test_a_log_is_lost_if_the_container_is_restarted_again_before_the_response(
    autojump_clock: MockClock,
) -> None:
    one, other, failures = STAMP + b"one\n", STAMP + b"of the next instance\n", list[Exception]()
    replies = (running(), body(one), restarted(), body(other), restarted(2), restarted(2))
    found = await lines_of(*replies, on_retry=failures.append)
    assert [line.text for line in found] == ["one"]
    assert [type(each) for each in failures] == [NotFoundError]


async def test_two_restarts_in_an_outage_end_the_lines_and_say_that_the_rest_is_lost(
    web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web.write_log("of the first instance")
    failures: list[Exception] = []
    async with follow_logs(pods, "web-0", on_retry=failures.append) as lines:
        assert str(await anext(lines)) == "of the first instance"
        web.disconnect()
        for _ in range(2):
            web.restart()
            web.write_log("of another instance")
        assert [line.text async for line in lines] == []
    assert "the rest of the log is lost" in str(failures[-1])
    assert len(failures) == 2


async def test_an_instance_is_chosen_by_its_number_of_restarts(web: ScriptedPod, pods: Api[Pod]) -> None:
    failures: list[Exception] = []
    for restarts in range(3):
        web.write_log(f"of instance {restarts}")
        if restarts < 2:
            web.restart()
    async with follow_instance(pods, "web-0", restart_count=0, on_retry=failures.append) as lines:
        assert [line.text async for line in lines] == []
    assert "the rest of the log is lost" in str(failures[-1])
    async with follow_instance(pods, "web-0", restart_count=1) as lines:
        assert [line.text async for line in lines] == ["of instance 1"]


# --- the first request ---


async def test_a_server_that_is_away_at_the_first_read_leaves_the_chosen_lines(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def be_away() -> None:
        with api_server.unreachable():
            await trio.sleep(1)
        await trio.sleep(10)
        web.write_log("new")
        web.end()

    web.write_log(*map(str, range(50)))
    async with follow_logs(pods, "web-0", tail_lines=3, on_retry=lambda _: None) as lines:
        nursery.start_soon(be_away)
        await wait_all_tasks_blocked()
        assert [line.text async for line in lines] == ["47", "48", "49", "new"]


async def test_a_cancelled_first_read_leaves_the_chosen_lines(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, autojump_clock: MockClock
) -> None:
    web.write_log(*map(str, range(50)))
    for steps in range(40):
        async with follow_logs(pods, "web-0", tail_lines=3) as lines:
            found: list[str] = []
            scope = trio.CancelScope()

            async def read(lines: Any = lines, found: list[str] = found, scope: Any = scope) -> None:
                with scope:
                    found.extend(map(str, await lines.receive_batch()))

            async with trio.open_nursery() as readers:
                readers.start_soon(read)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
            with trio.move_on_after(10):
                while True:
                    found.append(str(await anext(lines)))
            assert found == ["47", "48", "49"]


async def test_lines_that_follow_a_silent_tail_are_all_returned(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def play() -> None:
        await trio.sleep(5)
        web.disconnect("clean")
        web.write_log(*map(str, range(8)))
        await trio.sleep(40)
        web.end()

    web.write_log("old")
    await trio.sleep(100)
    async with follow_logs(pods, "web-0", since=10, tail_lines=3) as lines:
        nursery.start_soon(play)
        assert [line.text async for line in lines] == [str(number) for number in range(8)]
    assert log_requests(api_server)[1].get("tailLines") is None


# --- the end of the block, and of reads ---


@pytest.mark.parametrize("how", ["clean", "reset"])
async def test_the_end_of_the_block_ends_a_read_in_another_task_whatever_it_does(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, autojump_clock: MockClock, how: Any
) -> None:
    async def check(seconds: float, steps: int = 0) -> None:
        errors: list[Exception] = []

        async def read() -> None:
            with pytest.raises(trio.ClosedResourceError) as caught:
                async for _ in lines:
                    pass
            errors.append(caught.value)

        async with trio.open_nursery() as readers:
            async with follow_logs(pods, "web-0", on_retry=lambda _: None) as lines:
                readers.start_soon(read)
                await trio.sleep(10)
                web.disconnect(how)
                await trio.sleep(seconds)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
            await trio.sleep(60)
            web.write_log("after the end")
            await trio.sleep(5)
            assert len(errors) == 1
            assert repr(lines).endswith(": closed>")
        assert api_server.statistics().followed_logs == 0

    web.write_log("one")
    for seconds in (0.005, 0.01, 0.3, 0.6, 0.9, 1.2, 1.8, 2.5):
        await check(seconds)
    for steps in range(40):
        await check(0, steps)


# --- the clock of the node ---


async def test_no_line_is_lost_after_the_clock_of_the_node_was_set_back(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def play() -> None:
        web.write_log("a")
        await trio.sleep(5)
        now = api_server.clock() - timedelta(seconds=30)
        web.write_log("b", time=now)
        await trio.sleep(2)
        web.disconnect()
        web.write_log("c", time=now + timedelta(seconds=1))
        await trio.sleep(4)
        web.write_log("d", time=now + timedelta(seconds=5))
        await trio.sleep(30)
        web.write_log("e", time=now + timedelta(seconds=36))
        web.end()

    async with follow_logs(pods, "web-0", on_retry=lambda _: None) as lines:
        nursery.start_soon(play)
        assert [line.text async for line in lines] == ["a", "b", "c", "d", "e"]


async def test_a_pod_that_has_ended_is_not_read_again_for_its_last_lines(autojump_clock: MockClock) -> None:
    one = STAMP + b"one\n"
    began = trio.current_time()
    assert len(await lines_of(running(), body(one), ended(), body(one))) == 1
    assert trio.current_time() - began < 2
