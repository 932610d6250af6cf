"""Logs through kube-apiserver and kwok's kubelet, beside what kubectl prints.

kwok serves a file, in the format of containerd, as the log of a container.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio

from tests.e2e.kubelet import kubectl, logs_from, pod_of, running_kubelet, start_pod
from trioformer import open_client
from trioformer.errors import BadRequestError, NotFoundError
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import follow_logs, follow_logs_of, read_logs
from trioformer.testing import ControlPlane

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
RATE = 500
"""Lines a second."""


class Log:
    """The file that is the log of every pod."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def write(self, *lines: str) -> None:
        with self.path.open("a") as file:
            for line in lines:
                file.write(f"{datetime.now(UTC).isoformat().replace('+00:00', 'Z')} stdout F {line}\n")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return Log(tmp_path_factory.mktemp("logs") / "pod.log")


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory, log: Log) -> Iterator[ControlPlane]:
    """A control plane with a node whose pods have logs; its API server may be killed."""
    with running_kubelet(assets, tmp_path_factory.mktemp("assets"), logs_from(log.path)) as running:
        yield running


def ignore(error: Exception) -> None:
    """The server is killed: failures are expected."""


async def test_a_log_is_what_kubectl_prints(cluster: ControlPlane, assets: Path, log: Log) -> None:
    log.write(*(f"line {number}" for number in range(20)), "ünïcode")
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        pods = client.api(Pod, namespace="default")
        await start_pod(pods, pod_of("one"))
        await start_pod(pods, pod_of("annotated", "a", "b", annotations={DEFAULT_CONTAINER: "b"}))
        for flags, text in [
            ([], await read_logs(pods, "one")),
            (["--tail=3"], await read_logs(pods, "one", tail_lines=3)),
            (["--tail=3", "--timestamps"], await read_logs(pods, "one", tail_lines=3, timestamps=True)),
            (["--limit-bytes=100"], await read_logs(pods, "one", limit_bytes=100)),
            (["--since=1h"], await read_logs(pods, "one", since=3600)),
            (["--since-time=2020-01-01T00:00:00Z"], await read_logs(pods, "one", since="2020-01-01T00:00:00Z")),
            (
                ["--since-time=2100-01-01T00:00:00Z"],
                await read_logs(pods, "one", since=datetime(2100, 1, 1, tzinfo=UTC)),
            ),
        ]:
            printed = kubectl(cluster, assets, "logs", "one", *flags)
            assert (printed.stdout, printed.stderr) == (text, "")
        assert kubectl(cluster, assets, "logs", "annotated").stdout == await read_logs(pods, "annotated")


async def test_what_has_no_log_is_the_error_of_the_api_server(cluster: ControlPlane, assets: Path) -> None:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        pods = client.api(Pod, namespace="default")
        await start_pod(pods, pod_of("two", "a", "b"))
        spec = {"containers": [{"name": "main", "image": "x"}]}
        await pods.create(from_dict(Pod, {"metadata": {"name": "unscheduled"}, "spec": spec}))
        with pytest.raises(NotFoundError, match='pods "none" not found'):
            await read_logs(pods, "none")
        with pytest.raises(BadRequestError, match="container other is not valid for pod two"):
            await read_logs(pods, "two", container="other")
        with pytest.raises(BadRequestError, match=r"name must be specified for pod two, choose one of: \[a b\]"):
            await read_logs(pods, "two")
        with pytest.raises(BadRequestError, match="the pod is not assigned to a node yet"):
            await read_logs(pods, "unscheduled")
        with pytest.raises(BadRequestError):
            await read_logs(pods, "two", container="a", previous=True)
        async with follow_logs(pods, "two", container="a", tail_lines=1) as lines:
            first = await anext(lines)
        printed = kubectl(cluster, assets, "logs", "two", "-c", "a", "--tail=1", "--timestamps").stdout
        assert f"{first.timestamp} {first}\n" == printed


@pytest.mark.parametrize("seconds", [12, pytest.param(60, marks=pytest.mark.long)])
async def test_lines_are_neither_lost_nor_repeated_when_the_api_server_is_killed(
    cluster: ControlPlane, log: Log, seconds: int
) -> None:
    name = f"followed-{seconds}"
    total = seconds * RATE
    written = 0

    async def write_lines() -> None:
        nonlocal written
        await trio.sleep(1)  # the request with tail_lines=0 must have arrived
        began = trio.current_time()
        while written < total:
            due = min(int((trio.current_time() - began) * RATE), total)
            # Lines that are written together may have the same time.
            log.write(*(f"{name} {number}" for number in range(written, due)))
            written = due
            await trio.sleep(0.02)

    async def kill_twice() -> None:
        for _ in range(2):
            await trio.sleep(seconds / 4)
            await cluster.kill_api_server()
            await cluster.start_api_server()

    found: list[int] = []
    of_all: list[int] = []
    pattern = re.compile(rf"{name} (\d+)")
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        pods = client.api(Pod, namespace="default")
        await start_pod(pods, pod_of(name, labels={"app": name}))

        async def follow_all() -> None:
            async with follow_logs_of(pods, label_selector={"app": name}, on_retry=ignore) as lines:
                while len(of_all) < total:
                    if match := pattern.fullmatch(str(await anext(lines))):
                        of_all.append(int(match[1]))

        with trio.fail_after(seconds * 3 + 60):
            async with (
                follow_logs(pods, name, tail_lines=0, on_retry=ignore) as lines,
                trio.open_nursery() as players,
            ):
                players.start_soon(write_lines)
                players.start_soon(kill_twice)
                players.start_soon(follow_all)
                while len(found) < total:
                    if match := pattern.fullmatch(str(await anext(lines))):
                        found.append(int(match[1]))
    assert found == list(range(total))
    assert of_all == list(range(total))
