"""Assertions of client-go's tests of its reflector and its pager that no other test here makes.

Against client-go's ``reflector_test.go`` and ``pager_test.go``, in virtual time.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence

import attrs
import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector import Sink, play
from tests.support.scripted_http import InMemory, response
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, Step, added, deleted, listing, modified, pod
from trioformer.cache import ApiListWatch, BackoffPolicy, Reflector, ReflectorOptions, SharedInformer
from trioformer.client import ObjectList, Undecodable, open_client
from trioformer.client._internal import UndecodableHandler
from trioformer.errors import (
    ConnectionFailedError,
    ExpiredError,
    ForbiddenError,
    InternalServerError,
    UnexpectedResponseError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod

EXPIRED = ExpiredError("too old", code=410, reason="Expired")
FORBIDDEN = ForbiddenError("no", code=403, reason="Forbidden")
REFUSED = ConnectionFailedError("refused", refused=True)
BROKEN = ConnectionFailedError("reset by peer")
BROKEN_SERVER = InternalServerError("etcd", code=500)


@attrs.define(eq=False)
class Counting(ScriptedListWatch):
    """Records at each request how many watches are open."""

    open_at: list[int] = attrs.field(factory=list)

    def _note(self, *what: str) -> None:
        super()._note(*what)
        self.open_at.append(self.open_watches)


# --- ends of a watch ---


@pytest.mark.parametrize("error", [EXPIRED, FORBIDDEN, BROKEN_SERVER])
async def test_an_error_event_closes_the_watch_before_the_next_request(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestCloseWatchChannelOnError"""
    source = Counting([listing(version=5)], [[added(pod("a", 6)), error]])
    await play(source, Sink(), 60)
    assert [what for what, *_ in source.asked] == ["list", "watch", "list", "watch"]
    assert source.open_at == [0, 0, 0, 0]


@pytest.mark.parametrize("script", [[None], [added(pod("a", 6)), None], [added(pod("a", 6)), 1_000.0]])
async def test_a_cancelled_reflector_closes_its_watch_once_and_returns(
    script: list[Step], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestRunUntil, TestReflectorWatchStoppedAfter"""
    source = ScriptedListWatch([listing(version=5)], [script])
    reflector = Reflector(source, Sink())
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as own:
            own.start_soon(reflector.run)
            await trio.sleep(5)
            assert source.open_watches == 1
            scope.cancel()
    assert scope.cancelled_caught
    assert source.open_watches == 0
    assert source.asked == [("list", "0", "500"), ("watch", "5")]


async def test_a_reflector_that_is_cancelled_before_its_watch_does_not_watch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestReflectorWatchStoppedBefore"""
    with trio.CancelScope() as scope:

        class Cancelling(Sink):
            def replace(self, objects: Sequence[Pod], resource_version: str, **options: object) -> None:
                scope.cancel()

        source = ScriptedListWatch([listing(version=5)])
        await Reflector(source, Cancelling()).run()
    assert scope.cancelled_caught
    assert source.asked == [("list", "0", "500")]


@pytest.mark.parametrize("script", [[], [0.9]])
async def test_a_watch_that_ends_within_a_second_without_an_event_is_an_error(
    script: list[Step], autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestReflectorHandleWatchResultChanClosedBefore, TestReflectorHandleWatchResultChanClosedAfter"""
    source = Counting([listing(version=5), listing(version=9)], [list(script)])
    await play(source, Sink(), 60)
    assert [str(error) for error in source.errors] == [
        "the server ended the watch of Pod immediately, without sending an event"
    ]
    assert source.asked[1:] == [("watch", "5"), ("list", "5", "None"), ("watch", "9")]
    assert source.open_at == [0, 0, 0, 0]


# --- failures ---


async def test_after_failures_the_store_is_the_last_list_and_the_events_since(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestReflectorListAndWatchWithErrors"""
    lists = [
        FORBIDDEN,
        BROKEN_SERVER,
        listing(pod("a", 1), pod("b", 2), version=3),
        listing(pod("b", 6), pod("c", 7), version=8),  # a was deleted, and no event was sent
        BROKEN,
        listing(pod("b", 6), pod("c", 7), pod("e", 12), version=12),
    ]
    watches: list[list[Step] | Exception] = [
        REFUSED,
        [added(pod("d", 4)), 2.0, BROKEN_SERVER],
        [modified(pod("b", 9)), deleted(pod("c", 10)), 40.0, BROKEN],
        [EXPIRED],
        [deleted(pod("b", 13)), None],
    ]
    errors: list[Exception] = []
    source = ScriptedListWatch(list(lists), watches)
    informer = SharedInformer(source, options=ReflectorOptions(watch_error_handler=errors.append))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    nursery.start_soon(informer.run)
    await informer.wait_until_synced()
    assert errors[:2] == [FORBIDDEN, BROKEN_SERVER]
    assert sorted(obj.name for obj in informer.lister) == ["a", "b"]
    await trio.sleep(300)
    assert errors[2:] == [REFUSED, BROKEN_SERVER, BROKEN, EXPIRED, BROKEN]
    assert sorted((obj.name, obj.resource_version) for obj in informer.lister) == [("c", "7"), ("e", "12")]
    assert informer.state.phase == "watching"
    assert source.open_watches == 1


async def test_the_delays_follow_the_backoff_policy(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestNewReflectorWithCustomBackoff"""
    source = ScriptedListWatch([BROKEN_SERVER] * 4 + [listing(version=5)], [REFUSED] * 3)
    policy = BackoffPolicy(initial=3, factor=2, maximum=10, jitter=0, quick_tries=0)
    await play(source, Sink(), 100, backoff=policy)
    delays = [after - before for before, after in zip(source.times, source.times[1:], strict=False)]
    assert delays == [3, 6, 10, 10, 0, 10, 10, 10]


# --- memory ---


@attrs.define(eq=False)
class Forgetful(ScriptedListWatch):
    """Creates its list for each request, and keeps no reference to it."""

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[Pod]:
        await trio.lowlevel.checkpoint()
        return listing(*(pod(f"p{number}", number, namespace="listed") for number in range(50)), version=50)


async def test_a_stored_object_does_not_keep_its_list_in_memory(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestReflectorListExtract"""

    def listed() -> int:
        gc.collect()
        pods = [each for each in gc.get_objects() if type(each) is Pod]
        return sum(each.namespace == "listed" and int(each.resource_version) < 50 for each in pods)

    deletions = [deleted(pod(f"p{number}", 100 + number, namespace="listed")) for number in range(1, 50)]
    informer = SharedInformer(Forgetful(watches=[[1.0, *deletions, None]]))
    await nursery.start(informer.run)
    await trio.testing.wait_all_tasks_blocked()
    assert listed() == 50
    await trio.sleep(2)
    assert informer.lister.index_keys("namespace", "listed") == ("listed/p0",)
    assert listed() == 1


# --- through a client ---


def page(*names: str, version: int, token: str = "", kind: str = "PodList") -> str:
    items = [{"metadata": {"name": name, "namespace": "default", "resourceVersion": "1"}} for name in names]
    metadata = {"resourceVersion": str(version), "continue": token}
    return json.dumps({"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items})


GONE = json.dumps({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"})
LIST = {"resourceVersion": "0", "limit": "500"}


@attrs.define(eq=False)
class Served:
    """The results of a reflector for a script of HTTP responses."""

    asked: list[dict[str, str]]
    seen: list[str]
    errors: list[Exception]
    undecodable: list[Undecodable]


async def served(*answers: str | tuple[int, str]) -> Served:
    """Run a reflector of pods for less than a virtual second; after the script the server sends nothing."""
    replies = [response(*(each if isinstance(each, tuple) else (200, each))) for each in answers]
    carrier = InMemory([*replies, response(200, None)])
    sink, outcome = Sink(), Served([], [], [], [])
    options = ReflectorOptions(
        watch_list=False, watch_error_handler=outcome.errors.append, undecodable_handler=outcome.undecodable.append
    )
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=carrier) as client:
        with trio.move_on_after(0.7):  # less than the shortest backoff
            await Reflector(ApiListWatch(client.api(Pod)), sink, options).run()
    outcome.asked += [dict(request.url.params) for request in carrier.requests]
    outcome.seen += sink.seen
    return outcome


async def test_all_pages_of_a_list_are_requested(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestListPager_List"""
    found = await served(page("a", "b", version=10, token="x"), page("c", version=10, token="y"), page("d", version=10))
    assert found.asked[:3] == [LIST, {"limit": "500", "continue": "x"}, {"limit": "500", "continue": "y"}]
    assert found.seen == ["=a,b,c,d@10"]
    assert found.errors == []


async def test_a_list_that_expires_between_pages_is_requested_again_in_one_page(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestReflectorFullListIfExpired, TestListPager_List"""
    found = await served(page("a", "b", version=10, token="x"), (410, GONE), page("a", "c", version=12))
    assert found.asked[:3] == [LIST, {"limit": "500", "continue": "x"}, {"resourceVersion": "0"}]
    assert found.seen == ["=a,c@12"]
    assert found.errors == [], "the expiry is not reported, since no data is lost"


async def test_a_table_is_neither_a_list_nor_an_event(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestIsUnsupportedTableObject"""
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}, "rows": []}
    rejected = await served(json.dumps(table))
    assert [type(error) for error in rejected.errors] == [UnexpectedResponseError]
    assert "Table" in str(rejected.errors[0])
    assert rejected.seen == []
    filled = await served(page("a", version=10, kind="Table"))
    assert [type(error) for error in filled.errors] == [UnexpectedResponseError]
    assert filled.seen == []
    event = json.dumps({"type": "ADDED", "object": table})
    watched = await served(page("a", version=10), event + "\n")
    assert watched.seen[0] == "=a@10"
    assert [type(each.error).__name__ for each in watched.undecodable] == ["DecodeError"]
