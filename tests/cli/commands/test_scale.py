"""``scale``: the number of replicas, its preconditions, and the wait for it."""

from __future__ import annotations

import io

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.cli import Result, opener_of, run
from trioformer.cli._main import run_command
from trioformer.models.apps_v1 import Deployment
from trioformer.testing import APIServer

MANY = 2**63
"""More than Go's numbers reach."""
LABELS = {"app": "web"}


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    """Create a Deployment."""
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "x"}]}},
    }
    metadata = {"name": "web", "namespace": "default", "labels": LABELS}
    api_server.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    return api_server


def replicas(server: APIServer) -> int | None:
    return server.get(Deployment, "web").spec.replicas


@pytest.mark.parametrize(
    ("arguments", "operation", "becomes"),
    [
        (["deploy/web"], "scaled", 3),
        (["deployment", "web", "--current-replicas=2"], "scaled", 3),
        (["deployments", "--all"], "scaled", 3),
        (["deployments", "-l", "app=web"], "scaled", 3),
        (["deploy/web", "--dry-run=client"], "scaled (dry run)", 2),
        (["deploy/web", "--dry-run=server"], "scaled (server dry run)", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_the_number_of_replicas_is_set(
    server: APIServer, arguments: list[str], operation: str, becomes: int
) -> None:
    result = await run(server, "scale", *arguments, "--replicas=3")
    assert (result.code, result.out, result.err) == (0, f"deployment.apps/web {operation}\n", "")
    assert replicas(server) == becomes


async def test_a_dry_run_without_a_value_is_of_the_client(server: APIServer) -> None:
    result = await run(server, "scale", "deploy/web", "--replicas=3", "--dry-run")
    assert (result.code, result.out) == (0, "deployment.apps/web scaled (dry run)\n")
    assert result.err == "Warning: --dry-run is deprecated and can be replaced with --dry-run=client.\n"
    assert replicas(server) == 2


async def test_the_object_is_printed_with_its_new_number(server: APIServer) -> None:
    arguments = ["deploy/web", "--replicas=0", "-o", "jsonpath={.metadata.name} {.spec.replicas}"]
    assert (await run(server, "scale", *arguments)).out == "web 0"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["deploy/web"], 'required flag(s) "replicas" not set'),
        (
            ["deploy/web", "--replicas=x"],
            'invalid argument "x" for "--replicas" flag: strconv.ParseInt: parsing "x": invalid syntax',
        ),
        (
            ["deploy/web", f"--replicas={MANY}"],
            f'invalid argument "{MANY}" for "--replicas" flag: strconv.ParseInt: parsing "{MANY}": value out of range',
        ),
        (
            ["deploy/web", "--replicas=-1"],
            "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0",
        ),
        (
            ["deploy/web", "--replicas=1", "--current-replicas=-2"],
            "The --current-replicas must specify an integer of -1 or greater",
        ),
        (["deploy/web", "--replicas=1", "--current-replicas=5"], "Expected replicas to be 5, was 2"),
        (["deploy", "--replicas=1"], "resource(s) were provided, but no name was specified"),
        (["deploy", "-l", "app=none", "--replicas=1"], "no objects passed to scale"),
        (["--replicas=1"], "You must provide one or more resources by argument or filename."),
        (
            ["deploy/web", "--replicas=1", "--dry-run=x"],
            'Invalid dry-run value (x). Must be "none", "server", or "client".',
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_mistakes_change_nothing_and_are_one_line(server: APIServer, arguments: list[str], problem: str) -> None:
    result = await run(server, "scale", *arguments)
    assert (result.code, result.out, result.err.splitlines()[0]) == (1, "", f"error: {problem}")
    assert replicas(server) == 2


async def test_the_resource_version_must_match(server: APIServer) -> None:
    version = server.get(Deployment, "web").resource_version
    result = await run(server, "scale", "deploy/web", "--replicas=3", "--resource-version=1")
    assert result.err == f"error: Expected resource version to be 1, was {version}\n"
    result = await run(server, "scale", "deploy/web", "--replicas=3", f"--resource-version={version}")
    assert result.out == "deployment.apps/web scaled\n"


async def test_those_that_exist_are_scaled_and_the_others_are_errors(server: APIServer) -> None:
    result = await run(server, "scale", "deploy/none", "deploy/web", "--replicas=3")
    assert (result.code, result.out) == (1, "deployment.apps/web scaled\n")
    assert result.err == 'Error from server (NotFound): deployments.apps "none" not found\n'


async def test_a_kind_without_a_scale_is_an_error(server: APIServer) -> None:
    server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}})
    result = await run(server, "scale", "cm/c", "--replicas=3")
    assert (result.code, result.err) == (
        1,
        "Error from server (NotFound): the server could not find the requested resource\n",
    )


async def test_the_replicas_are_waited_for(server: APIServer, mock_clock: MockClock) -> None:
    results: list[Result] = []

    async def run_it() -> None:
        results.append(await run(server, "scale", "deploy/web", "--replicas=3", "--timeout=1m"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_it)
        for count in (2, 3):
            await wait_all_tasks_blocked()
            assert results == []
            server.patch(Deployment, "web", {"status": {"replicas": count}})
    assert results[0].out == "deployment.apps/web scaled\n"


async def test_the_wait_ends_at_its_deadline(server: APIServer, autojump_clock: MockClock) -> None:
    began = trio.current_time()
    result = await run(server, "scale", "deploy/web", "--replicas=3", "--timeout=1m")
    assert (result.code, result.err) == (1, 'error: timed out waiting for "web" to be synced\n')
    assert trio.current_time() == began + 60


@attrs.frozen
class Interference(httpx.AsyncBaseTransport):
    """Lets another client change the object right before it is written."""

    server: APIServer
    transport: httpx.AsyncBaseTransport
    times: list[int]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PUT" and self.times:
            value = str(self.times.pop())
            self.server.patch(Deployment, "web", {"metadata": {"annotations": {"changed": value}}})
        return await self.transport.handle_async_request(request)


@pytest.mark.parametrize(("times", "code"), [(9, 0), (10, 1)])
async def test_an_object_that_changes_at_the_same_time_is_read_again(server: APIServer, times: int, code: int) -> None:
    transport = Interference(server, server.http_transport(), list(range(times)))
    out, err = io.StringIO(), io.StringIO()
    arguments = ["-s", server.config.server, "scale", "deploy/web", "--replicas=3", "--current-replicas=2"]
    assert await run_command(arguments, out, err, {}, opener_of(transport)) == code
    assert replicas(server) == (2 if code else 3)
    assert err.getvalue().startswith("Error from server (Conflict): " if code else "")
