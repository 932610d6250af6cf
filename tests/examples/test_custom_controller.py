"""``examples/custom_controller.py``: its lines, its retries, and the file that it follows."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from examples.custom_controller import Settings, serve
from tests.examples.test_simple_watch import create_pod, create_tools
from tests.support.processes import KUBECONFIG, Program, result_here, running
from trioformer import Client, ConfigError
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

PROGRAM = "examples/custom_controller.py"
A_NEW_POD = "A new pod is created, need to restart tools"
TIME = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
NOT_FOUND = 'deployments.apps "tools" not found'


@asynccontextmanager
async def controlling(client: Client, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Callable[[], list[str]]]:
    """Run the controller while the block runs; yields a function that returns the lines since its last call."""
    caplog.set_level(logging.INFO, "custom_controller")
    stop = trio.Event()

    def lines() -> list[str]:
        found = [each.getMessage() for each in caplog.records if each.name == "custom_controller"]
        caplog.clear()
        return found

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, client, "default", stop)
        await trio.sleep(1)
        yield lines
        stop.set()


async def test_a_new_pod_that_runs_restarts_the_tools_once(
    autojump_clock: MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    create_tools(api_server)
    create_pod(api_server, "old", "Running")
    create_pod(api_server, "other", "Pending", app="web")
    async with controlling(client, caplog) as lines:
        assert lines() == ["Starting Pod controller", "Pod[old] is ADDED, status = Running"]
        create_pod(api_server, "new", "Pending")
        await trio.sleep(1)
        api_server.patch(Pod, "new", {"metadata": {"labels": {"seen": "yes"}}})
        await trio.sleep(1)
        before = api_server.get(Deployment, "tools")
        api_server.patch(Pod, "new", {"status": {"phase": "Running"}})
        await trio.sleep(1)
        after = api_server.get(Deployment, "tools")
        assert before.spec.template.metadata.annotations != after.spec.template.metadata.annotations
        api_server.patch(Pod, "new", {"metadata": {"labels": {"seen": "again"}}})
        api_server.patch(Pod, "old", {"metadata": {"labels": {"seen": "again"}}})
        await trio.sleep(1)
        assert api_server.get(Deployment, "tools").resource_version == after.resource_version
        api_server.delete(Pod, "new")
        await trio.sleep(1)
        assert lines() == [
            "Pod[new] is ADDED, status = Pending",
            "Pod[new] is MODIFIED, status = Pending",
            "Pod[new] is MODIFIED, status = Running",
            A_NEW_POD,
            "Pod[new] is MODIFIED, status = Running",
            "Pod[old] is MODIFIED, status = Running",
            "Pod[default/new] is DELETED",
        ]
    assert lines() == ["Stopping Pod controller"]


async def test_what_fails_is_tried_five_times_more_and_dropped_until_the_next_event(
    autojump_clock: MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with controlling(client, caplog) as lines:
        create_pod(api_server, "new", "Pending")
        await trio.sleep(1)
        assert lines() == ["Starting Pod controller", "Pod[new] is ADDED, status = Pending"]
        api_server.patch(Pod, "new", {"status": {"phase": "Running"}})
        await trio.sleep(1000)
        failed = ["Pod[new] is MODIFIED, status = Running", A_NEW_POD, f"Error synching pod[default/new]: {NOT_FOUND}"]
        assert lines() == [
            *failed * 5,
            *failed[:2],
            f"Dropping pod[default/new] out of the queue: {NOT_FOUND}",
        ]
        create_tools(api_server)
        api_server.patch(Pod, "new", {"metadata": {"labels": {"seen": "yes"}}})
        await trio.sleep(1000)
        assert lines() == failed[:2]
    assert lines() == ["Stopping Pod controller"]


def test_embedded_its_lines_have_milliseconds_and_level() -> None:
    code, lines, errors = result_here(PROGRAM, "--embedded", is_virtual=True, interrupt_after=4.5)
    assert (code, errors) == (0, [])
    times, texts = zip(*[line.split(" [INFO] ") for line in lines], strict=True)
    assert [each for each in times if not TIME.fullmatch(each)] == []
    failed_1 = [
        "Pod[nginx-1] is MODIFIED, status = Running",
        A_NEW_POD,
        f"Error synching pod[default/nginx-1]: {NOT_FOUND}",
    ]
    failed_2 = [line.replace("nginx-1", "nginx-2") for line in failed_1]
    assert list(texts) == [
        "Starting Pod controller",
        "Pod[nginx-1] is ADDED, status = Pending",
        *failed_1 * 5,
        "Pod[default/nginx-1] is DELETED",
        "Object[default/nginx-1] does not exists, maybe it has been deleted",
        "Pod[nginx-2] is ADDED, status = Pending",
        *failed_2 * 5,
        *failed_2[:2],
        f"Dropping pod[default/nginx-2] out of the queue: {NOT_FOUND}",
        *failed_2[:2],
        "Pod[default/nginx-2] is DELETED",
        "Pod[nginx-3] is ADDED, status = Pending",
        "Pod[nginx-3] is MODIFIED, status = Running",
        A_NEW_POD,
        "Pod[nginx-3] is MODIFIED, status = Running",
        "Pod[default/nginx-3] is DELETED",
        "Stopping Pod controller",
    ]


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a mapping"),
        ("- a", "not a mapping"),
        ("a: [b", "not a mapping in YAML"),
        ("Log: loud", "not a mapping"),
        ("Log: {Level: loud}", "'loud', which is none of debug, info, warn, error"),
        ("Kubeconfig: missing", "missing: does not exist"),
        ("log: {Level: info}", "'log' is none of Log, Kubeconfig"),
    ],
)
def test_an_invalid_file_is_a_config_error(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Settings.parse(text)
    assert problem in str(raised.value)


def test_an_invalid_file_at_the_start_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("Log: {Level: loud}")
    code, lines, errors = result_here(PROGRAM, "--embedded", "-c", str(path))
    assert (code, lines) == (1, [])
    assert len(errors) == 1
    assert str(path) in errors[0]


async def test_a_changed_file_changes_the_level_and_the_cluster(nursery: trio.Nursery, tmp_path: Path) -> None:
    first, second = APIServer(), APIServer()
    for name, server in {"first": first, "second": second}.items():
        (tmp_path / name).write_text(KUBECONFIG.format(url=await nursery.start(serve_http, server)))
        create_pod(server, f"in-{name}", "Running")
    (tmp_path / "unreachable").write_text(KUBECONFIG.format(url="http://127.0.0.1:9"))
    create_tools(first)
    path = tmp_path / "app.yaml"
    path.write_text(f"Kubeconfig: {tmp_path / 'first'}\n")
    with trio.fail_after(60):
        async with running(PROGRAM, "-c", str(path)) as program:
            await wait_for(program, "[INFO] Pod[in-first] is ADDED, status = Running")
            path.write_text(f"Kubeconfig: {tmp_path / 'first'}\nLog: {{Level: debug}}\n")
            create_pod(first, "new", "Pending")
            await wait_for(program, "[INFO] Pod[new] is ADDED, status = Pending")
            path.write_text(f"Kubeconfig: {tmp_path / 'missing'}\n")  # not used
            path.write_text(f"Kubeconfig: {tmp_path / 'unreachable'}\n")  # the program waits for it
            await program.wait_for(lambda lines: sum("Starting Pod controller" in line for line in lines) == 2)
            await program.wait_for(lambda _: any("127.0.0.1:9" in line for line in program.errors))
            path.write_text(f"Kubeconfig: {tmp_path / 'second'}\nLog: {{Level: Debug}}\n")
            await wait_for(program, "[INFO] Pod[in-second] is ADDED, status = Running")
            create_tools(second)
            create_pod(second, "new", "Pending")
            await program.wait_for(lambda lines: sum("Pod[new] is ADDED" in line for line in lines) == 2)
            second.patch(Pod, "new", {"status": {"phase": "Running"}})
            await wait_for(program, "[DEBUG] Restart tools success")
            path.write_text("Log: {Level: loud}\n")
            code = await program.interrupt()
            assert code == 0, program.errors
    texts = [line.partition("] ")[2] for line in program.lines]
    started = texts.index("Starting Pod controller", 1)
    assert texts[started - 1] == "Stopping Pod controller"
    assert texts[-1] == "Stopping Pod controller"


async def wait_for(program: Program, text: str) -> None:
    await program.wait_for(lambda lines: any(text in line for line in lines))
