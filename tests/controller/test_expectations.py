"""What a controller waits to observe before it counts again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import attrs
import pytest
import trio
import trio.testing
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from trioformer import Added, Client, Deleted, SharedInformer, SharedInformerFactory, Updated
from trioformer.controller import (
    Controller,
    Expectations,
    Expected,
    Request,
    RequeueAfter,
    controller_reference,
    request_for_owner,
)
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

T = TypeVar("T")

WEB = Request("default", "web")
API = Request("default", "api")
owner_of = request_for_owner(ReplicaSet)


def pod(uid: str, *, owner: str = "web", is_going: bool = False) -> Pod:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": True}
    metadata = {"name": uid, "namespace": "default", "uid": uid, "ownerReferences": [reference]}
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_going else {}
    return from_dict(Pod, {"metadata": {**metadata, **going}})


async def test_a_request_of_which_nothing_is_expected_is_satisfied(autojump_clock: trio.testing.MockClock) -> None:
    expectations = Expectations()
    assert expectations.is_satisfied(WEB)
    assert expectations.get(WEB) is None
    expectations.creation_observed(WEB)
    expectations.deletion_observed(WEB, pod("a"))
    expectations.forget(WEB)
    assert expectations.is_satisfied(WEB)


async def test_creations_are_counted_until_all_are_observed(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestControllerExpectations"""
    expectations = Expectations()
    for _ in range(3):
        with expectations.creating(WEB):
            pass
    for left in (3, 2, 1):
        assert not expectations.is_satisfied(WEB)
        assert expectations.is_satisfied(API)
        assert expectations.get(WEB) == Expected(left, frozenset(), 300.0)
        expectations.creation_observed(API)
        expectations.creation_observed(WEB)
    assert expectations.is_satisfied(WEB)


async def test_a_deletion_is_observed_once_and_by_its_uid(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestUIDExpectations"""
    expectations = Expectations()
    for uid in ("a", "b"):
        with expectations.deleting(WEB, pod(uid)):
            pass
    for uid in ("a", "a", "c"):
        expectations.deletion_observed(WEB, pod(uid))
        assert expectations.get(WEB) == Expected(0, frozenset({"b"}), 300.0)
    expectations.deletion_observed(API, pod("b"))
    assert not expectations.is_satisfied(WEB)
    expectations.deletion_observed(WEB, pod("b"))
    assert expectations.is_satisfied(WEB)


async def test_creations_do_not_count_for_deletions_nor_the_reverse(autojump_clock: trio.testing.MockClock) -> None:
    expectations = Expectations()
    with expectations.creating(WEB), expectations.deleting(WEB, pod("a")):
        pass
    expectations.creation_observed(WEB)
    expectations.creation_observed(WEB)
    assert not expectations.is_satisfied(WEB)
    expectations.deletion_observed(WEB, pod("a"))
    assert expectations.is_satisfied(WEB)


async def test_what_nobody_expected_does_not_count_for_what_is_expected_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    expectations = Expectations()
    with expectations.deleting(WEB, pod("a")):
        pass
    expectations.creation_observed(WEB)
    with expectations.creating(WEB):
        pass
    expectations.deletion_observed(WEB, pod("a"))
    assert not expectations.is_satisfied(WEB)


async def test_a_request_that_fails_is_expected_no_longer(autojump_clock: trio.testing.MockClock) -> None:
    expectations = Expectations()

    def refused(expected: AbstractContextManager[None]) -> None:
        with expected:
            assert not expectations.is_satisfied(WEB)
            raise OSError("refused")

    for expected in (expectations.creating(WEB), expectations.deleting(WEB, pod("a"))):
        with pytest.raises(OSError, match="refused"):
            refused(expected)
    with trio.move_on_after(1), expectations.creating(WEB):
        await trio.sleep(2)
    assert expectations.is_satisfied(WEB)
    assert repr(expectations) == "<Expectations of 0 requests>"


async def test_an_event_that_is_earlier_than_the_answer_counts(autojump_clock: trio.testing.MockClock) -> None:
    expectations = Expectations()
    with expectations.creating(WEB):
        expectations.creation_observed(WEB)
    with expectations.deleting(WEB, pod("a")):
        expectations.deletion_observed(WEB, pod("a"))
    assert expectations.is_satisfied(WEB)


async def test_what_is_not_observed_in_five_minutes_is_told_and_forgotten(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    expectations = Expectations()
    with expectations.creating(WEB):
        pass
    await trio.sleep(200)
    with expectations.deleting(WEB, pod("a")):
        pass
    await trio.sleep(299)
    assert not expectations.is_satisfied(WEB)
    assert expectations.requeue(WEB) == RequeueAfter(1)
    assert expectations.requeue(API) is None
    await trio.sleep(1)
    assert expectations.requeue(WEB) == RequeueAfter(0)
    assert expectations.is_satisfied(WEB)
    assert expectations.requeue(WEB) is None
    assert [record.getMessage() for record in caplog.records] == [
        "default/web: 1 creations and 1 deletions were not observed within 300 s; going on without"
    ]
    assert expectations.get(WEB) is None


async def test_what_has_expired_does_not_count_for_what_is_expected_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    expectations = Expectations(period=10)
    with expectations.creating(WEB), expectations.creating(WEB):
        pass
    await trio.sleep(10)
    with expectations.creating(WEB):
        pass
    assert expectations.get(WEB) == Expected(1, frozenset(), 20.0)
    assert not expectations.is_satisfied(WEB)


async def test_what_is_forgotten_is_not_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    expectations = Expectations()
    with expectations.creating(WEB), expectations.creating(API):
        pass
    expectations.forget(WEB)
    assert expectations.is_satisfied(WEB)
    assert not expectations.is_satisfied(API)


async def test_events_strike_out_what_they_tell_of_and_all_of_them_pass(
    autojump_clock: trio.testing.MockClock,
) -> None:
    expectations = Expectations()
    observe = expectations.observing(owner_of)
    with expectations.creating(WEB), expectations.deleting(WEB, pod("a")), expectations.deleting(WEB, pod("b")):
        pass
    assert observe(Added(pod("x", owner="api")))
    assert observe(Updated(pod("a"), pod("a")))
    assert expectations.get(WEB) == Expected(1, frozenset({"a", "b"}), 300.0)
    assert observe(Added(pod("c")))
    assert expectations.get(WEB) == Expected(0, frozenset({"a", "b"}), 300.0)
    assert observe(Updated(pod("a"), pod("a", is_going=True)))
    assert observe(Deleted(pod("a", is_going=True)))
    assert expectations.get(WEB) == Expected(0, frozenset({"b"}), 300.0)
    assert observe(Deleted(pod("b"), is_stale=True))
    assert expectations.is_satisfied(WEB)


async def test_an_object_that_is_first_seen_while_it_goes_has_come_and_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    expectations = Expectations()
    with expectations.creating(WEB), expectations.deleting(WEB, pod("a")):
        pass
    assert expectations.observing(owner_of)(Added(pod("a", is_going=True)))
    assert expectations.is_satisfied(WEB)


# --- a model ----------------------------------------------------------------------------------------------------------

REQUESTS = st.sampled_from([WEB, API])
UIDS = st.sampled_from("abc")


@attrs.define(eq=False)
class Asked:
    """Everything that was asked for and is not struck out."""

    creations: int = 0
    uids: set[str] = attrs.field(factory=set)
    last: float = 0.0

    @property
    def is_over(self) -> bool:
        return not self.creations and not self.uids


class ExpectationsMachine(RuleBasedStateMachine):
    """Expectations beside a model that keeps what was asked for, and when."""

    @initialize()
    def begin(self) -> None:
        self.clock = trio.testing.MockClock()
        self.expectations = Expectations(period=10)
        self.asked = {WEB: Asked(), API: Asked()}
        self.now = 0.0

    def run(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return trio.run(call, clock=self.clock)

    def ask(self, request: Request) -> Asked:
        if self.now >= self.asked[request].last + 10:
            self.asked[request] = Asked()
        self.asked[request].last = self.now
        return self.asked[request]

    @rule(request=REQUESTS, fails=st.booleans())
    def create(self, request: Request, fails: bool) -> None:
        asked = self.ask(request)
        asked.creations += not fails

        def create() -> None:
            with self.expectations.creating(request):
                if fails:
                    raise OSError

        self.attempt(create, fails)

    @rule(request=REQUESTS, uid=UIDS, fails=st.booleans())
    def delete(self, request: Request, uid: str, fails: bool) -> None:
        asked = self.ask(request)
        if fails:
            asked.uids.discard(uid)
        else:
            asked.uids.add(uid)

        def delete() -> None:
            with self.expectations.deleting(request, pod(uid)):
                if fails:
                    raise OSError

        self.attempt(delete, fails)

    def attempt(self, function: Callable[[], None], fails: bool) -> None:
        if fails:
            with pytest.raises(OSError):  # noqa: PT011  # it has no text
                self.run(function)
        else:
            self.run(function)

    @rule(request=REQUESTS)
    def see_creation(self, request: Request) -> None:
        self.asked[request].creations = max(0, self.asked[request].creations - 1)
        self.expectations.creation_observed(request)

    @rule(request=REQUESTS, uid=UIDS)
    def see_deletion(self, request: Request, uid: str) -> None:
        self.asked[request].uids.discard(uid)
        self.expectations.deletion_observed(request, pod(uid))

    @rule(seconds=st.sampled_from([1.0, 4.0, 9.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.clock.jump(seconds)

    @rule(request=REQUESTS)
    def look(self, request: Request) -> None:
        asked = self.asked[request]
        expired = self.now >= asked.last + 10
        assert self.run(lambda: self.expectations.is_satisfied(request)) == (asked.is_over or expired)
        if expired:
            self.asked[request] = Asked()

    @rule(request=REQUESTS)
    def forget(self, request: Request) -> None:
        self.asked[request] = Asked()
        self.expectations.forget(request)

    @invariant()
    def they_agree(self) -> None:
        for request, asked in self.asked.items():
            told = self.expectations.get(request)
            expected = None if asked.is_over else Expected(asked.creations, frozenset(asked.uids), asked.last + 10)
            assert told == expected


TestExpectationsMachine = ExpectationsMachine.TestCase


# --- a controller whose cache is behind -------------------------------------------------------------------------------


@attrs.define(eq=False)
class Replicator:
    """Keeps a ReplicaSet's pods at their number, as its cache has them."""

    client: Client
    replica_sets: SharedInformer[ReplicaSet]
    pods: SharedInformer[Pod]
    expectations: Expectations = attrs.field(factory=Expectations)
    looks: bool = True

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        if self.expectations.is_satisfied(request) or not self.looks:
            await self.replicate(request)
        return self.expectations.requeue(request)

    async def replicate(self, request: Request) -> None:
        replica_set = self.replica_sets.lister.get(request.name, namespace=request.namespace)
        if replica_set is None:
            return
        api = self.client.api(Pod, namespace=request.namespace)
        there = [pod for pod in self.pods.lister if pod.metadata.deletion_timestamp is None]
        metadata = ObjectMeta(generate_name="web-", owner_references=(controller_reference(replica_set),))
        for _ in range((replica_set.spec.replicas or 0) - len(there)):
            with self.expectations.creating(request):
                await api.create(Pod(metadata=metadata))
        for pod in there[replica_set.spec.replicas or 0 :]:
            with self.expectations.deleting(request, pod):
                await api.delete(pod.name)


@pytest.mark.parametrize("looks", [True, False])
async def test_a_controller_whose_watch_is_broken_creates_no_pod_too_many(
    looks: bool, autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """Without expectations it does, which shows that this test can fail."""
    meta = {"name": "web", "namespace": "default"}
    api_server.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"replicas": 0}})
    factory = SharedInformerFactory(client)
    replica_sets, pods = factory.informer(ReplicaSet), factory.informer(Pod)
    replicator = Replicator(client, replica_sets, pods, looks=looks)
    controller = Controller("replicator", replicator.reconcile)
    controller.watch(replica_sets)
    controller.watch(pods, enqueue=owner_of, predicates=[replicator.expectations.observing(owner_of)])
    await nursery.start(factory.run)
    await nursery.start(controller.run)
    most = 0
    for replicas in (3, 1, 2):
        api_server.fail_next(3, verb="watch", resource="pods")
        api_server.disconnect_watches(kind=Pod)
        api_server.patch(ReplicaSet, "web", {"spec": {"replicas": replicas}})
        for _ in range(5):
            controller.add(WEB)
            await trio.sleep(0.1)
            most = max(most, len(api_server.list(Pod)))
        await trio.sleep(60)
        assert len(api_server.list(Pod)) == replicas
    assert (most == 3) is looks
    assert replicator.expectations.is_satisfied(WEB)


async def test_a_lost_event_holds_a_controller_up_for_five_minutes_and_not_for_ever(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """A pod that is created and deleted while the watch is broken is never told of."""
    meta = {"name": "web", "namespace": "default"}
    api_server.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"replicas": 0}})
    factory = SharedInformerFactory(client)
    replica_sets, pods = factory.informer(ReplicaSet), factory.informer(Pod)
    replicator = Replicator(client, replica_sets, pods)
    controller = Controller("replicator", replicator.reconcile)
    controller.watch(replica_sets)
    controller.watch(pods, enqueue=owner_of, predicates=[replicator.expectations.observing(owner_of)])
    await nursery.start(factory.run)
    await nursery.start(controller.run)
    api_server.fail_next(3, verb="watch", resource="pods")
    api_server.disconnect_watches(kind=Pod)
    api_server.patch(ReplicaSet, "web", {"spec": {"replicas": 1}})
    await trio.sleep(0.1)
    for pod in api_server.list(Pod):
        api_server.delete(pod)
    api_server.compact()
    await trio.sleep(290)
    assert api_server.list(Pod) == []
    await trio.sleep(20)
    assert len(api_server.list(Pod)) == 1
