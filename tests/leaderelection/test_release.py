"""The release of a Lease; tests/leaderelection/test_elector.py tests it as the end of a leadership."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.support.lease_candidates import NAME, NAMESPACE, FaultInjector, stored_lease
from trioformer.client import open_client
from trioformer.leaderelection._leadership import LeaderElectionOptions
from trioformer.leaderelection._lease_claim import LeaseClaim
from trioformer.leaderelection._lease_lock import LeaseLock
from trioformer.leaderelection._release import RELEASE_CONFLICTS, RELEASE_TRIES, release
from trioformer.models.coordination_v1 import Lease
from trioformer.testing import APIServer


@pytest.mark.parametrize(
    ("status", "failures", "is_released"),
    [
        (500, RELEASE_TRIES - 1, True),
        (500, RELEASE_TRIES, False),
        (409, RELEASE_CONFLICTS + RELEASE_TRIES - 1, True),
        (409, RELEASE_CONFLICTS + RELEASE_TRIES, False),
    ],
)
async def test_a_release_gives_up_after_some_failures(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    nursery: trio.Nursery,
    status: int,
    failures: int,
    is_released: bool,
) -> None:
    transport = FaultInjector(api_server.http_transport(), nursery)
    options = LeaderElectionOptions()
    async with open_client(api_server.config, http_transport=transport) as client:
        claim = LeaseClaim(LeaseLock(client.api(Lease, namespace=NAMESPACE), NAME, {}), "us", options)
        assert await claim.try_acquire() is not None
        api_server.fail_next(failures, verb="update", status=status)
        await release(claim, "us", options)
        assert claim.holder == ("" if is_released else "us")
    assert stored_lease(api_server).holder_identity == ("" if is_released else "us")
    assert trio.current_time() < 5


async def test_a_cancelled_release_is_finished_within_the_renew_deadline(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    transport = FaultInjector(api_server.http_transport(), nursery)
    options = LeaderElectionOptions()
    async with open_client(api_server.config, http_transport=transport) as client:
        claim = LeaseClaim(LeaseLock(client.api(Lease, namespace=NAMESPACE), NAME, {}), "us", options)
        assert await claim.try_acquire() is not None
        with trio.CancelScope() as scope:
            scope.cancel()
            transport.fault = lambda _: "slow"
            await release(claim, "us", options)
            assert trio.current_time() == 8
            assert claim.holder == ""
            assert await claim.try_release() is False
