"""The logs of all pods of a selector, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trioformer import Api, Client, SharedInformerFactory
from trioformer.errors import ForbiddenError, SelectorError
from trioformer.models import from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.pods import follow_logs_of
from trioformer.pods._follow_logs_of import FollowedLogs
from trioformer.pods._log_lines import LogLine
from trioformer.testing import APIServer, ScriptedPod


def start(server: APIServer, name: str, *containers: str, app: str = "web") -> ScriptedPod:
    spec = {"containers": [{"name": each} for each in containers or ("main",)]}
    server.create(from_dict(Pod, {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}))
    return server.script_pod(name)


async def next_lines(logs: FollowedLogs, count: int) -> list[str]:
    """Return so many lines, sorted: there is no order between containers."""
    found = [await anext(logs) for _ in range(count)]
    return sorted(f"{line.pod}/{line.container}: {line}" for line in found)


async def test_the_logs_of_pods_that_come_and_go_are_followed(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    first = start(api_server, "web-0", "a", "b")
    start(api_server, "db-0", app="db").write_log("not selected")
    first.write_log("one", container="a")
    first.write_log("two", container="b")
    async with follow_logs_of(pods, label_selector="app=web") as logs:
        assert await next_lines(logs, 2) == ["web-0/a: one", "web-0/b: two"]
        second = start(api_server, "web-1")
        second.write_log("three")
        assert await next_lines(logs, 1) == ["web-1/main: three"]
        assert logs._open == api_server.statistics().followed_logs == 3
        first.write_log("last", container="a")
        api_server.delete(Pod, "web-0")
        assert await next_lines(logs, 1) == ["web-0/a: last"]
        await trio.sleep(20)
        assert logs._open == 1
    await wait_all_tasks_blocked()
    assert (api_server.statistics().followed_logs, api_server.statistics().open_watches) == (0, 0)


async def test_a_pod_that_is_not_running_yet_is_followed_from_its_first_line(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main"}]}}))
    async with follow_logs_of(pods, tail_lines=0) as logs:
        await trio.sleep(5)
        web = api_server.script_pod("web-0")
        web.write_log("one")
        assert await next_lines(logs, 1) == ["web-0/main: one"]


async def test_instances_are_followed_one_after_the_other(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0")
    async with follow_logs_of(pods) as logs:
        for number in range(3):
            web.write_log(f"begin {number}")
            assert await next_lines(logs, 1) == [f"web-0/main: begin {number}"]
            web.write_log(f"end {number}")
            web.restart()
            assert await next_lines(logs, 1) == [f"web-0/main: end {number}"]


@pytest.mark.parametrize("gap", [0.01, 0.79])
async def test_a_restart_just_after_the_end_of_a_response_repeats_and_loses_no_line(
    api_server: APIServer, pods: Api[Pod], nursery: trio.Nursery, gap: float, autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0")

    async def play() -> None:
        web.write_log("0 begin")
        await trio.sleep(8)
        web.disconnect("clean")  # a kubelet writes the status up to a second after the end of the response
        await trio.sleep(gap)
        web.write_log("0 end")
        web.restart()
        for number in range(3):
            web.write_log(f"1 line {number}")
            await trio.sleep(5)

    found: list[str] = []
    async with follow_logs_of(pods, on_retry=lambda error: None) as logs:
        nursery.start_soon(play)
        with trio.move_on_after(60):
            while True:
                found.append(str(await anext(logs)))
        # there is no order between instances
        assert sorted(found) == ["0 begin", "0 end", "1 line 0", "1 line 1", "1 line 2"]
        assert logs._open == 1


async def test_a_pod_that_has_ended_is_read_once(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web = start(api_server, "job-0")
    web.write_log("one", "two")
    web.end()
    async with follow_logs_of(pods) as logs:
        assert await next_lines(logs, 2) == ["job-0/main: one", "job-0/main: two"]
        api_server.patch(Pod, "job-0", {"metadata": {"labels": {"seen": "true"}}})
        await trio.sleep(100)
        assert logs._open == 0


async def test_only_the_chosen_containers_and_lines_are_followed(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0", "main", "sidecar")
    web.write_log("one", "two", container="main")
    web.write_log("beside", container="sidecar")
    async with follow_logs_of(pods, containers=["main"], tail_lines=1) as logs:
        assert await next_lines(logs, 1) == ["web-0/main: two"]
        await trio.sleep(5)
        assert logs._open == 1
        web.restart(container="main")
        web.write_log("three", "four", container="main")
        assert await next_lines(logs, 2) == ["web-0/main: four", "web-0/main: three"]


async def test_the_informer_of_a_factory_is_shared(
    api_server: APIServer, client: Client, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0")
    factory = SharedInformerFactory(client)
    factory.informer(Pod, namespace="default")
    await nursery.start(factory.run)
    async with follow_logs_of(pods, factory=factory) as logs:
        web.write_log("one")
        assert await next_lines(logs, 1) == ["web-0/main: one"]
        assert len(factory.informers) == 1
        assert api_server.statistics().open_watches == 1
    assert len(factory.informers) == 1


@pytest.mark.parametrize("how", ["clean", "reset"])
async def test_broken_connections_and_a_server_that_is_away_lose_and_repeat_nothing(
    api_server: APIServer, pods: Api[Pod], nursery: trio.Nursery, how: Any, autojump_clock: MockClock
) -> None:
    scripted = [start(api_server, f"web-{number}") for number in range(3)]

    async def play() -> None:
        for number in range(60):
            for each in scripted:
                each.write_log(f"line {number}")
                if number % 20 == 7:
                    each.disconnect(how)
            await trio.sleep(0.3)
            if number == 30:
                with api_server.unreachable():
                    await trio.sleep(45)

    failures: list[Exception] = []
    async with follow_logs_of(pods, on_retry=failures.append) as logs:
        nursery.start_soon(play)
        found = [await anext(logs) for _ in range(180)]
        with trio.move_on_after(100):
            pytest.fail(f"repeated: {await anext(logs)}")
    for each in scripted:
        assert [line.text for line in found if line.pod == each.name] == [f"line {number}" for number in range(60)]


async def test_a_slow_reader_gets_every_line(api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock) -> None:
    web = start(api_server, "web-0")
    async with follow_logs_of(pods, buffer_size=5) as logs:
        for number in range(50):
            web.write_log(f"line {number}")
            await wait_all_tasks_blocked()
        found = [str(each) for each in await logs.receive_batch()]
        assert len(found) < 10
        found += [str(await anext(logs)) for _ in range(50 - len(found))]
        assert found == [f"line {number}" for number in range(50)]


async def test_further_containers_wait_for_a_place(
    api_server: APIServer, pods: Api[Pod], caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    first = start(api_server, "web-0")
    first.write_log("one")
    async with follow_logs_of(pods, max_containers=1) as logs:
        assert await next_lines(logs, 1) == ["web-0/main: one"]
        start(api_server, "web-1").write_log("two")
        await trio.sleep(1)
        assert logs._open == 1
        assert "pod default/web-1: its log waits" in caplog.text
        first.end()
        assert await next_lines(logs, 1) == ["web-1/main: two"]


async def test_a_missing_permission_is_raised_to_the_reader(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    api_server.fail_next(1000, verb="list", status=403)
    async with follow_logs_of(pods) as logs:
        with pytest.raises(ForbiddenError, match="list pods in namespace default"):
            await anext(logs)


async def test_a_missing_permission_for_logs_is_raised_to_the_reader(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0").write_log(*map(str, range(10)))
    async with follow_logs_of(pods, buffer_size=1) as logs:
        await trio.sleep(1)
        api_server.fail_next(verb="get", status=lambda record: 403 if record.subresource == "log" else None)
        start(api_server, "web-1")
        await trio.sleep(1)
        with pytest.raises(ForbiddenError, match="pods/web-1/log"):
            await anext(logs)


async def test_a_log_that_cannot_be_read_for_a_while_is_requested_again(
    api_server: APIServer, pods: Api[Pod], caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    start(api_server, "web-0").write_log("one")
    codes = iter([500, 400, 503])
    api_server.fail_next(3, status=lambda record: next(codes) if record.subresource == "log" else None)
    async with follow_logs_of(pods) as logs:
        assert await next_lines(logs, 1) == ["web-0/main: one"]
    assert len(caplog.records) >= 3


async def test_a_log_on_a_node_that_is_gone_ends_after_its_pod(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0")
    async with follow_logs_of(pods) as logs:
        web.write_log("one")
        assert await next_lines(logs, 1) == ["web-0/main: one"]
        web.disconnect("stall")
        await trio.sleep(1)
        api_server.delete(Pod, "web-0")
        await trio.sleep(5)
        assert logs._open == 1
        await trio.sleep(6)
        assert logs._open == 0


async def test_a_slow_reader_gets_the_whole_log_of_a_deleted_pod(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0")
    expected = [f"line {number}" for number in range(400)]
    async with follow_logs_of(pods, buffer_size=10) as logs:
        for begin in range(0, 400, 100):  # each is received on its own
            web.write_log(*expected[begin : begin + 100])
            await wait_all_tasks_blocked()
        found = [str(await anext(logs))]
        api_server.delete(Pod, "web-0")
        with trio.move_on_after(3600):
            while True:
                if len(found) % 50 == 0:
                    await trio.sleep(15)
                found.append(str(await anext(logs)))
        assert found == expected
        assert logs._open == 0


async def test_a_log_of_which_lines_were_delivered_is_not_begun_again(
    api_server: APIServer, pods: Api[Pod], caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    web = start(api_server, "web-0")
    web.write_log("one", "two")
    async with follow_logs_of(pods, on_retry=lambda error: None) as logs:
        assert await next_lines(logs, 2) == ["web-0/main: one", "web-0/main: two"]
        api_server.fail_next(6, status=lambda record: 400 if record.subresource == "log" else None)
        web.disconnect("reset")
        with trio.move_on_after(200):
            pytest.fail(f"repeated: {await anext(logs)}")
        assert "container main of pod default/web-0: its log is no longer followed: " in caplog.text
        assert logs._open == 0
        web.restart()
        web.write_log("of the next instance")
        assert await next_lines(logs, 1) == ["web-0/main: of the next instance"]


async def test_a_log_that_is_always_refused_is_given_up_with_a_warning(
    api_server: APIServer, pods: Api[Pod], caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    start(api_server, "web-0").write_log("one")
    api_server.fail_next(100, status=lambda record: 400 if record.subresource == "log" else None)
    async with follow_logs_of(pods, on_retry=lambda error: None) as logs:
        await trio.sleep(200)
        assert logs._open == 0
        assert caplog.text.count("container main of pod default/web-0: its log is no longer followed: ") == 1


async def test_lines_are_for_their_block(api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock) -> None:
    opened: list[FollowedLogs] = []

    async def leave_with_error() -> None:
        async with follow_logs_of(pods) as logs:
            opened.append(logs)
            raise OSError("as it is")

    with pytest.raises(OSError, match="as it is"):
        await leave_with_error()
    with pytest.raises(trio.ClosedResourceError, match="their `async with` block has ended"):
        await anext(opened[0])


async def test_wrong_arguments_are_refused_at_once(client: Client, pods: Api[Pod], autojump_clock: MockClock) -> None:
    def mistakes() -> Iterator[tuple[type[Exception], str, dict[str, Any]]]:
        yield TypeError, r"write containers=\['main'\]", {"containers": "main"}
        yield ValueError, "max_containers must be an int of at least 1", {"max_containers": 0}
        yield ValueError, "buffer_size must be an int of at least 1, not 0", {"buffer_size": 0}
        yield ValueError, "max_line_bytes must be an int of at least 256, not 10", {"max_line_bytes": 10}
        yield ValueError, "tail_lines must be at least 0, not -1", {"tail_lines": -1}
        yield TypeError, r"containers must be a collection of names, not an int", {"containers": 3}
        yield SelectorError, "app in", {"label_selector": "app in"}

    for kind, text, given in mistakes():
        with pytest.raises(kind, match=text):
            async with follow_logs_of(pods, **given):
                pass
    deployments: Any = client.api(Deployment, namespace="default")
    with pytest.raises(TypeError, match=r"API of deployments.apps"):
        async with follow_logs_of(deployments):
            pass


async def test_a_batch_has_the_lines_that_wait(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0").write_log("one", "two", "three")
    async with follow_logs_of(pods) as logs:
        first: LogLine = await anext(logs)
        rest = await logs.receive_batch()
        assert [str(each) for each in (first, *rest)] == ["one", "two", "three"]


async def test_cancellation_at_any_step_leaves_nothing(api_server: APIServer, pods: Api[Pod]) -> None:
    for number in range(3):
        start(api_server, f"web-{number}").write_log("one", "two")
    for steps in range(0, 90, 5):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def cancel_after(steps: int = steps, scope: trio.CancelScope = scope) -> None:
                    for _ in range(steps):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                nursery.start_soon(cancel_after)
                async with follow_logs_of(pods) as logs:
                    async for _ in logs:
                        pass
        await wait_all_tasks_blocked()
        statistics = api_server.statistics()
        assert (statistics.followed_logs, statistics.open_watches) == (0, 0)


async def test_a_container_that_no_pod_has_is_a_warning(
    api_server: APIServer, pods: Api[Pod], caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async with follow_logs_of(pods, containers=["typo"]) as logs:
        await trio.sleep(5)
        assert caplog.messages == []  # there are no pods
    start(api_server, "web-0", "main", "side").write_log("one", container="side")
    start(api_server, "web-1")
    async with follow_logs_of(pods, containers=["typo", "side"]) as logs:
        assert await next_lines(logs, 1) == ["web-0/side: one"]
        start(api_server, "web-2", "typo").write_log("late", container="typo")
        assert await next_lines(logs, 1) == ["web-2/typo: late"]
    [message] = caplog.messages
    assert "'typo'" in message
    assert "main, side" in message
