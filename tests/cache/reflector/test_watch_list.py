"""Watch-lists: what is requested, what ends them, and when the reflector falls back to lists."""

from __future__ import annotations

import itertools

import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector import REFUSED, TOO_MANY, Sink, play
from tests.support.scripted_list_watch import ScriptedListWatch, Step, added, bookmark, deleted, listing, modified, pod
from trioformer import SharedInformerFactory
from trioformer.cache import ReflectorOptions, SharedInformer
from trioformer.client import Client, WatchEvent
from trioformer.errors import (
    BadRequestError,
    ConnectionFailedError,
    ExpiredError,
    InternalServerError,
    InvalidError,
    MethodNotAllowedError,
    NotFoundError,
    UnexpectedResponseError,
)
from trioformer.models import ObjectMeta
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer


def end(version: int | str, value: str = "true") -> list[WatchEvent[Pod]]:
    annotations = f'{{"k8s.io/initial-events-end":"{value}"}}'
    metadata = f'{{"resourceVersion":"{version}","annotations":{annotations}}}'
    return [
        WatchEvent("BOOKMARK", make_object(Pod, f'{{"kind":"Pod","apiVersion":"v1","metadata":{metadata}}}'.encode()))
    ]


def partial() -> ConnectionFailedError:
    """Return the error of a connection that failed inside a response."""
    return ConnectionFailedError("reset by peer", partial=True)


def watch_lists(*watches: list[Step] | Exception, lists: tuple[object, ...] = ()) -> ScriptedListWatch:
    return ScriptedListWatch(list(lists), list(watches), supports_watch_list=True)  # type: ignore[arg-type]


async def test_one_request_is_both_the_list_and_the_watch(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestReflectorListAndWatch, TestWatchListResourceVersion"""
    source = watch_lists([added(pod("b", 4)) + added(pod("a", 2)), end(5), modified(pod("a", 6)), bookmark(7), None])
    sink = Sink()
    reflector = await play(source, sink, watch_list=True, seconds=10)
    assert source.asked == [("watch-list", "")]
    assert sink.seen == ["=b,a@5", "~a", "@7"]
    statistics = reflector.statistics()
    assert (statistics.lists, statistics.watches, statistics.resource_version) == (1, 1, "7")


async def test_events_received_with_the_end_bookmark_are_written_after_the_list(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = watch_lists([added(pod("a", 2)) + end(5) + deleted(pod("a", 6)) + added(pod("b", 7)), None])
    sink = Sink()
    reflector = await play(source, sink, watch_list=True, seconds=10)
    assert sink.seen == ["=a@5", "-a", "+b"]
    assert reflector.statistics().resource_version == "7"


async def test_changes_during_a_watch_list_are_part_of_the_list(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestWatchList/"Updates and Deletes events are propagated during streaming" """
    events = added(pod("a", 1)) + added(pod("b", 2)) + modified(pod("a", 3)) + deleted(pod("b", 4))
    source = watch_lists([events, end(4), None])
    sink = Sink()
    await play(source, sink, watch_list=True, seconds=10)
    assert sink.seen == ["=a@4"]


async def test_nothing_is_written_before_the_end_bookmark(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestWatchList/"the reflector won't be synced if the bookmark event has been received" """
    source = watch_lists([added(pod("a", 1)), 3.0, bookmark(3), 3.0, end(3, "false"), None])
    sink = Sink()
    reflector = await play(source, sink, watch_list=True, seconds=9.9)
    assert sink.seen == []
    assert reflector.statistics().lists == 0
    assert reflector.statistics().resource_version == "", "only the end bookmark sets the version"


async def test_bookmarks_do_not_hold_up_the_end_of_a_watch_list(autojump_clock: trio.testing.MockClock) -> None:
    bookmarks: list[Step] = [each for version in range(10, 110) for each in (9.0, bookmark(version))]
    source = watch_lists([added(pod("a", 1)), *bookmarks, None], lists=(listing(pod("a", 8), version=8),))
    sink = Sink()
    await play(source, sink, watch_list=True, seconds=100)
    assert sink.seen == ["=a@8"]
    assert source.requests[-2] == (pytest.approx(11.2, abs=0.4), "list 0")


async def test_only_the_value_true_marks_the_end(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestWatchList/"…checking the value of the initialEventsEnd annotation" """
    source = watch_lists([added(pod("a", 1)), end(2, "false"), added(pod("b", 3)), end(4), None])
    sink = Sink()
    await play(source, sink, watch_list=True, seconds=5)
    assert sink.seen == ["=a,b@4"]


async def test_every_event_moves_the_deadline_after_which_lists_are_used(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestInitialEventsEndBookmarkTicker"""
    steps: list[Step] = [each for version in range(1, 9) for each in (added(pod(f"a{version}", version)), 9.0)]
    source = watch_lists([20.0, *steps, None], [60.0], lists=(listing(pod("a", 8), version=8),))
    sink = Sink()
    await play(source, sink, watch_list=True, seconds=20 + 8 * 9 + 10 + 1 + 62)
    assert source.asked == [("watch-list", ""), ("list", "0", "500"), ("watch", "8"), ("watch", "8")]
    assert 0.8 <= source.times[1] - (20 + 7 * 9 + 10) < 1.6, "ten seconds after the last event"
    assert sink.seen == ["=a@8"]
    assert "incomplete after 93 s" in str(source.errors[0])


async def test_a_watch_list_without_events_is_cancelled_after_thirty_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = watch_lists([None], lists=(listing(version=8),))
    await play(source, Sink(), watch_list=True, seconds=40)
    assert source.asked == [("watch-list", ""), ("list", "0", "500"), ("watch", "8")]
    assert 30.8 <= source.times[1] < 31.6


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError("what?", code=400),
        InvalidError("forbidden field", code=422),
        NotFoundError("no such path", code=404),
        MethodNotAllowedError("no watch", code=405),
    ],
)
async def test_a_server_without_watch_list_is_listed_at_once(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestWatchList/"…when a server doesn't support streaming" """
    source = watch_lists(error, [40.0, ExpiredError("old", code=410)], error, lists=(listing(version=8),))
    await play(source, Sink(), watch_list=True, seconds=60)
    assert [what for what, *_ in source.asked] == ["watch-list", "list", "watch", "watch-list", "list", "watch"]
    assert source.times[:3] == [0, 0, 0]


@pytest.mark.parametrize("error", [InternalServerError("no", code=500), UnexpectedResponseError("html", code=200)])
async def test_any_other_failure_of_a_watch_list_backs_off_and_lists_once(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestWatchList/"returning any other error than apierrors.NewInvalid forces fallback" """
    source = watch_lists(error, [40.0, ExpiredError("old", code=410)], lists=(listing(version=8),))
    await play(source, Sink(), watch_list=True, seconds=60)
    assert [what for what, *_ in source.asked] == ["watch-list", "list", "watch", "watch-list"]
    assert source.times[1] >= 0.8
    assert source.errors[0] is error


@pytest.mark.parametrize("error", [REFUSED, TOO_MANY])
async def test_a_watch_list_is_requested_again_after_429_or_a_refused_connection(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestWatchList/"checks if the reflector retries 429" """
    source = watch_lists(error, error, [added(pod("a", 2)), end(5), None])
    sink = Sink()
    await play(source, sink, watch_list=True, seconds=60)
    assert [what for what, *_ in source.asked] == ["watch-list", "watch-list", "watch-list"]
    assert sink.seen == ["=a@5"]


async def test_a_watch_list_whose_connection_fails_is_requested_again_with_delays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestWatchList/"stopping a watcher before sync…" """
    cut: list[Step] = [added(pod("gone", 2)), 3.0, partial()]
    source = watch_lists(list(cut), list(cut), list(cut), [added(pod("a", 2)), end(5), None])
    sink = Sink()
    await play(source, sink, watch_list=True, seconds=60)
    assert source.asked == [("watch-list", "")] * 4
    waits = [after - before - 3 for before, after in itertools.pairwise(source.times)]
    assert [least <= wait < 2 * least for least, wait in zip([0.8, 1.6, 3.2], waits, strict=True)] == [True] * 3
    assert sink.seen == ["=a@5"]


async def test_a_busy_server_without_watch_list_is_listed_a_minute_after_a_change(
    autojump_clock: trio.testing.MockClock,
) -> None:
    first: list[Step] = [each for number in range(5) for each in (added(pod(f"a{number}", number)), 5.0)]
    steps: list[Step] = [each for version in range(9, 90) for each in (modified(pod("a1", version)), 5.0)]
    source = watch_lists([*first, *steps], lists=(listing(version=80),))
    await play(source, Sink(), watch_list=True, seconds=100)
    assert [what for what, *_ in source.asked] == ["watch-list", "list", "watch"]
    assert 85.8 <= source.times[1] < 86.6


async def test_after_the_end_bookmark_a_watch_that_ends_is_resumed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestWatchList/"stopping a watcher after synchronization…" """
    source = watch_lists([added(pod("a", 2)), end(5), 40.0], [None])
    await play(source, Sink(), watch_list=True, seconds=50)
    assert source.asked == [("watch-list", ""), ("watch", "5")]


async def test_a_watch_list_needs_the_option_and_a_source_that_supports_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestNewReflectorWithDisablementWatchList"""
    off = watch_lists(lists=(listing(version=8),))
    await play(off, Sink(), seconds=10)
    unable = ScriptedListWatch([listing(version=8)])
    await play(unable, Sink(), seconds=10, watch_list=True)
    assert off.asked == unable.asked == [("list", "0", "500"), ("watch", "8")]


async def test_the_phase_distinguishes_reading_from_waiting_for_the_bookmark(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = watch_lists([5.0, added(pod("a", 2)), 5.0, end(5), None])
    informer = SharedInformer(source, options=ReflectorOptions(watch_list=True))
    nursery.start_soon(informer.run)
    await trio.sleep(4)
    assert informer.state.phase == "waiting for bookmark"
    await trio.sleep(1.5)
    assert informer.state.phase == "reading watch-list"
    await trio.sleep(1)
    assert informer.state.phase == "waiting for bookmark"
    assert not informer.has_synced
    await trio.sleep(5)
    assert informer.state.phase == "watching"
    assert informer.state.age == 0
    assert informer.has_synced


async def test_an_informer_uses_a_watch_list_of_the_embedded_server(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    """client-go: TestWatchListSemanticsSimple"""
    for number in range(1_200):
        api_server.create(Pod(metadata=ObjectMeta(name=f"web-{number}", namespace="default")))
    factory = SharedInformerFactory(client, options=ReflectorOptions(watch_list=True))
    informer = factory.informer(Pod)
    await nursery.start(factory.run)
    assert len(informer.lister) == 1_200
    assert [request.verb for request in api_server.requests] == ["watch"]
    assert informer.statistics().reflector.resource_version == (await client.api(Pod).list()).resource_version


async def test_a_server_that_ignores_send_initial_events_is_listed(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """client-go: TestUnSupportWatchListSemantics"""
    source = watch_lists([added(pod("a", 2)), None], lists=(listing(pod("a", 2), version=2),))
    informer = SharedInformer(source, options=ReflectorOptions(watch_list=True))
    await nursery.start(informer.run)
    assert 10.8 <= trio.current_time() < 11.6
    assert "default/a" in informer.lister
