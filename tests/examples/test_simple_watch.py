"""``examples/simple_watch.py``: its lines, and what it patches."""

from __future__ import annotations

import logging
from argparse import Namespace as Arguments
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from examples.simple_watch import RESTARTED_AT, connect, limiter_of, watch_pods
from tests.support.processes import KUBECONFIG, result_here
from trioformer import Client, ClusterConfig
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

PROGRAM = "examples/simple_watch.py"


def create_pod(server: APIServer, name: str, phase: str, *, app: str = "nginx") -> None:
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": phase}})


def create_tools(server: APIServer) -> None:
    metadata = {"name": "tools", "namespace": "default"}
    containers = [{"name": "tools", "image": "busybox"}]
    template = {"metadata": {"labels": {"app": "tools"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"app": "tools"}}, "template": template}
    server.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


@asynccontextmanager
async def watching(client: Client, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Callable[[], list[str]]]:
    """Watch while the block runs; yields a function that returns the lines since its last call."""
    caplog.set_level(logging.INFO, "simple_watch")

    def lines() -> list[str]:
        found = [each.getMessage() for each in caplog.records if each.name == "simple_watch"]
        caplog.clear()
        return found

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_pods, client, "default")
        await trio.sleep(1)
        yield lines
        nursery.cancel_scope.cancel()


async def test_pods_with_the_label_are_reported_and_running_ones_restart_the_tools(
    autojump_clock: MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    create_tools(api_server)
    create_pod(api_server, "other", "Running", app="web")
    create_pod(api_server, "old", "Running")
    async with watching(client, caplog) as lines:
        create_pod(api_server, "another", "Running", app="web")
        create_pod(api_server, "new", "Pending")
        await trio.sleep(1)
        assert lines() == ["Pod old added, current status is Running", "Pod new added, current status is Pending"]
        tools = api_server.get(Deployment, "tools")
        assert tools.spec.template.metadata.annotations == {}

        api_server.patch(Pod, "new", {"status": {"phase": "Running"}})
        await trio.sleep(1)
        assert lines() == ["Pod new modified, current status is Running", "Restart tools success"]
        tools = api_server.get(Deployment, "tools")
        assert list(tools.spec.template.metadata.annotations) == [RESTARTED_AT]
        assert [each.name for each in tools.spec.template.spec.containers] == ["tools"]

        api_server.patch(Pod, "new", {"status": {"phase": "Failed"}})
        api_server.delete(Pod, "new")
        await trio.sleep(1)
        assert lines() == ["Pod new modified, current status is Failed", "Pod new deleted"]


async def test_an_error_of_the_restart_is_the_servers_sentence(
    autojump_clock: MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    create_pod(api_server, "web", "Pending")
    async with watching(client, caplog) as lines:
        api_server.patch(Pod, "web", {"status": {"phase": "Running"}})
        await trio.sleep(1)
    assert lines()[1:] == ["Pod web modified, current status is Running", 'deployments.apps "tools" not found']


def test_embedded_it_shows_every_line() -> None:
    code, lines, errors = result_here(PROGRAM, "--embedded", is_virtual=True, interrupt_after=4.5)
    assert (code, errors) == (130, [])
    assert lines == [
        "Using namespace=default",
        "Pod nginx-1 added, current status is Pending",
        "Pod nginx-1 modified, current status is Running",
        'deployments.apps "tools" not found',
        "Pod nginx-1 deleted",
        "Pod nginx-2 added, current status is Pending",
        "Pod nginx-2 modified, current status is Running",
        'deployments.apps "tools" not found',
        "Pod nginx-2 modified, current status is Running",
        "Restart tools success",
        "Pod nginx-2 deleted",
        "Pod nginx-3 added, current status is Pending",
        "Pod nginx-3 modified, current status is Running",
        "Restart tools success",
        "Pod nginx-3 modified, current status is Running",
        "Restart tools success",
        "Pod nginx-3 deleted",
    ]


async def test_the_kubeconfig_is_named_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "simple_watch")
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.format(url="http://127.0.0.1:1"))
    given = Arguments(embedded=False, kubeconfig=str(path), context=None, namespace="team")
    async with connect(given) as client:
        assert not client.config.in_cluster
    assert caplog.messages == ["Using namespace=team", f"Using kubeconfig={path}"]


def test_only_in_a_cluster_it_limits_its_requests_to_a_thousand_a_second() -> None:
    assert limiter_of(ClusterConfig(server="http://127.0.0.1:1")) is None
    limiter = limiter_of(ClusterConfig(server="http://127.0.0.1:1", in_cluster=True))
    assert limiter is not None
    assert (limiter.qps, limiter.burst) == (1000, 1000)
