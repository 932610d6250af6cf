"""``examples/pod_logger.py`` as its users run it: against a real kube-apiserver."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from tests.support.processes import POD_LOGGER, running
from trioformer import ConnectionFailedError, SharedInformerFactory, StatusError, load_config, open_client
from trioformer.client import Api, Client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Container, Namespace, Pod, PodSpec
from trioformer.testing import ControlPlane

NAMESPACE = "pod-logger"


@pytest.fixture
def cluster(breakable_control_plane: ControlPlane) -> ControlPlane:
    return breakable_control_plane


@asynccontextmanager
async def connected(cluster: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(load_config(kubeconfig=cluster.kubeconfig)) as client:
        yield client


async def make_namespace(client: Client) -> None:
    with suppress(StatusError):
        await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=(Container(name="main", image="busybox"),)))


async def delete(pods: Api[Pod], name: str) -> None:
    await pods.delete(name, grace_period_seconds=0)


def pod_logger(cluster: ControlPlane) -> list[str]:
    command = [str(POD_LOGGER), "--kubeconfig", str(cluster.kubeconfig), "--namespace", NAMESPACE]
    return [*command, "--resync", "0", "--no-time"]


async def test_it_prints_a_line_when_a_pod_is_created_labelled_and_deleted(cluster: ControlPlane) -> None:
    with trio.fail_after(60):
        async with connected(cluster) as client, running(*pod_logger(cluster)) as logger:
            await make_namespace(client)
            pods = client.api(Pod, namespace=NAMESPACE)
            await pods.create(pod("web"))
            await logger.wait_for_line("New Pod Added to Store: web")
            await pods.patch("web", {"metadata": {"labels": {"seen": "yes"}}})
            await logger.wait_for_line("web Pod Updated to web")
            await delete(pods, "web")
            await logger.wait_for_line("Pod Deleted from Store: web")
            assert await logger.interrupt() == 0
    assert logger.errors == []


async def change_pods(pods: Api[Pod], stop: trio.Event, restarted: trio.Event) -> None:
    """Create, label and delete pods, before, while and after the server is away."""
    number = 0
    after_restart = 0
    while not stop.is_set():
        number += 1
        with suppress(ConnectionFailedError, StatusError):
            await pods.create(pod(f"p{number}"))
            await pods.patch(f"p{number - 1}", {"metadata": {"labels": {"number": str(number)}}})
            if number % 3 == 0:
                await delete(pods, f"p{number - 2}")
            after_restart += restarted.is_set()
        if after_restart == 20:
            stop.set()
        await trio.sleep(0.02)


def alive(lines: list[str]) -> set[str]:
    """The pods that are there, as somebody who only reads the log would say."""
    names: set[str] = set()
    for line in lines:
        if line.startswith("New Pod Added to Store: "):
            name = line.removeprefix("New Pod Added to Store: ")
            assert name not in names, f"{name} was added twice"
            names.add(name)
        elif line.startswith("Pod Deleted from Store: "):
            names.remove(line.removeprefix("Pod Deleted from Store: "))
        else:
            updated, _, to = line.partition(" Pod Updated to ")
            assert updated == to
            assert updated in names
    return names


async def test_it_goes_on_through_the_death_and_return_of_the_server(cluster: ControlPlane) -> None:
    """Beside it an informer in this process shows that not only the names but the states agree."""
    with trio.fail_after(120):
        async with (
            connected(cluster) as client,
            running(*pod_logger(cluster)) as logger,
            trio.open_nursery() as nursery,
        ):
            await make_namespace(client)
            pods = client.api(Pod, namespace=NAMESPACE)
            factory = SharedInformerFactory(client, namespace=NAMESPACE)
            informer = factory.informer(Pod)
            await nursery.start(factory.run)
            await pods.create(pod("first"))
            await logger.wait_for_line("New Pod Added to Store: first")
            stop, restarted = trio.Event(), trio.Event()
            nursery.start_soon(change_pods, pods, stop, restarted)
            await logger.wait_for_line("New Pod Added to Store: p10")
            await cluster.kill_api_server()
            await trio.sleep(2)  # a real outage takes real time
            await cluster.start_api_server()
            restarted.set()
            await stop.wait()
            with informer.subscribe() as notifications:
                await pods.create(pod("last"))
                await logger.wait_for_line("New Pod Added to Store: last")
                async for notification in notifications:
                    if getattr(notification, "object", None) is not None and notification.object.name == "last":  # type: ignore[union-attr]  # an Added
                        break
            listed = await pods.list()
            assert alive(logger.lines) == {each.name for each in listed}
            assert {each.name: each.resource_version for each in informer.lister} == {
                each.name: each.resource_version for each in listed
            }
            for each in listed:
                await delete(pods, each.name)
            assert await logger.interrupt() == 0
            nursery.cancel_scope.cancel()
    assert Counter(logger.lines)["New Pod Added to Store: last"] == 1


async def test_a_missing_server_is_reported_in_one_line(cluster: ControlPlane) -> None:
    await cluster.kill_api_server()
    try:
        with trio.fail_after(30):
            async with running(*pod_logger(cluster)) as logger:
                assert await logger.process.wait() == 1
                await trio.testing.wait_all_tasks_blocked(0.1)
    finally:
        await cluster.start_api_server()
    assert logger.lines == []
    assert len(logger.errors) == 1, logger.errors
    assert "--embedded" in logger.errors[0]
