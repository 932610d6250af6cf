"""What follows each outcome in each state: every entry of the table, driven and observed in virtual time.

A case brings a reflector into a state, produces an outcome there, and compares what the server sees next with the
table: the requests, the wait before them, and what was reported.
Waits are exact here, since the randomness always draws its least value; their ranges are in
``tests/retry/test_pacing.py``.
"""

from __future__ import annotations

import random
import re
from typing import Final

import attrs
import pytest
import trio
import trio.testing

from docs import recovery
from tests.cache.reflector.test_reflector import Sink
from tests.cache.reflector.test_watch_list import end, partial
from tests.support.processes import ROOT
from tests.support.scripted_list_watch import ScriptedListWatch, Step, added, listing, pod
from trioformer._retry import Outcome, Wait
from trioformer.cache import Reflector, ReflectorOptions
from trioformer.cache.reflector._list_watch import ListAgain
from trioformer.cache.reflector._states import LISTS, TRANSITIONS, WATCHES, State
from trioformer.cache.reflector._states import Step as Entry
from trioformer.client import ObjectList
from trioformer.errors import (
    BadRequestError,
    ConnectionFailedError,
    ExpiredError,
    ForbiddenError,
    InternalServerError,
    TooManyRequestsError,
)
from trioformer.models.core_v1 import Pod

LASTS: Final = 7.0
"""Seconds for which a watch lasts before most outcomes."""
WAITS: Final = {Wait.NONE: 0.0, Wait.PAUSE: LASTS / 10, Wait.RECONNECT: 0.5, Wait.BACK_OFF: 0.8}
"""The least of each wait, after a watch of that duration."""
EXPIRED = ExpiredError("too old", code=410, reason="Expired")
BROKEN = ConnectionFailedError("reset by peer")
RESPONSES: Final[dict[Outcome, Exception]] = {
    Outcome.LOST: ConnectionFailedError("refused", refused=True),
    Outcome.OVERLOADED: TooManyRequestsError("slow down", code=429),
    Outcome.UNAVAILABLE: EXPIRED,
    Outcome.REJECTED: BadRequestError("unknown parameter", code=400),
    Outcome.DENIED: ForbiddenError("no", code=403, reason="Forbidden"),
    Outcome.FAILED: InternalServerError("etcd", code=500),
}
"""The responses that are outcomes by themselves, whatever was requested."""


@attrs.frozen
class Way:
    """How a reflector gets into a state."""

    requests: list[str]
    """The requests up to that of the state."""
    lists: list[ObjectList[Pod] | Exception] = attrs.field(factory=list)
    watches: list[list[Step] | Exception] = attrs.field(factory=list)
    starts: float = 0.0
    """When the request of the state is sent."""
    failures: int = 0
    """Failures that are reported before."""


FIVE = listing(version=5)
WAYS: Final = {
    State.LIST: Way(["list 0"]),
    State.LIST_NEWEST: Way(["list 0", "list "], lists=[EXPIRED]),
    State.WATCH_LIST: Way(["watch-list "]),
    State.WATCH: Way(["list 0", "watch 5"], lists=[FIVE]),
    State.RESUME: Way(
        ["list 0", "watch 5", "watch 5"], lists=[FIVE], watches=[[60.0, BROKEN]], starts=60.0, failures=1
    ),
}
SEEN: Final = {
    State.LIST: ["list 0"],
    State.LIST_NEWEST: ["list "],
    State.WATCH_LIST: ["watch-list "],
    # a check beside the watch shows which of the two it is
    State.WATCH: ["watch 5"],
    State.RESUME: ["watch 5"],
}
"""By which requests a state is known."""


@attrs.frozen
class Cause:
    """How a request ends with an outcome."""

    lists: list[ObjectList[Pod] | Exception] = attrs.field(factory=list)
    watches: list[list[Step] | Exception] = attrs.field(factory=list)
    lasts: float = 0.0
    """Seconds from the request to the outcome."""
    has_error: bool = False
    confirms: bool = False
    """Whether the server has the version of a resumed watch; otherwise there is no response to the question."""


def cause_of(state: State, outcome: Outcome) -> Cause:
    """Return what makes a request of ``state`` end with ``outcome``."""
    if outcome in RESPONSES:
        response = RESPONSES[outcome]
        if state in LISTS:
            return Cause(lists=[response], has_error=True)
        return Cause(watches=[response], has_error=True)
    if outcome is Outcome.RECEIVED and state in LISTS:
        return Cause(lists=[FIVE])
    if outcome is Outcome.CUT_SHORT and state in LISTS:
        return Cause(lists=[partial()], has_error=True)
    causes = {
        # The same connection becomes a watch, and its end is followed by a pause.
        Outcome.RECEIVED: Cause(watches=[[end(5), LASTS]], lasts=LASTS + WAITS[Wait.PAUSE]),
        Outcome.CONFIRMED: Cause(watches=[[LASTS]], lasts=LASTS + WAITS[Wait.PAUSE], confirms=True),
        Outcome.ENDED: Cause(watches=[[LASTS]], lasts=LASTS),
        Outcome.ENDED_EARLY: Cause(watches=[[added(pod("a", 5))]]),
        Outcome.CUT_SHORT: Cause(watches=[[LASTS, partial()]], lasts=LASTS, has_error=True),
        Outcome.SILENT: Cause(watches=[[None]], lasts=330.0),
        Outcome.CHANGED: Cause(watches=[[LASTS, ListAgain()]], lasts=LASTS),
    }
    return causes[outcome]


class Least(random.Random):
    """Draws the least value."""

    def random(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("state", "outcome"), TRANSITIONS, ids=[f"{state.name}-{outcome.name}" for state, outcome in TRANSITIONS]
)
async def test_an_outcome_is_followed_by_what_the_table_says(
    state: State, outcome: Outcome, autojump_clock: trio.testing.MockClock
) -> None:
    way, cause, step = WAYS[state], cause_of(state, outcome), TRANSITIONS[state, outcome]
    source = ScriptedListWatch(
        lists=[*way.lists, *cause.lists, FIVE],
        watches=[*way.watches, *cause.watches],
        checks=[None] if cause.confirms else [BROKEN] * 50,
        supports_watch_list=state is State.WATCH_LIST,
    )
    errors: list[Exception] = []
    options = ReflectorOptions(
        watch_error_handler=errors.append,
        retry_forever=True,
        watch_list=source.supports_watch_list,
    )
    reflector = Reflector(source, Sink(), options, rng=Least())
    ends = way.starts + cause.lasts
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reflector.run)
        await trio.sleep(ends + 9 - trio.current_time())
        nursery.cancel_scope.cancel()

    before, seen = len(way.requests), SEEN[step.state]
    if state in WATCHES and step.state is State.LIST:
        seen = ["list 5"]
    requests = [(time, what) for time, what in source.requests if not what.startswith("check")]
    assert [what for _, what in requests[:before]] == way.requests
    assert requests[before - 1][0] == pytest.approx(way.starts)
    assert [what for _, what in requests[before : before + len(seen)]] == seen
    following = requests[before][0]
    assert following - ends == pytest.approx(WAITS[step.wait])
    if step.state in WATCHES:
        # A check that had no response is not repeated with the next watch.
        since = way.starts if step.state is State.RESUME else following
        is_checked = any(time > since and what == "check 5" for time, what in source.requests)
        assert is_checked == (step.state is State.RESUME)
    assert len(errors) - way.failures == int(step.is_reported and cause.has_error)


def test_every_state_has_an_entry_for_every_response_that_it_can_receive() -> None:
    assert [(state, outcome) for state in State for outcome in RESPONSES if (state, outcome) not in TRANSITIONS] == []


def test_no_state_is_a_dead_end() -> None:
    """A watch can be reached from each of them, even after any one outcome."""
    reaching = {State.WATCH}
    while found := {state for (state, _), step in TRANSITIONS.items() if step.state in reaching} - reaching:
        reaching |= found
    assert reaching == set(State)


def test_every_outcome_and_every_state_is_in_the_table() -> None:
    assert {outcome for _, outcome in TRANSITIONS} == set(Outcome)
    assert {step.state for step in TRANSITIONS.values()} == set(State)


def test_no_failure_is_repeated_immediately_in_the_same_state() -> None:
    repeated = {
        (state, outcome)
        for (state, outcome), step in TRANSITIONS.items()
        if step.state is state and step.wait is Wait.NONE
    }
    # The next request is preceded by at least twenty seconds of silence.
    assert repeated == {(State.RESUME, Outcome.SILENT)}


def test_the_table_of_the_documentation_is_that_of_the_code() -> None:
    described: dict[tuple[State, Outcome], Entry] = {}
    for row in recovery.transitions().split("   * - ")[2:]:
        state, outcomes, following, wait, reported = row.split("\n     - ")
        names = [re.findall(r"``(\w+)``", cell) for cell in (state, outcomes, following, wait)]
        (start,), found, (end_state,), (kind,) = names
        step = Entry(State[end_state], Wait[kind], reported.strip() == "yes")
        described |= {(State[start], Outcome[name]): step for name in found}
    assert described == TRANSITIONS
    page = (ROOT / "docs" / "design" / "recovery.rst").read_text()
    assert [place for place in recovery.PLACES if f"\n{place}\n" not in page] == []
