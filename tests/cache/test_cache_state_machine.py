"""Random changes, faults and listeners: at rest the cache and every listener have the objects of the server.

Before that, the cache passes through the states of each namespace, in their order.
Hypothesis chooses the steps; each example has its own server and informer, in virtual time.
``--long`` runs a hundred times as many examples, at random.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import strategies as st

from tests.support.cache_machine import (
    BAD,
    NAMES,
    NAMESPACES,
    Burst,
    CaptivePortal,
    Churn,
    Compact,
    Corrupt,
    CutBody,
    Delete,
    Disconnect,
    Fail,
    Gather,
    Halve,
    History,
    Join,
    Leave,
    LoseBookmarks,
    Outage,
    Pause,
    Raise,
    Recreate,
    Setting,
    Settle,
    Slow,
    Spoil,
    Step,
    Touch,
    Trickle,
    Unblock,
    Unreachable,
    open_world,
)
from trioformer.cache.informer import _process_loop

IS_LONG = hypothesis.settings.get_current_profile_name() == "long"

namespaces, names, colors = st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.sampled_from(("red", "blue"))
endings = st.sampled_from(("clean", "reset", "stall"))
numbers = st.integers(0, 4)
ways, buffer_sizes = st.sampled_from(("handler", "subscription", "filter")), st.sampled_from((1, 2, 5, 1_024))
joins = st.builds(
    Join,
    ways,
    st.sampled_from(("coalesce", "block")),
    buffer_sizes,
    patience=st.sampled_from((1e9, 5.0, 30.0)),
    resync_period=st.sampled_from((None, 0.0, 40.0, 300.0)),
)
# Every example has these two listeners, whose buffers are soon full.
ALWAYS = (Join("handler", "coalesce", 2), Join("filter", "block", 2))

changes = st.one_of(
    st.builds(Touch, namespaces, names, colors),
    st.builds(Delete, namespaces, names),
    st.builds(Recreate, namespaces, names, colors),
    st.builds(Churn, st.integers(0, 1_000), st.integers(2, 40)),
    st.builds(Spoil, namespaces, names, st.sampled_from((*BAD, *BAD, None))),
)
faults = st.one_of(
    st.builds(Compact),
    st.builds(Disconnect, endings),
    st.builds(Disconnect, st.just("clean"), st.sampled_from((410, 429, 500, 504))),
    st.builds(Fail, st.sampled_from((400, 401, 403, 404, 410, 422, 500, 502, 503, 504)), st.none()),
    st.builds(Fail, st.sampled_from((429, 503)), st.sampled_from((None, 0, 7, 20))),
    st.builds(CutBody, st.sampled_from((0.0, 0.1, 0.5, 0.9, 0.99)), endings),
    st.builds(Corrupt, st.integers(1, 3), st.lists(changes, max_size=3).map(tuple)),
    st.builds(LoseBookmarks, st.booleans()),
    st.builds(CaptivePortal, st.integers(1, 3)),
    st.builds(Unreachable, st.sampled_from((0.1, 5.0, 100.0))),
    st.builds(Halve, st.booleans()),
    st.builds(Gather, st.booleans()),
)
listeners = st.one_of(
    joins,
    st.builds(Leave, numbers, st.sampled_from(("remove", "aclose", "inside", "close inside"))),
    st.builds(Slow, numbers, st.sampled_from((None, None, 0.0, 0.3, 4.0))),
    st.builds(Unblock, numbers),
    st.builds(Raise, numbers),
)
# The longest pause is longer than a watch; short ones are more frequent, because they are more likely to find races.
pauses = st.builds(Pause, st.sampled_from((0.0, 0.0, 0.01, 0.5, 1.5, 10.0, 70.0, Pause.longest)))
outages = st.builds(
    Outage,
    st.lists(changes, min_size=1, max_size=4).map(tuple),
    st.sampled_from((True, True, False)),
    st.sampled_from((0.1, 0.1, 40.0)),
    then=st.sampled_from((0, 0, 9)),
)
bursts = st.builds(
    Burst, numbers, st.lists(changes | outages, min_size=1, max_size=4).map(tuple), st.sampled_from((0.0, 2.0, 45.0))
)
trickles = st.builds(Trickle, numbers, st.integers(0, 1_000), st.integers(3, 12))
steps = st.one_of(changes, faults, faults, listeners, pauses, outages, bursts, trickles, st.builds(Settle))
settings = st.builds(
    Setting,
    seed=st.integers(0, 1_000_000),
    head_start=st.sampled_from((1.0, 1.0, 0.0)),
    watch_lists=st.sampled_from(("supported", "supported", "rejected", "ignored", "off")),
    namespaced=st.sampled_from((False, False, True)),
    marked=st.booleans(),
    expired_as_status=st.booleans(),
    bookmark_period=st.sampled_from((60.0, 1e9)),
    max_silence=st.sampled_from((90.0, 46.0)),
    resync_period=st.sampled_from((0.0, 40.0)),
    changes_in_a_row=st.sampled_from((1, 200)),
)


@pytest.fixture(scope="module", autouse=True)
def without_log() -> Iterator[None]:
    """Disable the log, which would have tens of thousands of lines."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


async def play(setting: Setting, first: Sequence[Join], script: Sequence[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_process_loop, "MAX_NOTIFICATIONS", setting.changes_in_a_row)
        await play_in_world(setting, first, script)


async def play_in_world(setting: Setting, first: Sequence[Join], script: Sequence[Step]) -> None:
    async with open_world(setting, (*ALWAYS, *first)) as world:
        world.histories = {namespace: History() for namespace in NAMESPACES}
        await Churn(setting.seed, 8).do(world)
        await trio.sleep(setting.head_start)
        for step in script:
            await step.do(world)
        await world.settle()


@hypothesis.settings(max_examples=10_000 if IS_LONG else 60)
@hypothesis.given(settings, st.lists(joins, max_size=2), st.lists(steps, min_size=10, max_size=40))
# Found only by long runs: changes that arrive with the end of a watch-list, an undecodable deletion, a watch-list whose
# connection breaks twice, the deletion of an undecodable object that has replaced a known one of the same name, a check
# of the version that is sent beside a watch that gets a Retry-After, one that gets it beside a watch that breaks.
@hypothesis.example(Setting(), [], [Outage((Churn(1, 5),), then=9), Pause(5.0)])
@hypothesis.example(Setting(), [], [Touch("b", "y"), Pause(1.0), Corrupt(1, (Delete("b", "y"),)), Pause(1.0)])
@hypothesis.example(Setting(head_start=0.0), [], [CutBody(0.5, "reset"), CutBody(0.5, "clean"), Pause(5.0)])
@hypothesis.example(
    Setting(),
    [],
    [Touch("a", "x"), Pause(1.0), Corrupt(1), Outage((Recreate("a", "x"),)), Pause(10.0), Delete("a", "x"), Pause(1.0)],
)
@hypothesis.example(
    Setting(),
    [],
    [Disconnect("clean", 429), Fail(429, 7), Fail(429, 7), Touch("a", "x"), Burst(0, (Delete("a", "y"),), 45.0)],
)
@hypothesis.example(
    Setting(),
    [],
    [
        Compact(),
        Compact(),
        Disconnect("reset"),
        Touch("a", "x"),
        Pause(10.0),
        Touch("a", "x"),
        Fail(400, None),
        Fail(429, 7),
        Unreachable(0.1),
        CutBody(0.0, "stall"),
    ],
)
def test_at_rest_the_cache_and_every_listener_have_the_servers_objects(
    setting: Setting, first: Sequence[Join], script: Sequence[Step]
) -> None:
    trio.run(play, setting, first, script, clock=trio.testing.MockClock(autojump_threshold=0))
