"""The log of a container: read as a whole, and followed across broken connections, in virtual time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.pods.conftest import pod
from tests.support.scripted_http import Body, InMemory, response
from trioformer.client import Api, Client, ClientOptions, open_client
from trioformer.errors import (
    BadRequestError,
    ConnectionFailedError,
    ForbiddenError,
    InternalServerError,
    LimitExceededError,
    NotFoundError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.pods import follow_logs, read_logs
from trioformer.pods._log_lines import LogLine
from trioformer.testing import APIServer, ScriptedPod
from trioformer.transport import Limits

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def log_requests(server: APIServer) -> list[dict[str, str]]:
    return [dict(each.query) for each in server.requests if each.subresource == "log"]


# --- whole ---


async def test_a_log_is_read_whole(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.write_log("one", "two\r", "ünïcode", b"\xff")
    assert await read_logs(pods, "web-0") == "one\ntwo\r\nünïcode\n\ufffd\n"


async def test_the_end_of_a_log_is_chosen_by_lines_time_and_bytes(
    web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    web.write_log("one", "two")
    await trio.sleep(10)
    web.write_log("three")
    assert await read_logs(pods, "web-0", tail_lines=2) == "two\nthree\n"
    assert await read_logs(pods, "web-0", tail_lines=0) == ""
    assert await read_logs(pods, "web-0", since=5) == "three\n"
    assert await read_logs(pods, "web-0", since=timedelta(minutes=1)) == "one\ntwo\nthree\n"
    assert await read_logs(pods, "web-0", since=datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)) == "three\n"
    assert await read_logs(pods, "web-0", since="2026-01-01T01:00:05+01:00") == "three\n"
    assert await read_logs(pods, "web-0", limit_bytes=5) == "one\nt"
    assert await read_logs(pods, "web-0", tail_lines=1, timestamps=True) == "2026-01-01T00:00:10.000000000Z three\n"


async def test_the_log_of_the_previous_instance_is_read(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.write_log("one")
    web.write("no end")
    with pytest.raises(BadRequestError, match='previous terminated container "main" in pod "web-0" not found'):
        await read_logs(pods, "web-0", previous=True)
    web.restart()
    web.write_log("two")
    assert (await read_logs(pods, "web-0", previous=True), await read_logs(pods, "web-0")) == ("one\nno end", "two\n")


async def test_a_pod_container_or_instance_that_has_no_log_is_an_error(
    api_server: APIServer, pods: Api[Pod], web: ScriptedPod
) -> None:
    api_server.create(pod("waiting"))
    api_server.create(pod("unscheduled", node=""))
    with pytest.raises(NotFoundError, match='get pods/none/log in namespace default: pods "none" not found'):
        await read_logs(pods, "none")
    with pytest.raises(BadRequestError, match="container other is not valid for pod web-0"):
        await read_logs(pods, "web-0", container="other")
    with pytest.raises(BadRequestError, match='container "main" in pod "waiting" is waiting to start'):
        await read_logs(pods, "waiting")
    with pytest.raises(BadRequestError, match="the pod is not assigned to a node yet, so it has no log"):
        await read_logs(pods, "unscheduled")


async def test_the_container_is_the_named_one_the_only_one_or_that_of_the_annotation(
    api_server: APIServer, pods: Api[Pod]
) -> None:
    api_server.create(pod("two", "a", "b"))
    api_server.create(pod("annotated", "a", "b", annotations={DEFAULT_CONTAINER: "b"}))
    for name in ("two", "annotated"):
        scripted = api_server.script_pod(name)
        scripted.write_log("of a", container="a")
        scripted.write_log("of b", container="b")
        scripted.end(container="a")
        scripted.end(container="b")
    with pytest.raises(
        BadRequestError, match=r"a container name must be specified for pod two, choose one of: \[a b\]"
    ):
        await read_logs(pods, "two")
    assert await read_logs(pods, "two", container="a") == "of a\n"
    assert await read_logs(pods, "annotated") == "of b\n"
    async with follow_logs(pods, "annotated") as lines:
        assert [(line.container, line.text) async for line in lines] == [("b", "of b")]
    with pytest.raises(BadRequestError, match=r"a container name must be specified for pod two, .*: \[a b\]"):
        async with follow_logs(pods, "two"):
            pass


async def test_wrong_arguments_are_refused_before_a_request(
    api_server: APIServer, client: Client, pods: Api[Pod]
) -> None:
    def wrong(**given: Any) -> Any:
        return read_logs(pods, "web-0", **given)

    for problem, given in {
        "tail_lines": {"tail_lines": -1},
        "limit_bytes": {"limit_bytes": 0},
        "since must be a positive": {"since": 0},
        "time zone": {"since": datetime(2026, 1, 1)},  # that is the mistake
        "yesterday": {"since": "yesterday"},
    }.items():
        with pytest.raises(ValueError, match=problem):
            await wrong(**given)
    for name, value in {"tail_lines": "1", "since": [1], "container": 1}.items():
        with pytest.raises(TypeError, match=name):
            await wrong(**{name: value})
    with pytest.raises(ValueError, match="max_line_bytes must be an int of at least 256"):
        async with follow_logs(pods, "web-0", max_line_bytes=1):
            pass
    with pytest.raises(TypeError, match=r"logs\(\) is for pods"):
        await read_logs(client.api(ConfigMap, "default"), "web-0")  # type: ignore[misc]  # that is the mistake
    assert list(api_server.requests) == []


async def test_a_log_that_is_too_long_exceeds_a_limit(api_server: APIServer, web: ScriptedPod) -> None:
    web.write_log("x" * 1000)
    limits, http = Limits(log_bytes=500), api_server.http_transport()
    async with open_client(api_server.config, http_transport=http, options=ClientOptions(limits=limits)) as client:
        with pytest.raises(LimitExceededError, match=r"Limits\.log_bytes"):
            await read_logs(client.api(Pod, "default"), "web-0")


# --- followed ---


async def test_a_log_is_followed_until_its_container_has_ended(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    web.write_log("one")

    async def play() -> None:
        await trio.sleep(100)
        web.write_log("two\r", "")
        web.write("three, ")
        await trio.sleep(1)
        web.write("continued\nno end")
        web.end()

    async with follow_logs(pods, "web-0") as lines:
        first = await anext(lines)
        assert (str(first), first.pod, first.namespace, first.container) == ("one", "web-0", "default", "main")
        assert (first.timestamp, first.time) == ("2026-01-01T00:00:00.000000000Z", datetime(2026, 1, 1, tzinfo=UTC))
        nursery.start_soon(play)
        assert [line.text async for line in lines] == ["two", "", "three, continued", "no end"]
        with pytest.raises(StopAsyncIteration):
            await anext(lines)


async def test_a_follower_begins_where_it_is_told(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.write_log("one", "two")
    async with follow_logs(pods, "web-0", tail_lines=1) as lines:
        assert str(await anext(lines)) == "two"
    async with follow_logs(pods, "web-0", tail_lines=0) as lines, trio.open_nursery() as readers:

        async def read() -> None:
            assert str(await anext(lines)) == "three"

        readers.start_soon(read)
        await wait_all_tasks_blocked()
        web.write_log("three")


@pytest.mark.parametrize("how", ["clean", "reset"])
async def test_a_follower_goes_on_after_a_broken_connection_without_loss_or_repetition(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, nursery: trio.Nursery, autojump_clock: MockClock, how: Any
) -> None:
    # Ten lines each have the same time, and the connection breaks between and among them.
    async def play() -> None:
        for number in range(100):
            web.write_log(f"line {number}", "same")
            if number % 10 == 0:
                await trio.sleep(0.4)
            if number % 7 == 0:
                web.disconnect(how)
            await wait_all_tasks_blocked()
        web.end()

    failures: list[Exception] = []
    async with follow_logs(pods, "web-0", on_retry=failures.append) as lines:
        nursery.start_soon(play)
        found = [line.text async for line in lines]
        assert found == [text for number in range(100) for text in (f"line {number}", "same")]
        assert len(log_requests(api_server)) > 3
    assert (failures == []) == (how == "clean")
    assert api_server.statistics().followed_logs == 0


async def test_a_follower_of_a_silent_container_misses_no_line_after_a_broken_connection(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    web.write_log("old")
    await trio.sleep(5)

    async def play() -> None:
        await trio.sleep(60)
        web.disconnect("clean")
        web.write_log("new")
        web.end()

    async with follow_logs(pods, "web-0", tail_lines=0) as lines:
        nursery.start_soon(play)
        assert [line.text async for line in lines] == ["new"]
    assert log_requests(api_server)[1:] == [{"container": "main", "timestamps": "true", "sinceSeconds": "61"}]


async def test_lines_before_the_chosen_ones_do_not_appear_after_a_broken_connection(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    # All of them have the same second, from which the log is sent again.
    web.write_log("one", "two")
    web.write_log("three", "four", time=datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC))

    async def play() -> None:
        web.disconnect()
        web.write_log("five", time=datetime(2026, 1, 1, 0, 0, 0, 3, tzinfo=UTC))  # standard error is late
        await trio.sleep(5)
        web.end()

    async with follow_logs(pods, "web-0", tail_lines=1) as lines:
        assert str(await anext(lines)) == "four"
        nursery.start_soon(play)
        assert [line.text async for line in lines] == ["five"]


async def test_a_follower_takes_the_lines_of_a_new_file(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    web.write_log(*(f"line {number}" for number in range(5)))

    async def play() -> None:
        web.disconnect()
        web.rotate_log()
        await trio.sleep(0.1)
        web.write_log("line 5", "line 6")
        await trio.sleep(5)
        web.end()

    async with follow_logs(pods, "web-0") as lines:
        assert [str(await anext(lines)) for _ in range(5)][-1] == "line 4"
        nursery.start_soon(play)
        assert [line.text async for line in lines] == ["line 5", "line 6"]


async def test_a_deletion_ends_the_lines(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def play() -> None:
        web.write_log("one")
        await wait_all_tasks_blocked()
        web.disconnect("clean")
        api_server.delete(Pod, "web-0")

    async with follow_logs(pods, "web-0") as lines:
        nursery.start_soon(play)
        assert [line.text async for line in lines] == ["one"]


async def test_a_cancelled_read_loses_no_line(web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock) -> None:
    found: list[str] = []
    async with follow_logs(pods, "web-0") as lines:
        for number in range(5):
            web.write_log(f"line {number}", "same")
            with trio.move_on_after(3):
                while True:
                    found.append(str(await anext(lines)))
    assert found == [text for number in range(5) for text in (f"line {number}", "same")]


async def test_lines_are_for_one_task_and_for_their_block(
    web: ScriptedPod, pods: Api[Pod], nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async with follow_logs(pods, "web-0") as lines:
        nursery.start_soon(lines.receive_batch)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(lines)
        web.write_log("one")
        await wait_all_tasks_blocked()
    with pytest.raises(trio.ClosedResourceError, match="their `async with` block has ended"):
        await anext(lines)


# --- a server with scripted bytes ---

STAMP = b"2026-01-01T00:00:00.000000001Z "


def in_state(restarts: int = 0, *, phase: str = "", **state: object) -> httpx.Response:
    """The response with the pod, whose container is in this state."""
    status = {"name": "main", "restartCount": restarts, "state": state}
    obj = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web-0", "namespace": "default", "uid": "u", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {
            "phase": phase or ("Succeeded" if "terminated" in state else "Running"),
            "containerStatuses": [status],
        },
    }
    return response(200, json.dumps(obj))


def running() -> httpx.Response:
    return in_state(running={})


def ended() -> httpx.Response:
    return in_state(terminated={"exitCode": 0})


def body(*steps: Any) -> httpx.Response:
    return httpx.Response(200, stream=Body(steps))


@asynccontextmanager
async def scripted(*replies: Any) -> AsyncIterator[tuple[Api[Pod], InMemory]]:
    http = InMemory(list(replies))
    async with open_client(ClusterConfig(server="http://memory"), http_transport=http) as client:
        yield client.api(Pod, "default"), http


async def lines_of(*replies: Any, **options: Any) -> list[LogLine]:
    async with scripted(*replies) as (pods, _), follow_logs(pods, "web-0", **options) as lines:
        return [line async for line in lines]


async def test_lines_that_are_cut_across_frames_are_put_together(autojump_clock: MockClock) -> None:
    pieces = [STAMP[:7], STAMP[7:] + b"o", b"n", b"e\r", b"\n" + STAMP, b"\n", STAMP + b"end"]
    found = await lines_of(running(), body(*pieces), ended(), body(*pieces))
    assert [line.data for line in found] == [b"one", b"", b"end"]


async def test_a_line_that_is_too_long_is_returned_in_pieces(autojump_clock: MockClock) -> None:
    for size in [7, 257]:
        log = STAMP + b"x" * 1000 + b"\n" + STAMP + b"short\n"
        chunks = [log[at : at + size] for at in range(0, len(log), size)]
        again = [log]  # what is sent again is cut in the same way, wherever it broke
        found = await lines_of(
            running(),
            body(*chunks[: len(chunks) // 2 + 1], httpx.ReadError("")),
            ended(),
            body(*again),
            max_line_bytes=256,
        )
        assert b"".join(line.data for line in found[:-1]) == b"x" * 1000
        assert [line.is_cut for line in found] == [True, True, True, True, False, False]
        assert {line.timestamp.encode() + b" " for line in found} == {STAMP}


async def test_lines_without_times_are_returned_but_cannot_be_resumed(autojump_clock: MockClock) -> None:
    async with scripted(running(), body(b"no time\n"), running()) as (pods, _), follow_logs(pods, "web-0") as lines:
        line = await anext(lines)
        assert (line.text, line.timestamp, line.time) == ("no time", "", None)
        with pytest.raises(ConnectionFailedError, match="no timestamps"):
            await anext(lines)
        with pytest.raises(ConnectionFailedError):
            await anext(lines)


async def test_a_refused_permission_ends_the_lines_with_its_error(autojump_clock: MockClock) -> None:
    denied = response(403, '{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')
    async with scripted(running(), body(STAMP + b"one\n"), denied) as (pods, _), follow_logs(pods, "web-0") as lines:
        assert str(await anext(lines)) == "one"
        with pytest.raises(ForbiddenError):
            await anext(lines)


async def test_a_node_that_cannot_be_reached_is_an_error_at_first_and_is_retried_later(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def refused() -> httpx.Response:
        return response(500, '{"kind":"Status","code":500,"reason":"InternalError","message":"dial tcp: refused"}')

    with pytest.raises(InternalServerError, match="dial tcp: refused"):
        await lines_of(running(), refused())
    one, two = STAMP + b"one\n", STAMP + b"two\n"
    found = await lines_of(
        running(), body(one), running(), refused(), running(), body(one, two), running(), ended(), body(one, two)
    )
    assert [line.text for line in found] == ["one", "two"]
    assert "dial tcp: refused" in caplog.text


async def test_a_log_that_is_refused_while_its_container_runs_is_an_error_in_the_end(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> httpx.Response:
        return response(400, '{"kind":"Status","code":400,"reason":"BadRequest","message":"no such file"}')

    replies: list[Any] = [running(), body(STAMP + b"one\n"), running()]
    for _ in range(6):
        replies += [gone(), running()]
    with pytest.raises(BadRequestError, match="no such file"):
        await lines_of(*replies)


async def test_the_rest_of_a_log_that_the_node_has_removed_is_missing(autojump_clock: MockClock) -> None:
    gone = response(404, '{"kind":"Status","code":404,"reason":"NotFound","message":"gone"}')
    found = await lines_of(running(), body(STAMP + b"one\n", STAMP + b"no end"), ended(), gone)
    assert [line.text for line in found] == ["one", "no end"]


# --- instances ---


async def test_the_log_of_a_pod_is_not_that_of_another_pod_of_its_name(
    web: ScriptedPod, pods: Api[Pod], api_server: APIServer
) -> None:
    old = await pods.get("web-0")
    api_server.delete(Pod, "web-0")
    api_server.create(pod())
    with pytest.raises(NotFoundError, match="the pod was deleted, and a new pod has the same name"):
        async with follow_logs(pods, old):
            pass
