"""Predicates and enqueue functions that cannot decode an object: it is skipped, and everything else goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from tests.cache.informer.test_shared_informer_quarantine import bad_pod
from tests.support.scripted_list_watch import ScriptedListWatch, Step, added, deleted, listing, modified, pod
from trioformer.cache import Notification, SharedInformer, Updated
from trioformer.controller import Controller, Request
from trioformer.errors import QuarantinedError
from trioformer.models.core_v1 import Pod


def node_of(obj: Pod) -> str:
    return obj.spec.node_name or "none"


def by_node(obj: Pod) -> list[Request]:
    return [Request(None, node_of(obj))]


def has_moved(event: Notification[Pod]) -> bool:
    return not isinstance(event, Updated) or node_of(event.old) != node_of(event.new)


@pytest.mark.parametrize("reads", ["predicate", "enqueue"])
async def test_a_source_that_cannot_decode_an_object_goes_on(
    reads: str, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps: list[Step] = [1.0, modified(bad_pod("a", 5)) + added(pod("c", 6, node="n3")), None]
    source = ScriptedListWatch([listing(pod("a", 1, node="n1"), pod("b", 2, node="n2"), version=3)], [steps])
    informer = SharedInformer(source)
    seen: list[str] = []

    async def reconcile(request: Request) -> None:
        seen.append(request.name)

    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=by_node, predicates=[has_moved] if reads == "predicate" else [])
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(0.5)
    assert sorted(seen) == ["n1", "n2"]
    await trio.sleep(2)
    assert sorted(seen[2:]) == ["n1", "n3"], "the requests of the state before, and of the other object"
    assert informer.lister.quarantined() == {}
    assert informer.is_healthy


async def test_an_enqueue_function_may_read_a_key_in_quarantine(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    def picky(obj: Pod) -> list[str]:
        return [node_of(obj)]

    source = ScriptedListWatch(
        [listing(bad_pod("owner", 1), pod("a", 2), version=3)], [[1.0, added(pod("b", 5)), None]]
    )
    informer = SharedInformer(source, indexers={"node": picky})

    def of_owner(obj: Pod) -> list[Request]:
        owner = informer.lister.get("owner", namespace="default")
        return [] if owner is None else [Request.of(owner)]

    async def reconcile(request: Request) -> None:
        raise AssertionError("there is no request")

    controller = Controller("owners", reconcile)
    controller.watch(informer, enqueue=of_owner)
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(2)
    assert sorted(informer.lister.quarantined()) == ["default/owner"]
    assert informer.is_healthy


@pytest.mark.parametrize("reads", ["predicate", "enqueue"])
async def test_a_corrected_object_is_reconciled(reads: str, nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    steps: list[Step] = [10.0, modified(pod("a", 5, node="n2")), None]
    source = ScriptedListWatch([listing(bad_pod("a", 1), version=3)], [steps])
    informer = SharedInformer(source)
    seen: list[str] = []

    async def reconcile(request: Request) -> None:
        seen.append(request.name)

    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=by_node, predicates=[has_moved] if reads == "predicate" else [])
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(60)
    assert seen == ["n2"]


async def test_what_an_enqueue_function_returned_before_it_failed_is_added(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    def requests(obj: Pod) -> Iterator[Request]:
        yield Request(None, obj.name)
        yield Request(None, node_of(obj))

    informer = SharedInformer(
        ScriptedListWatch([listing(bad_pod("a", 1), pod("b", 2, node="n2"), version=3)], [[None]])
    )
    seen: list[str] = []

    async def reconcile(request: Request) -> None:
        seen.append(request.name)

    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=requests)
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(1)
    assert sorted(seen) == ["a", "b", "n2"]


async def test_the_owner_before_a_bad_state_is_reconciled_at_the_deletion(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    def transform(obj: Pod) -> Pod:
        if obj.resource_version == "5":
            raise RuntimeError
        return obj

    steps: list[Step] = [1.0, modified(pod("a", 5, node="n2")), 1.0, deleted(pod("a", 6, node="n2")), None]
    informer = SharedInformer(
        ScriptedListWatch([listing(pod("a", 1, node="n1"), version=3)], [steps]), transform=transform
    )
    seen: list[str | None] = []

    async def reconcile(request: Request) -> None:
        seen.append(request.name)

    controller = Controller("nodes", reconcile)
    controller.watch(informer, enqueue=by_node)
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(5)
    assert seen == ["n1", "n1"]
    assert list(informer.lister) == []


async def test_a_reconcile_of_a_key_in_quarantine_is_retried_until_it_is_good(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    source = ScriptedListWatch(
        [listing(pod("a", 1), version=3)],
        [[1.0, modified(bad_pod("a", 5)) + added(pod("b", 6)), 60.0, modified(pod("a", 7)), None]],
    )
    informer = SharedInformer(source, indexers={"node": lambda obj: [node_of(obj)]})
    results: list[str] = []

    async def reconcile(request: Request) -> None:
        try:
            obj = informer.lister.get(request)
        except QuarantinedError as error:
            results.append(error.reason)
            raise
        assert obj is not None
        results.append(obj.resource_version)

    controller = Controller("pods", reconcile)
    controller.watch(informer, enqueue=lambda obj: [Request("default", "a")])
    await nursery.start(informer.run)
    await nursery.start(controller.run)
    await trio.sleep(120)
    assert results[0] == "1"
    assert results[-1] == "7"
    assert set(results[1:-1]) == {"undecodable"}
    assert len(results) > 5
