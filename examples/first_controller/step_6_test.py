"""Step 6: test the controller of step 5 without a cluster, on virtual time."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from step_5_write_status import App, AppSpec, serve

from trioformer import Client, ObjectMeta
from trioformer.crds import install_crds
from trioformer.models.conditions import is_condition_true
from trioformer.models.core_v1 import Pod, PodCondition, PodStatus
from trioformer.testing import APIServer

pytestmark = pytest.mark.trio


def pod(name: str, *, is_ready: bool = True) -> Pod:
    ready = PodCondition(type="Ready", status=str(is_ready))
    metadata = ObjectMeta(name=name, namespace="default", labels={"app": "web"})
    return Pod(
        metadata=metadata, status=PodStatus(phase="Running", conditions=(ready,))
    )


@pytest.fixture
async def server(
    api_server: APIServer, k8s_client: Client, nursery: trio.Nursery
) -> APIServer:
    """A server with an App that needs two pods; the controller runs beside the test."""
    await install_crds(k8s_client, App)
    metadata = ObjectMeta(name="web", namespace="default")
    api_server.create(App(metadata=metadata, spec=AppSpec(min_ready=2)))
    nursery.start_soon(serve, k8s_client)
    return api_server


async def check(server: APIServer, *, ready: int, is_available: bool) -> None:
    await trio.sleep(1)  # virtual: it is over when all other tasks wait
    status = server.get(App, "web").status
    assert status.ready == ready
    assert is_condition_true(status.conditions, "Available") == is_available


async def test_an_app_is_available_while_enough_of_its_pods_are_ready(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    await check(server, ready=0, is_available=False)
    server.create(pod("web-0"))
    server.create(pod("web-1", is_ready=False))
    await check(server, ready=1, is_available=False)
    server.replace(pod("web-1"))
    await check(server, ready=2, is_available=True)
    server.delete(Pod, "web-0")
    await check(server, ready=1, is_available=False)


async def test_a_failed_write_is_repeated(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    await check(server, ready=0, is_available=False)
    server.fail_next(3, verb="patch", resource="apps", status=500)
    server.create(pod("web-0"))
    await check(server, ready=1, is_available=False)


async def test_a_change_during_a_disconnect_is_not_missed(
    autojump_clock: trio.testing.MockClock, server: APIServer
) -> None:
    await check(server, ready=0, is_available=False)
    server.disconnect_watches()
    server.create(pod("web-0"))
    server.create(pod("web-1"))
    server.compact()  # the next watch gets 410 Gone
    await trio.sleep(60)
    await check(server, ready=2, is_available=True)
