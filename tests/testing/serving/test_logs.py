"""The logs of the embedded server: what kube-apiserver v1.36 refuses, and pods whose containers a test plays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trioformer import Client
from trioformer.errors import BadRequestError, InvalidError, MethodNotAllowedError, NotFoundError
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import read_logs
from trioformer.testing import APIServer, ScriptedPod
from trioformer.watchtools import has_condition

PATH = "/api/v1/namespaces/default/pods/web-0/log"


def create(server: APIServer, name: str = "web-0", **spec: Any) -> ScriptedPod:
    spec = spec or {"containers": [{"name": "main"}]}
    server.create(from_dict(Pod, {"metadata": {"name": name}, "spec": spec}))
    return server.script_pod(name)


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        (
            {"sinceSeconds": 0},
            InvalidError,
            '"web-0" is invalid: sinceSeconds: Invalid value: 0: must be greater',
        ),
        ({"tailLines": -1}, InvalidError, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": 0}, InvalidError, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": 1, "sinceTime": "2026-11-22T22:35:07Z"}, InvalidError, "at most one of `sinceTime` or"),
        ({"sinceSeconds": 2**63}, BadRequestError, "value out of range"),
        ({"sinceTime": "0001-01-01T00:00:00+01:00"}, BadRequestError, "parsing time"),
        ({"sinceTime": "nonsense"}, BadRequestError, 'parsing time "nonsense" as "2006-01-02T15:04:05Z07:00"'),
        ({"tailLines": "x"}, BadRequestError, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
async def test_options_that_are_not_valid_are_refused_as_by_kube_apiserver(
    api_server: APIServer, client: Client, params: Any, error: type[Exception], text: str
) -> None:
    create(api_server)
    with pytest.raises(error) as caught:
        await client.request("GET", PATH, params=params)
    assert text in str(caught.value)


async def test_a_log_is_only_read(api_server: APIServer, client: Client) -> None:
    create(api_server)
    with pytest.raises(MethodNotAllowedError):
        await client.request("POST", PATH)


async def test_the_response_is_plain_text(api_server: APIServer, client: Client) -> None:
    create(api_server).write_log("one", time=datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC))
    response = await client.request(
        "GET", PATH, params={"timestamps": True, "follow": "false", "sinceSeconds": 2**63 - 1}
    )
    assert (response.code, response.headers["content-type"]) == (200, "text/plain")
    assert response.text == "2026-01-01T00:00:00.250000000Z one\n"


async def test_a_followed_log_ends_at_its_limit_and_with_its_client(api_server: APIServer, client: Client) -> None:
    web = create(api_server)
    web.write_log("one", "two")
    params = {"follow": True, "limitBytes": 5}
    async with client.stream("GET", PATH, params=params, endless=True) as log:
        assert [line async for line in log.lines()] == ["one", "t"]
    async with client.stream("GET", PATH, params={"follow": True}, endless=True) as log:
        assert await log.receive_some() == b"one\ntwo\n"
        assert api_server.statistics().followed_logs == 1
    await wait_all_tasks_blocked()
    assert api_server.statistics().followed_logs == 0


async def test_a_scripted_pod_runs_and_ends(api_server: APIServer) -> None:
    web = create(api_server, initContainers=[{"name": "init"}], containers=[{"name": "a"}, {"name": "b"}])
    pod = api_server.get(Pod, "web-0")
    assert has_condition("Ready")(pod)
    assert pod.status.phase == "Running"
    assert [each.state.terminated is not None for each in pod.status.init_container_statuses] == [True]
    web.restart(container="a", exit_code=3)
    (status, _) = api_server.get(Pod, "web-0").status.container_statuses
    assert (status.restart_count, status.state.running is not None) == (1, True)
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 3
    web.end(container="a")
    assert api_server.get(Pod, "web-0").status.phase == "Running"
    web.end(container="b", exit_code=1)
    assert api_server.get(Pod, "web-0").status.phase == "Failed"


async def test_a_status_that_a_test_has_written_stays(api_server: APIServer) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    status = {"phase": "Pending", "containerStatuses": [waiting], "conditions": []}
    spec = {"containers": [{"name": "main"}], "nodeName": "node-1"}
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": spec, "status": status}))
    async with api_server.open_client() as client:
        with pytest.raises(BadRequestError, match='"main" in pod "web-0" is waiting to start: ImagePullBackOff'):
            await read_logs(client.api(Pod, "default"), "web-0")


async def test_what_a_scripted_pod_does_not_have_is_an_error(api_server: APIServer) -> None:
    web = create(api_server, containers=[{"name": "a"}, {"name": "b"}])
    with pytest.raises(ValueError, match="pod web-0 has several containers; pass container=: a, b"):
        web.write_log("one")
    with pytest.raises(ValueError, match="pod web-0 has no container c: a, b"):
        web.end(container="c")
    api_server.delete(Pod, "web-0")
    with pytest.raises(NotFoundError, match='pods "web-0" not found'):
        web.write_log("one", container="a")
    with pytest.raises(NotFoundError, match='pods "none" not found'):
        api_server.script_pod("none")


async def test_a_stalled_log_sends_nothing_more(
    api_server: APIServer, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    web = create(api_server)
    async with client.stream("GET", PATH, params={"follow": True}, endless=True) as log:
        await wait_all_tasks_blocked()
        assert web.disconnect("stall") == 1
        web.write_log("one")
        with trio.move_on_after(10):
            pytest.fail(f"received {await log.receive_some()!r}")
