"""The states of a reflector, and the step after each outcome in each state.

A state is the request that the reflector sends next.
:data:`TRANSITIONS` is the whole behavior after successes and failures; ``docs/diagrams/_reflector.py`` draws it.

A watch-list (KEP-3157) is a watch that begins with all objects, marks their end with a bookmark, and then continues
with the changes.
With ``ReflectorOptions.watch_list``, ``WATCH_LIST`` takes the place of ``LIST`` at the beginning and after a watch.

Why a watch after a lost connection has its own state: the server may have been restored from a backup.
It then accepts a watch from a version that it has not reached yet, and sends nothing until it reaches that version with
other objects.
So the reflector checks that the server has the version, unless an event shows it first.

Source: client-go ``tools/cache/reflector.go``; the shape is that of kube-rs's watcher.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import attrs

from ..._retry import Outcome, Wait


class State(enum.Enum):
    """The next request of the reflector."""

    LIST = "list, in a state that is not older than the last version"
    LIST_NEWEST = "list the newest state"
    WATCH_LIST = "read a watch-list, in a state that is not older than the last version"
    WATCH = "watch from the last version"
    RESUME = "watch from the last version, which the server may not have reached"


LISTS: Final = (State.LIST, State.LIST_NEWEST)
WATCHES: Final = (State.WATCH, State.RESUME)


class Step(NamedTuple):
    """The step after an outcome."""

    state: State
    """The next state."""
    wait: Wait
    """The wait before its request."""
    is_reported: bool = False
    """Whether an error is passed to ``watch_error_handler`` or logged."""


_NOW, _PAUSE, _RECONNECT, _BACK_OFF = Wait.NONE, Wait.PAUSE, Wait.RECONNECT, Wait.BACK_OFF
_REPORT, _QUIET = True, False
_SAME: Final = None
_NOT_LISTED: Final = (*LISTS, State.WATCH_LIST)
_ERRORS: Final = (Outcome.REJECTED, Outcome.DENIED, Outcome.FAILED)


class _Row(NamedTuple):
    """Steps that are the same in several states, or after several outcomes."""

    states: tuple[State, ...]
    outcomes: tuple[Outcome, ...]
    following: State | None
    """The next state; None for the same state."""
    wait: Wait
    is_reported: bool


_ROWS: Final[Sequence[_Row]] = (
    # lists and watch-lists
    _Row(_NOT_LISTED, (Outcome.RECEIVED,), State.WATCH, _NOW, _QUIET),
    _Row(_NOT_LISTED, (Outcome.LOST,), _SAME, _RECONNECT, _REPORT),
    _Row(_NOT_LISTED, (Outcome.CUT_SHORT, Outcome.OVERLOADED), _SAME, _BACK_OFF, _REPORT),
    # lists
    _Row((State.LIST,), (Outcome.UNAVAILABLE,), State.LIST_NEWEST, _NOW, _QUIET),  # a wait would not change it
    _Row((State.LIST_NEWEST,), (Outcome.UNAVAILABLE,), _SAME, _BACK_OFF, _REPORT),
    _Row(LISTS, _ERRORS, _SAME, _BACK_OFF, _REPORT),
    # watch-lists
    _Row((State.WATCH_LIST,), (Outcome.UNAVAILABLE,), State.LIST_NEWEST, _NOW, _QUIET),
    _Row((State.WATCH_LIST,), (Outcome.REJECTED,), State.LIST, _NOW, _QUIET),
    _Row((State.WATCH_LIST,), (Outcome.DENIED,), _SAME, _BACK_OFF, _REPORT),
    _Row((State.WATCH_LIST,), (Outcome.FAILED,), State.LIST, _BACK_OFF, _REPORT),
    # watches
    _Row(WATCHES, (Outcome.ENDED,), _SAME, _PAUSE, _QUIET),
    # The server may be another one after a delay.
    _Row(WATCHES, (Outcome.ENDED_EARLY,), State.RESUME, _BACK_OFF, _QUIET),
    _Row(WATCHES, (Outcome.OVERLOADED,), State.RESUME, _BACK_OFF, _REPORT),
    _Row(WATCHES, (Outcome.LOST,), State.RESUME, _RECONNECT, _REPORT),
    _Row(WATCHES, (Outcome.SILENT,), State.RESUME, _NOW, _QUIET),
    _Row((State.RESUME,), (Outcome.CONFIRMED,), State.WATCH, _NOW, _QUIET),
    _Row(WATCHES, (Outcome.UNAVAILABLE, *_ERRORS), State.LIST, _BACK_OFF, _REPORT),
)

TRANSITIONS: Final[Mapping[tuple[State, Outcome], Step]] = {
    (state, outcome): Step(row.following or state, row.wait, row.is_reported)
    for row in _ROWS
    for state in row.states
    for outcome in row.outcomes
}
"""The step after each outcome in each state; impossible outcomes have no entry."""


class Bookmarks(enum.Enum):
    """What is known about the server's bookmarks, which show that a watch without changes is alive."""

    UNKNOWN = "the source might not send any"
    EXPECTED = "an API server sends them, at least since 1.17"
    DOUBTED = "a watch that should have received one was silent"
    ABSENT = "two watches in a row were silent: the server sends none for this kind"
    SEEN = "the server has sent one"

    def after_silence(self) -> Bookmarks:
        """Return the state after a watch without the bookmark that it should have received."""
        doubts = {Bookmarks.EXPECTED: Bookmarks.DOUBTED, Bookmarks.DOUBTED: Bookmarks.ABSENT}
        return doubts.get(self, self)

    @property
    def are_sent(self) -> bool:
        """Whether a watch without bookmarks counts as silent."""
        return self not in (Bookmarks.UNKNOWN, Bookmarks.ABSENT)


@attrs.define(eq=False)
class ServerFacts:
    """What a reflector has learned about its server, for all later lists and watches."""

    bookmarks: Bookmarks
    is_paginated: bool = False
    """Whether the server honors limits at version ``"0"``, because it has no watch cache."""
    check_at: float = math.inf
    """The time of the version check of a resumed watch; infinity if no check is needed."""
