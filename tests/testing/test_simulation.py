"""The simulated cluster for demos."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.support.raw_requests import watching
from trioformer.errors import NotFoundError
from trioformer.leaderelection import Leadership, run_as_leader
from trioformer.models import from_dict
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Node, Pod
from trioformer.testing import APIServer, open_simulated_cluster
from trioformer.testing._simulation import simulate_cluster

PODS = "/api/v1/namespaces/default/pods"


async def test_pods_are_added_modified_and_deleted_within_three_seconds(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    server = APIServer()
    await nursery.start(server.run)
    await nursery.start(simulate_cluster, server)
    assert len(server.list(Node)) == 3
    assert [pod.status.phase for pod in server.list(Pod)] == ["Running"] * 3
    async with watching(server, PODS, resourceVersion=server.statistics().revision) as watch:
        seen: set[str] = set()
        with trio.fail_after(3):
            while seen != {"ADDED", "MODIFIED", "DELETED"}:
                seen.add((await watch.event())[0])


async def test_the_number_of_pods_is_bounded(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(simulate_cluster, server)
    most = 0
    for _ in range(200):
        await trio.sleep(0.5)
        most = max(most, len(server.list(Pod)))
    assert 3 <= most <= 6
    assert len(server.list(Pod)) >= 2


async def test_clients_may_delete_its_pods(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(simulate_cluster, server)
    for _ in range(20):
        await trio.sleep(0.5)
        for pod in server.list(Pod):
            server.delete(pod)
    assert server.statistics().revision > 20


async def test_it_can_run_again_on_the_same_server(autojump_clock: trio.testing.MockClock) -> None:
    server = APIServer()
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            await nursery.start(simulate_cluster, server)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
    assert len(server.list(Node)) == 3


async def test_a_simulated_cluster_is_there_when_its_client_is(autojump_clock: trio.testing.MockClock) -> None:
    async with open_simulated_cluster() as client:
        first = {pod.name for pod in await client.api(Pod).list()}
        await trio.sleep(5)
        assert {pod.name for pod in await client.api(Pod).list()} != first
    assert len(first) == 3


async def test_another_simulation_acts_on_the_given_server(autojump_clock: trio.testing.MockClock) -> None:
    async def simulate(given: APIServer, *, task_status: trio.TaskStatus[None]) -> None:
        given.create(from_dict(Node, {"metadata": {"name": "only"}}))
        task_status.started()

    server = APIServer()
    async with open_simulated_cluster(simulate, server=server) as client:
        await trio.testing.wait_all_tasks_blocked()  # the block goes on when the simulation has ended
        assert [node.name for node in await client.api(Node).list()] == ["only"]
    assert server.list(Pod) == []


async def test_a_cancelled_block_cleans_up_while_the_simulated_cluster_serves(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = APIServer()
    with trio.move_on_after(5) as scope:
        async with open_simulated_cluster(server=server) as client:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(1)
                    await client.api(Node).delete("node-1")
    assert scope.cancelled_caught
    assert "node-1" not in {node.name for node in server.list(Node)}


async def test_a_cancelled_simulation_cleans_up_while_its_cluster_serves(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def lead(given: APIServer, *, task_status: trio.TaskStatus[None]) -> None:
        async def work(_: Leadership) -> None:
            task_status.started()
            await trio.sleep_forever()

        async with given.open_client() as client:
            await run_as_leader(client, work, name="lease", namespace="default")

    server = APIServer()
    with trio.move_on_after(5) as scope:
        async with open_simulated_cluster(lead, server=server):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert server.get(Lease, "lease").spec.holder_identity in {None, ""}


async def test_a_simulated_cluster_that_is_cancelled_at_once_leaves_no_task() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        async with open_simulated_cluster():
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def test_a_simulated_cluster_ends_with_an_error_of_its_block(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(NotFoundError):
        async with open_simulated_cluster() as client:
            await client.api(Node).get("none")
