"""A leader in an asyncio program that blocks its loop, and so trio, for too long."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.support.asyncio_programs import client_of, run, server_with
from trioformer import aio
from trioformer.controller import Controller, Request
from trioformer.errors import LeadershipLostError
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.manager import LeaderElection
from trioformer.models.core_v1 import ConfigMap

OPTIONS = LeaderElectionOptions(lease_duration=3.0, renew_deadline=1.5, retry_period=0.2)


@pytest.mark.parametrize(("seconds", "keeps"), [(0.3, True), (1.8, False)])
def test_a_leader_that_blocks_its_loop_too_long_is_cancelled(seconds: float, keeps: bool) -> None:
    seen: list[str] = []
    reconciling = asyncio.Event()

    async def start_maps(context: aio.ManagerContext) -> Controller:
        async def reconcile(request: Request) -> None:
            reconciling.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        controller = Controller(context.name, reconcile)
        controller.watch(context.factory.informer(ConfigMap, namespace="default"))
        return controller

    async def main() -> None:
        async with client_of(server_with("a")) as client:
            election = LeaderElection("maps", "default", options=OPTIONS, client=client._target)
            running = asyncio.create_task(aio.run_controllers(client, {"maps": start_maps}, leader_election=election))
            await reconciling.wait()
            time.sleep(seconds)  # noqa: ASYNC251  # what this is about
            done, _ = await asyncio.wait([running], timeout=0.3 if keeps else 20)
            if keeps:
                assert not done
                assert seen == []
                running.cancel()
                await asyncio.wait([running])
            else:
                with pytest.RaisesGroup(LeadershipLostError):
                    running.result()
            assert seen == ["cancelled"]

    run(main)
