"""Expectations: creations and deletions that a controller waits to observe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import attrs
import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from trio.testing import MockClock

from trioformer import Added, Client, Deleted, SharedInformer, SharedInformerFactory, Updated
from trioformer.controller import (
    Controller,
    Expectations,
    Request,
    RequeueAfter,
    controller_reference,
    request_for_owner,
)
from trioformer.controller._expectations import Expected
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing import APIServer

T = TypeVar("T")

WEB = Request("default", "web")
API = Request("default", "api")
owner_of = request_for_owner(ReplicaSet)


def pod(uid: str, *, owner: str = "web", is_being_deleted: bool = False) -> Pod:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": True}
    metadata = {"name": uid, "namespace": "default", "uid": uid, "ownerReferences": [reference]}
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_being_deleted else {}
    return from_dict(Pod, {"metadata": {**metadata, **deletion}})


async def test_a_request_without_expectations_is_satisfied(autojump_clock: MockClock) -> None:
    expectations = Expectations()
    assert expectations.is_satisfied(WEB)
    assert expectations.get(WEB) is None
    expectations.creation_observed(WEB)
    expectations.deletion_observed(WEB, pod("a"))
    expectations.forget(WEB)
    assert expectations.is_satisfied(WEB)


async def test_creations_are_counted_until_all_are_observed(autojump_clock: MockClock) -> None:
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


async def test_unexpected_events_do_not_count_for_later_expectations(
    autojump_clock: MockClock,
) -> None:
    expectations = Expectations()
    with expectations.deleting(WEB, pod("a")):
        pass
    expectations.creation_observed(WEB)
    with expectations.creating(WEB):
        pass
    expectations.deletion_observed(WEB, pod("a"))
    assert not expectations.is_satisfied(WEB)


async def test_an_exception_in_the_block_removes_the_expectation(autojump_clock: MockClock) -> None:
    expectations = Expectations()

    def fail(expected: AbstractContextManager[None]) -> None:
        with expected:
            assert not expectations.is_satisfied(WEB)
            raise OSError("rejected")

    for expected in (expectations.creating(WEB), expectations.deleting(WEB, pod("a"))):
        with pytest.raises(OSError, match="rejected"):
            fail(expected)
    with trio.move_on_after(1), expectations.creating(WEB):
        await trio.sleep(2)
    assert expectations.is_satisfied(WEB)
    assert repr(expectations) == "<Expectations of 0 requests>"


async def test_an_event_that_arrives_before_the_response_counts(autojump_clock: MockClock) -> None:
    expectations = Expectations()
    with expectations.creating(WEB):
        expectations.creation_observed(WEB)
    with expectations.deleting(WEB, pod("a")):
        expectations.deletion_observed(WEB, pod("a"))
    assert expectations.is_satisfied(WEB)


async def test_expectations_that_expire_after_five_minutes_are_logged_and_removed(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
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
        "default/web: 1 creations and 1 deletions were not observed within 300 s; no longer waiting for them"
    ]
    assert expectations.get(WEB) is None


async def test_the_observing_predicate_meets_expectations_and_passes_all_events(
    autojump_clock: MockClock,
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
    assert observe(Updated(pod("a"), pod("a", is_being_deleted=True)))
    assert observe(Deleted(pod("a", is_being_deleted=True)))
    assert expectations.get(WEB) == Expected(0, frozenset({"b"}), 300.0)
    assert observe(Deleted(pod("b"), is_stale=True))
    assert expectations.is_satisfied(WEB)


async def test_an_addition_of_an_object_being_deleted_counts_for_both(
    autojump_clock: MockClock,
) -> None:
    expectations = Expectations()
    with expectations.creating(WEB), expectations.deleting(WEB, pod("a")):
        pass
    assert expectations.observing(owner_of)(Added(pod("a", is_being_deleted=True)))
    assert expectations.is_satisfied(WEB)


# --- a model ----------------------------------------------------------------------------------------------------------

REQUESTS = st.sampled_from([WEB, API])
UIDS = st.sampled_from("abc")


@attrs.define(eq=False)
class ModelOfRequest:
    """The expectations of a request that were not observed."""

    creations: int = 0
    uids: set[str] = attrs.field(factory=set)
    last: float = 0.0

    @property
    def is_met(self) -> bool:
        return not self.creations and not self.uids


class ExpectationsMachine(RuleBasedStateMachine):
    """Expectations are compared with a model that has what is expected, and the time of the last one."""

    @initialize()
    def begin(self) -> None:
        self.clock = MockClock()
        self.expectations = Expectations(period=10)
        self.model = {WEB: ModelOfRequest(), API: ModelOfRequest()}
        self.now = 0.0

    def run(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return trio.run(call, clock=self.clock)

    def expect(self, request: Request) -> ModelOfRequest:
        if self.now >= self.model[request].last + 10:
            self.model[request] = ModelOfRequest()
        self.model[request].last = self.now
        return self.model[request]

    @rule(request=REQUESTS, fails=st.booleans())
    def create(self, request: Request, fails: bool) -> None:
        model = self.expect(request)
        model.creations += not fails

        def create() -> None:
            with self.expectations.creating(request):
                if fails:
                    raise OSError

        self.attempt(create, fails)

    @rule(request=REQUESTS, uid=UIDS, fails=st.booleans())
    def delete(self, request: Request, uid: str, fails: bool) -> None:
        model = self.expect(request)
        if fails:
            model.uids.discard(uid)
        else:
            model.uids.add(uid)

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
        self.model[request].creations = max(0, self.model[request].creations - 1)
        self.expectations.creation_observed(request)

    @rule(request=REQUESTS, uid=UIDS)
    def see_deletion(self, request: Request, uid: str) -> None:
        self.model[request].uids.discard(uid)
        self.expectations.deletion_observed(request, pod(uid))

    @rule(seconds=st.sampled_from([1.0, 4.0, 9.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.clock.jump(seconds)

    @rule(request=REQUESTS)
    def check(self, request: Request) -> None:
        model = self.model[request]
        expired = self.now >= model.last + 10
        assert self.run(lambda: self.expectations.is_satisfied(request)) == (model.is_met or expired)
        if expired:
            self.model[request] = ModelOfRequest()

    @rule(request=REQUESTS)
    def forget(self, request: Request) -> None:
        self.model[request] = ModelOfRequest()
        self.expectations.forget(request)

    @invariant()
    def they_agree(self) -> None:
        for request, model in self.model.items():
            expected = None if model.is_met else Expected(model.creations, frozenset(model.uids), model.last + 10)
            assert self.expectations.get(request) == expected


TestExpectationsMachine = ExpectationsMachine.TestCase
TestExpectationsMachine.settings = settings(max_examples=50)


# --- a controller whose cache is behind -------------------------------------------------------------------------------


@attrs.define(eq=False)
class Replicator:
    """Creates and deletes pods until the cache has as many as a ReplicaSet specifies."""

    client: Client
    replica_sets: SharedInformer[ReplicaSet]
    pods: SharedInformer[Pod]
    expectations: Expectations = attrs.field(factory=Expectations)
    uses_expectations: bool = True

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        if self.expectations.is_satisfied(request) or not self.uses_expectations:
            await self.replicate(request)
        return self.expectations.requeue(request)

    async def replicate(self, request: Request) -> None:
        replica_set = self.replica_sets.lister.get(request)
        if replica_set is None:
            return
        api = self.client.api(Pod, namespace=request.namespace)
        present = [pod for pod in self.pods.lister if pod.metadata.deletion_timestamp is None]
        metadata = ObjectMeta(generate_name="web-", owner_references=(controller_reference(replica_set),))
        for _ in range((replica_set.spec.replicas or 0) - len(present)):
            with self.expectations.creating(request):
                await api.create(
                    Pod(metadata=metadata, spec=PodSpec(containers=[Container(name="web", image="web:1")]))
                )
        for pod in present[replica_set.spec.replicas or 0 :]:
            with self.expectations.deleting(request, pod):
                await api.delete(pod.name)


@pytest.mark.parametrize("uses_expectations", [True, False])
async def test_a_controller_whose_watch_is_broken_creates_no_excess_pods(
    uses_expectations: bool,
    autojump_clock: MockClock,
    api_server: APIServer,
    client: Client,
    nursery: trio.Nursery,
) -> None:
    """Without expectations it creates some, which shows that this test can fail."""
    meta = {"name": "web", "namespace": "default"}
    api_server.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"replicas": 0}})
    factory = SharedInformerFactory(client)
    replica_sets, pods = factory.informer(ReplicaSet), factory.informer(Pod)
    replicator = Replicator(client, replica_sets, pods, uses_expectations=uses_expectations)
    controller = Controller("replicator", replicator.reconcile, reads_own_writes=False)
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
    assert (most == 3) is uses_expectations
    assert replicator.expectations.is_satisfied(WEB)


async def test_a_lost_event_delays_a_controller_by_five_minutes_at_most(
    autojump_clock: MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """A pod that is created and deleted while the watch is broken has no event."""
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
