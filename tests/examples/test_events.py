"""``examples/events.py`` as a process, and its handler in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from examples import events
from tests.support.event_recorders import count_of, stored
from tests.support.processes import HERE_OR_AS_PROCESS, KUBECONFIG, Result, running
from trioformer.client import Client
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

PROGRAM = "examples/events.py"


def pod(name: str, **restarts: int) -> Pod:
    """Return a pod whose containers have these numbers of restarts."""
    containers = [{"name": each, "image": "app:1"} for each in restarts]
    return from_dict(
        Pod, {"metadata": {"name": name}, "spec": {"containers": containers}, "status": status(**restarts)}
    )


def status(**restarts: int) -> dict[str, object]:
    statuses = [
        {"name": name, "restartCount": count, "ready": True, "image": "app:1", "imageID": ""}
        for name, count in restarts.items()
    ]
    return {"phase": "Running", "containerStatuses": statuses}


@pytest.mark.parametrize("result", HERE_OR_AS_PROCESS)
def test_embedded_it_shows_how_restarts_are_counted(result: Result) -> None:
    code, lines, errors = result(PROGRAM, "--embedded", is_virtual=True, interrupt_after=5)
    line = "Warning ContainerRestarted Pod/unlucky: container app has restarted"
    assert f"{line} (x1)" in lines
    assert f"{line} (x2)" in lines
    assert " restarts recorded, " in lines[-1]
    assert (code, lines[0], errors) == (0, "watching pods", [])


async def test_with_a_kubeconfig_it_records_all_restarts_in_that_cluster(nursery: trio.Nursery, tmp_path: Path) -> None:
    server = APIServer()
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=await nursery.start(serve_http, server)))
    server.create(pod("web", app=3, proxy=0))
    with trio.fail_after(30):
        async with running(PROGRAM, "--kubeconfig", str(file)) as program:
            await program.wait_for_line("watching pods")
            for count in range(4, 10):
                server.patch(Pod, "web", {"status": status(app=count, proxy=0)})
                await program.wait_for_line(f"default/web: container app has restarted, {count} times in all")
            program.process.terminate()
            assert await program.wait_until_over() == 0
            await program.wait_for_line("6 restarts recorded, 6 written")
    assert program.errors == []
    (event,) = stored(server)
    assert count_of(event) == 6
    assert (event.type, event.reason, event.note) == ("Warning", "ContainerRestarted", "container app has restarted")
    assert event.regarding.uid == server.get(Pod, "web").uid


async def test_every_later_restart_of_each_container_is_recorded(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    client: Client,
    nursery: trio.Nursery,
) -> None:
    api_server.create(pod("web", app=3, proxy=0))
    stop = trio.Event()
    nursery.start_soon(events.serve, client, stop)
    await trio.sleep(1)
    assert stored(api_server) == []
    api_server.patch(Pod, "web", {"status": status(app=4, proxy=1)})
    api_server.patch(Pod, "web", {"metadata": {"labels": {"seen": "yes"}}})
    await trio.sleep(1)
    assert sorted(event.note or "" for event in stored(api_server)) == [
        "container app has restarted",
        "container proxy has restarted",
    ]
    stop.set()
