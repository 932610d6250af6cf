"""The rotation of the certificate of webhooks, with leaders and replicas that die, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Literal, get_args

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
    Leader,
    Replica,
    WallClock,
    Witness,
    edit_secret,
    installed_ca,
    stored_secret,
    validating,
)
from trioformer.errors import NotFoundError
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Secret
from trioformer.testing import APIServer
from trioformer.webhooks._announcements import DURATION, RENEW_PERIOD
from trioformer.webhooks._rotation import CLOCK_PERIOD, PUBLISH_PERIOD
from trioformer.webhooks._secret_states import STATE, fingerprint

RENEWAL = 61 * DAY


@attrs.define(eq=False)
class Operator:
    """Replicas of an operator, of which one leads, and a witness that calls them."""

    server: APIServer
    nursery: trio.Nursery
    clock: WallClock
    replicas: list[Replica] = attrs.field(factory=list)
    leader: Leader | None = None
    witness: Witness = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.witness = Witness(self.server, self.replicas)

    def start_replica(self) -> None:
        self.replicas.append(Replica(self.server, self.nursery))
        self.nursery.start_soon(self.replicas[-1].run)

    def replace_leader(self) -> None:
        """Kill the leader and start another one, which knows only what the server knows."""
        if self.leader is not None:
            self.leader.scope.cancel()
        self.leader = Leader(self.server, self.nursery, [validating("a", "b")])
        self.nursery.start_soon(self.leader.run)

    def renew(self) -> None:
        """Let the certificate become old, and a new leader see it."""
        self.clock.offset += RENEWAL
        self.replace_leader()

    async def wait_for(self, state: str) -> None:
        while self.witness.states[-1] != state:
            await self.witness.changed.wait()

    def check_rotated(self, old: Secret) -> None:
        """Check that a rotation was completed without a failed call."""
        assert self.witness.failed == [], self.witness.failed[:5]
        new = stored_secret(self.server)
        assert new.data["tls.crt"] != old.data["tls.crt"]
        assert sorted(new.data) == ["ca.crt", "tls.crt", "tls.key"]
        assert new.data["ca.crt"].count(b"BEGIN") == 1
        assert [installed_ca(self.server, index) for index in (0, 1)] == [new.data["ca.crt"]] * 2


@asynccontextmanager
async def running_operator(server: APIServer, replicas: int = 2) -> AsyncIterator[Operator]:
    with ExitStack() as stack:
        async with trio.open_nursery() as nursery:
            operator = Operator(server, nursery, WallClock())
            operator.clock.install(stack)
            operator.replace_leader()
            for _ in range(replicas):
                operator.start_replica()
            await trio.sleep(20)
            nursery.start_soon(operator.witness.run)
            await trio.sleep(1)
            yield operator
            nursery.cancel_scope.cancel()


async def test_a_rotation_fails_no_call(autojump_clock: trio.testing.MockClock, api_server: APIServer) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        operator.clock.offset += RENEWAL
        await trio.sleep(CLOCK_PERIOD)
        await operator.wait_for("publishing")
        began = trio.current_time()
        await operator.wait_for("stable")
        assert trio.current_time() - began < PUBLISH_PERIOD + 10  # nobody waited for a dead replica
        await trio.sleep(10)
        operator.check_rotated(first)
        assert operator.witness.states == ["stable", "publishing", "switching", "stable"]


@pytest.mark.parametrize("after", [0.0, 0.5, 1.5, 30.0])
@pytest.mark.parametrize("state", ["publishing", "switching", "stable"])
async def test_a_leader_that_is_killed_in_any_state_has_a_successor(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, state: str, after: float
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        operator.renew()
        await operator.wait_for("publishing")
        await operator.wait_for(state)
        await trio.sleep(after)
        operator.replace_leader()
        await trio.sleep(2 * PUBLISH_PERIOD)
        operator.check_rotated(first)


async def test_a_dead_replica_delays_the_rotation_only_until_its_lease_expires(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server, replicas=3) as operator:
        first = stored_secret(api_server)
        operator.renew()
        await operator.wait_for("publishing")
        await trio.sleep(PUBLISH_PERIOD - 10)
        operator.replicas[1].kill()
        began = trio.current_time()
        await operator.wait_for("switching")
        await operator.wait_for("stable")
        assert DURATION - RENEW_PERIOD < trio.current_time() - began < DURATION + 2 * RENEW_PERIOD
        await trio.sleep(10)
        operator.check_rotated(first)
        assert len(api_server.list(Lease, namespace=NAMESPACE)) == 2  # the leader deletes that of the dead replica


async def test_a_rotation_continues_with_a_replica_that_came_back_in_the_last_moment(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server, replicas=1) as operator:
        first = stored_secret(api_server)
        operator.renew()
        await operator.wait_for("publishing")
        transport = operator.replicas[0].transport
        assert transport is not None
        api_server.fail_next(verb="delete", resource="leases.coordination.k8s.io", status=409)
        transport.fault = lambda _: "refuse"
        await trio.sleep(PUBLISH_PERIOD + 10)
        transport.fault = lambda _: "slow"
        await trio.sleep(2 * PUBLISH_PERIOD)
        assert operator.witness.states == ["stable", "publishing", "switching", "stable"]
        operator.check_rotated(first)


async def test_a_replica_that_ends_does_not_delay_the_rotation(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        operator.renew()
        await operator.wait_for("publishing")
        operator.replicas[1].stop()
        await operator.wait_for("switching")
        began = trio.current_time()
        await operator.wait_for("stable")
        assert trio.current_time() - began < 10
        await trio.sleep(10)
        operator.check_rotated(first)


async def test_nothing_is_installed_before_a_replica_serves(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server, replicas=0) as operator:
        await trio.sleep(100)
        assert api_server.list(ValidatingWebhookConfiguration) == []
        operator.start_replica()
        await trio.sleep(10)
        assert installed_ca(api_server) == stored_secret(api_server).data["ca.crt"]


@pytest.mark.parametrize("state", ["stable", "publishing", "switching"])
async def test_a_deleted_secret_is_restored_and_its_certificate_replaced(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, state: str
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        if state != "stable":
            operator.renew()
            await operator.wait_for(state)
            await trio.sleep(1.5)
        api_server.delete(Secret, SECRET, namespace=NAMESPACE)
        await trio.sleep(3 * PUBLISH_PERIOD)
        operator.check_rotated(first)


@pytest.mark.parametrize(
    "changes",
    [{"tls_crt": b"rubbish"}, {"tls_key": b""}, {"ca_crt": b"rubbish"}, {"tls_crt": b""}],
    ids=["another certificate", "no key", "another CA", "no certificate"],
)
async def test_a_secret_that_somebody_edited_is_replaced(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, changes: dict[str, bytes]
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        edit_secret(api_server, **changes)
        await trio.sleep(3 * PUBLISH_PERIOD)
        operator.check_rotated(first)


async def test_an_edited_state_begins_a_new_rotation(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        for state in ("publishing", "switching", "unknown"):
            found = stored_secret(api_server)
            annotations = {**found.metadata.annotations, STATE: state}
            api_server.replace(found.evolve(metadata=found.metadata.evolve(annotations=annotations)))
            await trio.sleep(3 * PUBLISH_PERIOD)
        operator.check_rotated(first)


async def test_a_configuration_that_somebody_edited_is_restored(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server):
        before = api_server.get(ValidatingWebhookConfiguration, CONFIGURATION)
        api_server.patch(ValidatingWebhookConfiguration, CONFIGURATION, {"webhooks": []})
        await trio.sleep(10)
        assert api_server.get(ValidatingWebhookConfiguration, CONFIGURATION).webhooks == before.webhooks
        api_server.delete(ValidatingWebhookConfiguration, CONFIGURATION)
        await trio.sleep(10)
        assert api_server.get(ValidatingWebhookConfiguration, CONFIGURATION).webhooks == before.webhooks


async def test_the_wait_begins_again_when_somebody_takes_a_ca_out_of_a_configuration(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        operator.renew()
        await operator.wait_for("publishing")
        await trio.sleep(PUBLISH_PERIOD - 5)
        found = api_server.get(ValidatingWebhookConfiguration, CONFIGURATION)
        config = found.webhooks[0].client_config.evolve(ca_bundle=first.data["ca.crt"])
        api_server.replace(found.evolve(webhooks=[found.webhooks[0].evolve(client_config=config), *found.webhooks[1:]]))
        began = trio.current_time()
        operator.witness.look()
        await operator.wait_for("stable")
        assert trio.current_time() - began > PUBLISH_PERIOD
        await trio.sleep(10)
        operator.check_rotated(first)


async def test_a_certificate_that_expired_while_no_leader_ran_is_replaced_immediately(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        operator.clock.offset += 100 * DAY
        operator.replace_leader()
        await trio.sleep(10)
        new = stored_secret(api_server)
        assert new.data["tls.crt"] != first.data["tls.crt"]
        assert installed_ca(api_server) == new.data["ca.crt"]
        assert {replica.fingerprint for replica in operator.replicas} == {fingerprint(new.data["tls.crt"])}


async def test_a_certificate_from_the_future_is_rotated(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server) as operator:
        first = stored_secret(api_server)
        operator.clock.offset -= 2 * DAY
        operator.replace_leader()
        await trio.sleep(2 * PUBLISH_PERIOD)
        operator.check_rotated(first)


async def test_a_replica_that_cannot_announce_its_certificate_is_not_ready(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    async with running_operator(api_server) as operator:
        replica = operator.replicas[0]
        assert replica.is_serving
        assert replica.transport is not None
        replica.transport.fault = lambda _: "refuse"
        await trio.sleep(DURATION + 30)
        assert not replica.is_serving
        replica.transport.fault = lambda _: "slow"
        await trio.sleep(30)
        assert replica.is_serving


Event = Literal["renew", "replace leader", "delete secret", "edit secret", "new replica", "kill", "stop"]


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(st.sampled_from(get_args(Event)), st.sampled_from([0.3, 1.1, 5.0, 40.0, 70.0])),
        min_size=1,
        max_size=8,
    )
)
def test_no_story_fails_a_call(story: list[tuple[Event, float]]) -> None:
    async def main() -> None:
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with running_operator(server) as operator:
                await play(operator, story)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def play(operator: Operator, story: list[tuple[Event, float]]) -> None:
    """Let things happen, each some time after the last one, and then check the end of the last rotation."""
    first = stored_secret(operator.server)
    may_renew = True
    for event, delay in story:
        match event:
            # A new leader cannot restore a Secret that it has never read.
            case "renew" if may_renew:  # a second time, the certificate could expire
                await trio.sleep(5)
                operator.renew()
                may_renew = False
                await trio.sleep(5)
            case "replace leader":
                await trio.sleep(5)
                operator.replace_leader()
                await trio.sleep(5)
            case "delete secret":
                with suppress(NotFoundError):
                    operator.server.delete(Secret, SECRET, namespace=NAMESPACE)
            case "edit secret":
                with suppress(NotFoundError):
                    edit_secret(operator.server, ca_crt=b"rubbish")
            case "new replica":
                operator.start_replica()
            case "kill" | "stop" if len(operator.replicas) > 1:
                replica = operator.replicas.pop()
                replica.kill() if event == "kill" else replica.stop()
            case _:
                pass
        await trio.sleep(delay)
    with suppress(NotFoundError):
        operator.server.delete(Secret, SECRET, namespace=NAMESPACE)
    await trio.sleep(4 * DURATION)
    operator.check_rotated(first)
