"""The rotation of the certificate of webhooks, with leaders and replicas that die, on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.webhook_replicas import (
    CONFIGURATION,
    DAY,
    NAMESPACE,
    SECRET,
    SERVICE,
    Leader,
    Replica,
    WallClock,
    Witness,
    edit_secret,
    installed_ca,
    stored_secret,
    validating,
)
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Secret
from trioformer.testing import APIServer
from trioformer.webhooks._announcements import DURATION
from trioformer.webhooks._rotation import CLOCK_PERIOD, PUBLISH_PERIOD

RENEWAL = 61 * DAY


@attrs.define(eq=False)
class Operator:
    """Replicas of an operator of which one leads."""

    server: APIServer
    nursery: trio.Nursery
    clock: WallClock
    replicas: list[Replica] = attrs.field(factory=list)
    leader: Leader | None = None
    witness: Witness = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.witness = Witness(self.server, self.replicas)

    async def start(self, replicas: int = 2) -> None:
        self.start_leader()
        for _ in range(replicas):
            self.start_replica()
        await trio.sleep(20)
        self.nursery.start_soon(self.witness.run)

    def start_replica(self) -> None:
        self.replicas.append(Replica(self.server, self.nursery))
        self.nursery.start_soon(self.replicas[-1].run)

    def start_leader(self) -> None:
        self.leader = Leader(self.server, self.nursery, [validating("a", "b")])
        self.nursery.start_soon(self.leader.run)

    def kill_leader(self) -> None:
        assert self.leader is not None
        self.leader.kill()
        self.leader = None

    async def wait_for(self, state: str) -> None:
        while not self.witness.states or self.witness.states[-1] != state:
            await trio.sleep(0.1)

    def renew(self) -> None:
        """Let the certificate become old."""
        self.clock.offset += RENEWAL

    def check_rotated(self, old: Secret) -> None:
        """Check that a rotation was completed without a failed call."""
        assert self.witness.failed == []
        new = stored_secret(self.server)
        assert new.data["tls.crt"] != old.data["tls.crt"]
        assert sorted(new.data) == ["ca.crt", "tls.crt", "tls.key"]
        assert new.data["ca.crt"].count(b"BEGIN") == 1
        assert [installed_ca(self.server, index) for index in (0, 1)] == [new.data["ca.crt"]] * 2


@pytest.fixture
async def operator(api_server: APIServer, nursery: trio.Nursery) -> Operator:
    return Operator(api_server, nursery, WallClock())


@pytest.fixture(autouse=True)
def clock_of_the_operator(operator: Operator) -> None:
    """Tasks inherit the clock from the test, in which a fixture cannot set it."""


def wall_clock(operator: Operator) -> ExitStack:
    stack = ExitStack()
    operator.clock.install(stack)
    return stack


async def test_a_rotation_fails_no_call(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery, operator: Operator
) -> None:
    with wall_clock(operator):
        await operator.start()
        first = stored_secret(api_server)
        operator.renew()
        began = trio.current_time()
        await operator.wait_for("publishing")
        await operator.wait_for("stable")
        await trio.sleep(10)
        operator.check_rotated(first)
        assert operator.witness.states == ["stable", "publishing", "switching", "stable"]
        assert trio.current_time() - began < CLOCK_PERIOD + PUBLISH_PERIOD + 20  # nobody waited for a dead replica
        nursery.cancel_scope.cancel()
