"""Test an operator that owns Deployments: controllers create pods, on virtual time.

The fixtures ``nursery`` and ``autojump_clock`` are part of pytest-trio. Run the tests
with ``pytest examples``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import trio
import trio.testing
from website_operator import Website, WebsiteSpec, serve

from trioformer import Client, ObjectMeta, crds, wait_for
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod
from trioformer.watchtools import deleted


def start_after_ten_seconds(pod: Pod, script: ScriptedPod) -> None:
    script.after(10, script.start)


@pytest.fixture
async def api_server(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> APIServer:
    server = APIServer(controllers=True, run_pod=start_after_ten_seconds)
    await nursery.start(server.run)
    return server


@pytest.fixture
async def client(api_server: APIServer, nursery: trio.Nursery) -> AsyncIterator[Client]:
    """A client of a cluster in which the operator runs."""
    async with api_server.open_client(field_manager="tests") as client:
        await crds.install_crds(client, Website)
        stop = trio.Event()
        nursery.start_soon(serve, client, stop)
        yield client
        stop.set()


def website(replicas: int) -> Website:
    metadata = ObjectMeta(name="blog", namespace="default")
    return Website(metadata=metadata, spec=WebsiteSpec(page="Hello", replicas=replicas))


def is_ready(reason: str) -> Callable[[Website], bool]:
    return lambda found: any(one.reason == reason for one in found.status.conditions)


async def test_a_website_is_available_when_all_pods_are_ready(
    autojump_clock: trio.testing.MockClock, client: Client, api_server: APIServer
) -> None:
    websites = client.api(Website, namespace="default")
    await websites.create(website(replicas=3))
    await wait_for(websites, "blog", is_ready("Progressing"))
    assert len(api_server.list(Pod)) == 3

    started = trio.current_time()
    found = await wait_for(websites, "blog", is_ready("Available"))
    assert found.status.available == 3
    assert trio.current_time() - started <= 10


async def test_a_lost_pod_is_reported_until_it_is_replaced(
    autojump_clock: trio.testing.MockClock, client: Client, api_server: APIServer
) -> None:
    websites = client.api(Website, namespace="default")
    await websites.create(website(replicas=2))
    await wait_for(websites, "blog", is_ready("Available"))

    api_server.script_pod(api_server.list(Pod)[0].name).end(exit_code=1)
    found = await wait_for(websites, "blog", is_ready("Progressing"))
    assert found.status.available == 1
    await wait_for(websites, "blog", is_ready("Available"))


async def test_a_website_without_pods_is_not_available(
    autojump_clock: trio.testing.MockClock, client: Client, api_server: APIServer
) -> None:
    api_server.run_pod = lambda pod, script: (
        None
    )  # for example, the image does not exist
    await client.api(Website, namespace="default").create(website(replicas=1))
    await trio.sleep(900)  # virtual seconds

    conditions = api_server.get(Deployment, "blog").status.conditions
    assert "ProgressDeadlineExceeded" in [condition.reason for condition in conditions]
    assert api_server.get(Website, "blog").status.available == 0


async def test_everything_is_deleted_with_the_website(
    autojump_clock: trio.testing.MockClock, client: Client, api_server: APIServer
) -> None:
    websites = client.api(Website, namespace="default")
    await websites.create(website(replicas=2))
    await wait_for(websites, "blog", is_ready("Available"))

    await websites.delete("blog")
    await wait_for(websites, "blog", deleted())
    assert not api_server.list(Deployment)
    assert not api_server.list(Pod)
