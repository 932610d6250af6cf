"""When a reflector lists, watches again and backs off; against client-go's ``reflector_test.go``, in virtual time."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import (
    ScriptedListWatch,
    ScriptedWatch,
    Step,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    pod,
)
from trioformer.cache import BackoffPolicy, Reflector, ReflectorOptions
from trioformer.cache._bad_objects import BadObject
from trioformer.errors import (
    ConnectionFailedError,
    DecodeError,
    ExpiredError,
    ForbiddenError,
    InternalServerError,
    ServerTimeoutError,
    StatusError,
    TooManyRequestsError,
)
from trioformer.errors._status import StatusCause, StatusDetails
from trioformer.models.core_v1 import Pod


@attrs.define(eq=False)
class Sink:
    """Records what a reflector writes."""

    seen: list[str] = attrs.field(factory=list)
    room: trio.Event | None = None

    def add(self, obj: Pod) -> None:
        self.seen.append(f"+{obj.name}")

    def update(self, obj: Pod) -> None:
        self.seen.append(f"~{obj.name}")

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass

    def delete(self, obj: Pod) -> None:
        self.seen.append(f"-{obj.name}")

    def bookmark(self, resource_version: str) -> None:
        self.seen.append(f"@{resource_version}")

    def quarantine(self, bad: BadObject) -> None:
        self.seen.append(f"!{bad.key}")

    def delete_key(self, key: str, resource_version: str) -> None:
        self.seen.append(f"-{key}")

    def replace(self, objects: Sequence[Pod], resource_version: str, *, bad: Mapping[str, BadObject]) -> None:
        self.seen.append(f"={','.join(obj.name for obj in objects)}@{resource_version}")

    @property
    def has_room(self) -> bool:
        return self.room is None or self.room.is_set()

    async def wait_for_room(self) -> None:
        if self.room is not None:
            await self.room.wait()


QUIET = ReflectorOptions(watch_error_handler=lambda error: None)
EXPIRED = ExpiredError("too old", code=410, reason="Expired")
REFUSED = ConnectionFailedError("refused", refused=True)
BROKEN = ConnectionFailedError("reset by peer")
FORBIDDEN = ForbiddenError("no", code=403, reason="Forbidden")
TOO_MANY = TooManyRequestsError("slow down", code=429, details=StatusDetails(retry_after_seconds=7))
BROKEN_SERVER = InternalServerError("etcd", code=500)


async def play(source: ScriptedListWatch, sink: Sink, seconds: float, **options: object) -> Reflector[Pod]:
    """Run a reflector for some virtual seconds."""
    errors: list[Exception] = []
    reflector = Reflector(
        source, sink, ReflectorOptions(watch_error_handler=errors.append, **options), rng=random.Random(1)
    )  # type: ignore[arg-type]  # options by name
    with trio.move_on_after(seconds):
        await reflector.run()
    source.errors = errors
    assert source.open_watches == 0
    return reflector


async def test_it_lists_any_state_in_pages_and_watches_from_there(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestReflectorListAndWatch"""
    source = ScriptedListWatch(
        [listing(pod("a"), version=5)], [[added(pod("b", 6)), modified(pod("a", 7)), deleted(pod("b", 8)), None]]
    )
    sink = Sink()
    reflector = await play(source, sink, 10)
    assert source.asked == [("list", "0", "500"), ("watch", "5")]
    assert sink.seen == ["=a@5", "+b", "~a", "-b"]
    statistics = reflector.statistics()
    assert (statistics.resource_version, statistics.lists, statistics.watches, statistics.events) == ("8", 1, 1, 3)
    assert statistics.phase == "watching"
    assert statistics.last_error is None


async def test_watch_timeouts_are_random_between_five_and_ten_minutes(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestWatchTimeout"""
    source = ScriptedListWatch([listing(version=5)], [[40.0] for _ in range(50)])
    await play(source, Sink(), 40 * 50)
    assert len(set(source.timeouts)) > 10
    assert all(300 <= timeout < 600 for timeout in source.timeouts)


async def test_the_version_is_that_of_the_last_event_including_bookmarks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of the last event, not the largest.

    client-go: TestReflectorWatchHandler
    """
    source = ScriptedListWatch([listing(version=5)], [[added(pod("a", 55)), bookmark(32), 100.0]])
    await play(source, Sink(), 110)
    assert source.asked[-1] == ("watch", "32")


def gaps(source: ScriptedListWatch) -> list[float]:
    """Seconds from each watch to the next."""
    times = [time for time, (what, *_) in zip(source.times, source.asked, strict=True) if what == "watch"]
    return [after - before for before, after in itertools.pairwise(times)]


@pytest.mark.parametrize("error", [REFUSED, BROKEN])
async def test_a_watch_that_cannot_connect_is_tried_ten_times_before_delays_grow(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """As client-go's requests, whose retries come before the backoff of its reflector."""
    source = ScriptedListWatch([listing(version=5)], [error] * 19)
    reflector = await play(source, Sink(), 400)
    assert [what for what, *_ in source.asked] == ["list"] + ["watch"] * 20
    bases = [0.5] * 10 + [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30]
    assert all(base <= delay < 2 * base for base, delay in zip(bases, gaps(source), strict=True))
    assert source.errors == [error] * 19
    assert reflector.statistics().failures_in_a_row == 0, "the last watch has lasted for more than a second"


async def test_without_quick_tries_delays_grow_from_the_first_failure(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestReflectorListAndWatchInitConnBackoff, TestNewReflectorWithCustomBackoff"""
    source = ScriptedListWatch([listing(version=5)], [REFUSED] * 9)
    await play(source, Sink(), 400, backoff=BackoffPolicy(quick_tries=0))
    bases = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30]
    assert all(base <= delay < 2 * base for base, delay in zip(bases, gaps(source), strict=True))


@pytest.mark.parametrize("script", [TOO_MANY, [added(pod("a", 6)), TOO_MANY]])
async def test_429_waits_for_retry_after_and_does_not_list(
    script: object, autojump_clock: trio.testing.MockClock
) -> None:
    """As a response and as an event.

    client-go: TestBackoffOnTooManyRequests, TestNoRelistOnTooManyRequests
    """
    source = ScriptedListWatch([listing(version=5)], [script, script, script])  # type: ignore[list-item]  # a script of either type
    await play(source, Sink(), 60)
    assert [what for what, *_ in source.asked] == ["list"] + ["watch"] * 4
    assert all(after - before >= 7 for before, after in zip(source.times[1:], source.times[2:], strict=False))


@pytest.mark.parametrize("script", [EXPIRED, [added(pod("a", 6)), EXPIRED]])
async def test_410_lists_again_from_the_last_version(script: object, autojump_clock: trio.testing.MockClock) -> None:
    """As a response and as an event, with the same result.

    client-go: TestReflectorResyncWithResourceVersion, TestReflectorNotPaginatingNotConsistentReads
    """
    source = ScriptedListWatch([listing(version=5), listing(version=9)], [script])  # type: ignore[list-item]  # a script of either type
    await play(source, Sink(), 60)
    last = "5" if script is EXPIRED else "6"
    assert source.asked == [("list", "0", "500"), ("watch", "5"), ("list", last, "None"), ("watch", "9")]
    assert 0.8 <= source.times[2] < 1.6


async def test_a_resumed_watch_that_sends_only_410_does_not_make_old_data_fresh(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    source = ScriptedListWatch([listing(version=5), REFUSED], [[10.0, REFUSED], REFUSED, REFUSED, [EXPIRED]])
    reflector = Reflector(source, Sink(), ReflectorOptions(), rng=random.Random(1))
    nursery.start_soon(reflector.run)
    await trio.sleep(100)
    assert source.asked[-1][0] == "list", "the watch has not ended with 410 yet"
    assert reflector.statistics().up_to_date_at == source.times[1] + 10
    nursery.cancel_scope.cancel()


async def test_a_watch_that_ends_at_once_without_an_event_backs_off_and_lists_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestReflectorHandleWatchResultChanClosedBefore"""
    source = ScriptedListWatch([listing(version=5)], [[] for _ in range(1_000)])
    await play(source, Sink(), 3_600)
    assert len(source.asked) < 200, "requests are sent in a tight loop"
    assert [what for what, *_ in source.asked[:4]] == ["list", "watch", "list", "watch"]
    assert "ended the watch of Pod immediately" in str(source.errors[0])


async def test_the_backoff_is_reset_only_after_a_watch_of_thirty_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version=5)], [REFUSED] * 8 + [[31.0, BROKEN_SERVER]])
    await play(source, Sink(), 1_000)
    again = [time for time, (what, *_) in zip(source.times, source.asked, strict=True) if what == "list"][1]
    ended = source.times[9] + 31
    assert 0.8 <= again - ended < 1.6


@pytest.mark.parametrize(
    "error",
    [
        EXPIRED,
        ServerTimeoutError(
            "x", code=504, details=StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),))
        ),
        ServerTimeoutError(
            "x",
            code=504,
            reason="Timeout",
            details=StatusDetails(causes=(StatusCause(message="Too large resource version"),)),
        ),
        ServerTimeoutError("Too large resource version: 1000, current: 3", code=504),
    ],
    ids=["expired", "too large: cause", "too large: cause message", "too large: message"],
)
async def test_a_list_at_an_unavailable_version_is_repeated_for_the_newest_state(
    error: StatusError, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestReflectorExpiredExactResourceVersion, TestReflectorFullListIfTooLarge"""
    source = ScriptedListWatch([listing(version=5), error, listing(version=9)], [BROKEN_SERVER])
    await play(source, Sink(), 10)
    assert source.asked == [
        ("list", "0", "500"),
        ("watch", "5"),
        ("list", "5", "None"),
        ("list", "", "500"),
        ("watch", "9"),
    ]
    assert source.times[2] == source.times[3]
    assert source.errors == [BROKEN_SERVER]


async def test_a_server_without_watch_cache_is_always_listed_in_pages(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestReflectorPaginatingNonConsistentReadsIfWatchCacheDisabled"""
    source = ScriptedListWatch([listing(version=5, pages=3), listing(version=9)], [EXPIRED])
    await play(source, Sink(), 10)
    assert ("list", "5", "500") in source.asked


async def test_a_silent_watch_is_closed_only_after_its_timeout_and_a_grace_period(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version=5)], [[None]])
    await play(source, Sink(), 700)
    assert source.times[2] == source.timeouts[0] + 30


async def test_a_watch_with_bookmarks_is_closed_after_ninety_silent_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version=5)], [[60.0, bookmark(7), None]])
    await play(source, Sink(), 160)
    assert source.asked[1:] == [("watch", "5"), ("watch", "7")]
    assert 149 <= source.times[2] <= 150


class Mute(ScriptedListWatch):
    """Holds back the response to the first watch."""

    @asynccontextmanager
    async def watch(self, **asked: object) -> AsyncIterator[ScriptedWatch]:
        async with super().watch(**asked) as source:  # type: ignore[arg-type]  # passed on unchanged
            if len(self.timeouts) == 1:
                await trio.sleep_forever()
            yield source


async def test_a_watch_without_a_response_is_cancelled_after_its_timeout(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = Mute([listing(version=5)])
    await play(source, Sink(), 700)
    assert [what for what, *_ in source.asked] == ["list", "watch", "watch"]
    patience = source.timeouts[0] + 30
    assert patience + 0.5 <= source.times[2] < patience + 1
    assert str(source.errors) == f"[ConnectionFailedError('no response to a watch of Pod for {patience} s')]"


async def test_a_watch_whose_headers_are_held_back_counts_as_open(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """A proxy may hold them back until the first event; by then the client would have noticed a dead server."""
    source = Mute([listing(version=5)])
    reflector = Reflector(source, Sink(), ReflectorOptions(), rng=random.Random(1))
    nursery.start_soon(reflector.run)
    ages = []
    for _ in range(28):
        await trio.sleep(10)
        statistics = reflector.statistics()
        ages.append(trio.current_time() - statistics.up_to_date_at)
    assert max(ages) <= 50
    assert ages[5:] == [0] * 23
    assert (statistics.phase, statistics.last_error) == ("watching", None)
    await trio.sleep(source.timeouts[0] + 30 - 280 + 0.1)
    statistics = reflector.statistics()
    assert (statistics.phase, statistics.failures_in_a_row) == ("backing off", 1)
    assert trio.current_time() - statistics.up_to_date_at == pytest.approx(0.1)
    nursery.cancel_scope.cancel()


async def test_a_full_sink_does_not_count_as_a_silent_server(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    sink = Sink()
    source = ScriptedListWatch([listing(version=5)], [[1.0, bookmark(6), added(pod("a", 7)), None]])
    nursery.start_soon(play, source, sink, 5_100)
    await trio.sleep(0.5)
    sink.room = trio.Event()
    await trio.sleep(5_000)
    assert len(source.asked) == 2
    assert sink.seen == ["=@5", "@6"]
    sink.room.set()
    await trio.sleep(1)
    assert sink.seen == ["=@5", "@6", "+a"]


@pytest.mark.parametrize("watch_list", [False, True])
async def test_a_list_is_not_requested_while_the_sink_is_full(
    watch_list: bool, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    sink = Sink(room=trio.Event())
    source = ScriptedListWatch([listing(version=5)], supports_watch_list=True)
    nursery.start_soon(partial(play, source, sink, 1_000, watch_list=watch_list))
    await trio.sleep(500)
    assert source.asked == []
    assert sink.room is not None
    sink.room.set()
    await trio.sleep(1)
    assert [kind for kind, *_ in source.asked] == (["watch-list"] if watch_list else ["list", "watch"])


# --- before the first sync ---


async def test_a_permanent_error_is_raised_after_the_grace_period(autojump_clock: trio.testing.MockClock) -> None:
    source = ScriptedListWatch([ForbiddenError("no", code=403, reason="Forbidden")])  # of its own: it gets a note
    with pytest.raises(ForbiddenError) as caught:
        await play(source, Sink(), 1_000)
    assert trio.current_time() == pytest.approx(30)
    assert caught.value.__notes__ == ["informer of Pod: only permanent errors for 30 s"]


async def test_a_certificate_that_does_not_verify_is_a_permanent_error(autojump_clock: trio.testing.MockClock) -> None:
    error = ConnectionFailedError("certificate verify failed", permanent=True)
    with pytest.raises(ConnectionFailedError):
        await play(ScriptedListWatch([error]), Sink(), 1, grace_period=0)


async def test_any_other_response_restarts_the_grace_period(autojump_clock: trio.testing.MockClock) -> None:
    source = ScriptedListWatch([FORBIDDEN] * 4 + [BROKEN_SERVER] + [FORBIDDEN] * 50)
    with pytest.raises(ForbiddenError):
        await play(source, Sink(), 1_000)
    first_again = source.times[5]
    assert trio.current_time() == pytest.approx(first_again + 30)


async def test_failures_are_logged_in_one_line_without_a_handler(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    reflector = Reflector(ScriptedListWatch([listing()], [BROKEN_SERVER, EXPIRED]), Sink())
    with trio.move_on_after(10), caplog.at_level("INFO", logger="trioformer.cache"):
        await reflector.run()
    failed, again, expired = [record.getMessage() for record in caplog.records]
    assert failed.startswith("Pod: etcd (HTTP 500); retrying in ")
    assert "again" in again
    assert expired == "Pod: the watch's resourceVersion has expired; listing again"


async def test_a_watch_without_a_version_ignores_the_versions_of_its_initial_events(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version="")], [[added(pod("a", 10)), added(pod("b", 7)), 40.0]])
    await play(source, Sink(), 50)
    assert source.asked[-1] == ("watch", "")
    source = ScriptedListWatch([listing(version="")], [[added(pod("a", 10)), modified(pod("b", 11)), 40.0]])
    await play(source, Sink(), 50)
    assert source.asked[-1] == ("watch", "11")


async def test_after_a_lost_connection_the_version_is_checked(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version=5)], [[60.0, BROKEN], REFUSED, [60.0], [60.0]])
    await play(source, Sink(), 190)
    assert source.asked == [("list", "0", "500")] + [("watch", "5")] * 5
    assert source.checked == ["5"], "once after the failures, and not after a clean end"


async def test_events_that_arrive_during_the_check_are_written(autojump_clock: trio.testing.MockClock) -> None:
    class Slow(ScriptedListWatch):
        async def check(self, *, resource_version: str) -> None:
            await trio.sleep(10)
            await super().check(resource_version=resource_version)

    source = Slow([listing(version=5)], [[60.0, BROKEN], [5.0, added(pod("a", 6)), 0.5, added(pod("b", 7)), None]])
    sink = Sink()
    reflector = await play(source, sink, 66)
    assert sink.seen == ["=@5", "+a", "+b"]
    assert reflector.statistics().resource_version == "7"


async def test_a_check_without_a_result_is_repeated_and_does_not_list(autojump_clock: trio.testing.MockClock) -> None:
    """RBAC may forbid it, and the server may be overloaded: neither says anything about the version."""
    source = ScriptedListWatch(
        [listing(version=5)], [[60.0, BROKEN], [None]], checks=[FORBIDDEN, BROKEN_SERVER, BROKEN, TOO_MANY, None]
    )
    await play(source, Sink(), 400)
    assert source.asked == [("list", "0", "500"), ("watch", "5"), ("watch", "5")]
    assert source.checked == ["5"] * 5
    assert source.errors == [BROKEN]


async def test_a_server_that_just_answered_429_is_not_asked_for_the_version(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It may be another server than before, so it is asked once a watch has been open for some seconds."""
    source = ScriptedListWatch([listing(version=5)], [TOO_MANY, [4.0, TOO_MANY], [60.0, TOO_MANY], [None]])
    await play(source, Sink(), 200)
    assert [what for what, *_ in source.asked] == ["list", "watch", "watch", "watch", "watch"]
    rejected = [source.times[1], source.times[2] + 4, source.times[3] + 60]
    checks = [time for time, what in source.requests if what.startswith("check")]
    assert len(checks) == 2
    assert all(abs(check - time) >= 5 for check in checks for time in rejected)


async def test_a_server_that_was_restored_from_a_backup_is_listed_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    too_large = ServerTimeoutError("Too large resource version: 50, current: 9", code=504, reason="Timeout")
    source = ScriptedListWatch(
        [listing(pod("lost"), version=50), too_large, listing(pod("a"), version=9)],
        [[60.0, BROKEN], [None], [None]],
        checks=[too_large],
    )
    sink = Sink()
    await play(source, sink, 100)
    assert source.asked == [
        ("list", "0", "500"),
        ("watch", "50"),
        ("watch", "50"),
        ("list", "50", "None"),
        ("list", "", "500"),
        ("watch", "9"),
    ]
    assert sink.seen == ["=lost@50", "=a@9"]
    assert source.errors == [BROKEN, too_large]
    assert source.times[3] < 75


async def test_an_error_of_the_program_in_a_resumed_watch_is_not_wrapped_in_a_group(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version=5)], [[60.0, BROKEN], [0.5, ZeroDivisionError()]])
    with pytest.raises(ZeroDivisionError):
        await play(source, Sink(), 100)


async def test_after_a_silent_watch_the_version_is_checked(autojump_clock: trio.testing.MockClock) -> None:
    source = ScriptedListWatch([listing(version=5)], [[bookmark(6), None], [None]])
    await play(source, Sink(), 100)
    assert source.checked == ["6"]


# --- how often a server is asked ---


def attempts(source: ScriptedListWatch, seconds: float) -> int:
    """The number of requests in the first seconds after the first watch."""
    began = next(time for time, (what, *_) in zip(source.times, source.asked, strict=True) if what == "watch")
    return sum(began < time <= began + seconds for time in source.times)


@pytest.mark.parametrize("seed", range(20))
async def test_a_server_that_is_away_for_ten_minutes_is_asked_sixty_times_at_most(
    seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(version=5)], [[60.0, BROKEN], *[REFUSED] * 1_000])
    with trio.move_on_after(661):
        await Reflector(source, Sink(), QUIET, rng=random.Random(seed)).run()
    assert 20 < attempts(source, 661) <= 60


@pytest.mark.parametrize(
    "life", [[], [BROKEN], [0.2], [0.2, BROKEN]], ids=["ends", "breaks", "ends soon", "breaks soon"]
)
async def test_a_server_that_accepts_and_closes_at_once_is_asked_sixty_times_at_most(
    life: list[Step], autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(version=5)], [list(life) for _ in range(1_000)])
    with trio.move_on_after(600):
        await Reflector(source, Sink(), QUIET, rng=random.Random(1)).run()
    assert 15 < attempts(source, 600) <= 60


@pytest.mark.parametrize("error", [EXPIRED, BROKEN_SERVER, DecodeError("not an event"), TOO_MANY])
async def test_a_server_whose_watches_end_in_errors_is_asked_sixty_times_at_most(
    error: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """A watch of some seconds that ends in an error does not reset the delays, or each would cost a list."""
    source = ScriptedListWatch([listing(version=5)], [[5.1, error] for _ in range(1_000)])
    with trio.move_on_after(600):
        await Reflector(source, Sink(), QUIET, rng=random.Random(1)).run()
    assert attempts(source, 600) <= 60


# --- the check of a resumed watch ---


async def test_a_restored_server_behind_a_proxy_that_holds_back_headers_is_noticed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class HeldBack(ScriptedListWatch):
        @asynccontextmanager
        async def watch(self, **asked: object) -> AsyncIterator[ScriptedWatch]:
            async with super().watch(**asked) as source:  # type: ignore[arg-type]  # passed on unchanged
                if len(self.timeouts) == 2:
                    await trio.sleep_forever()
                yield source

    too_large = ServerTimeoutError("Too large resource version: 50, current: 9", code=504, reason="Timeout")
    source = HeldBack(
        [listing(version=50), too_large, listing(pod("a"), version=9)], [[60.0, BROKEN]], checks=[too_large]
    )
    sink = Sink()
    await play(source, sink, 100)
    assert sink.seen == ["=@50", "=a@9"]


async def test_a_check_that_is_slower_than_the_watches_has_a_result(autojump_clock: trio.testing.MockClock) -> None:
    class Slow(ScriptedListWatch):
        async def check(self, *, resource_version: str) -> None:
            await trio.sleep(3)
            await super().check(resource_version=resource_version)

    too_large = ServerTimeoutError("Too large resource version: 50, current: 9", code=504, reason="Timeout")
    source = Slow(
        [listing(version=50), too_large, listing(pod("a"), version=9)],
        [[60.0, BROKEN], *[[4.0] for _ in range(100)]],
        checks=[too_large],
    )
    await play(source, Sink(), 100)
    assert ("list", "", "500") in source.asked


async def test_an_error_of_the_program_in_a_check_is_not_wrapped_in_a_group(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = ScriptedListWatch([listing(version=5)], [[60.0, BROKEN], [None]], checks=[ZeroDivisionError()])
    with pytest.raises(ZeroDivisionError):
        await play(source, Sink(), 100)
