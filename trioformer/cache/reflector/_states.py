"""The states of a reflector, and its next step for each state and outcome.

A state is the request that the reflector sends next.
The table :data:`TRANSITIONS` defines the complete behavior after successes and failures.
``docs/diagrams/_reflector.py`` draws a diagram of this table.

A watch-list (KEP-3157) is a watch that begins with all objects.  A bookmark marks the end of these objects, and changes
follow. With ``ReflectorOptions.watch_list``, the state ``WATCH_LIST`` replaces ``LIST`` at the beginning and after a
watch.

A watch after a lost connection has its own state, because the server may have been restored from a backup. Such a
server accepts a watch from a resourceVersion that it has not reached yet, and sends no events until it reaches this
version. So the reflector checks that the server has reached the version, unless an event proves this first.

Source: client-go ``tools/cache/reflector.go``.  The structure is similar to the watcher of kube-rs.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import attrs

from ..._retry import Outcome, Wait


class State(enum.Enum):
    """The state of a reflector, which is the request that it sends next."""

    LIST = "list, in a state that is not older than the last version"
    LIST_NEWEST = "list the newest state"
    WATCH_LIST = "read a watch-list, in a state that is not older than the last version"
    WATCH = "watch from the last version"
    RESUME = "watch from the last version, which the server may not have reached"


LISTS: Final = (State.LIST, State.LIST_NEWEST)
WATCHES: Final = (State.WATCH, State.RESUME)


class Step(NamedTuple):
    """The next step of a reflector after an outcome."""

    state: State
    """The next state."""
    wait: Wait
    """How to wait before the request of this state."""
    is_reported: bool = False
    """Whether the error is logged or passed to ``watch_error_handler``."""


_NOW, _PAUSE, _RECONNECT, _BACK_OFF = Wait.NONE, Wait.PAUSE, Wait.RECONNECT, Wait.BACK_OFF
_REPORT, _QUIET = True, False
_SAME: Final = None
_NOT_LISTED: Final = (*LISTS, State.WATCH_LIST)
_ERRORS: Final = (Outcome.REJECTED, Outcome.DENIED, Outcome.FAILED)


class _Row(NamedTuple):
    """A row of the table: a step for several states and several outcomes."""

    states: tuple[State, ...]
    outcomes: tuple[Outcome, ...]
    following: State | None
    """The next state, or None for the same state."""
    wait: Wait
    is_reported: bool


_ROWS: Final[Sequence[_Row]] = (
    # lists and watch-lists
    _Row(_NOT_LISTED, (Outcome.RECEIVED,), State.WATCH, _NOW, _QUIET),
    _Row(_NOT_LISTED, (Outcome.LOST,), _SAME, _RECONNECT, _REPORT),
    _Row(_NOT_LISTED, (Outcome.CUT_SHORT, Outcome.OVERLOADED), _SAME, _BACK_OFF, _REPORT),
    # lists
    _Row((State.LIST,), (Outcome.UNAVAILABLE,), State.LIST_NEWEST, _NOW, _QUIET),  # waiting would not help
    _Row((State.LIST_NEWEST,), (Outcome.UNAVAILABLE,), _SAME, _BACK_OFF, _REPORT),
    _Row(LISTS, _ERRORS, _SAME, _BACK_OFF, _REPORT),
    # watch-lists
    _Row((State.WATCH_LIST,), (Outcome.UNAVAILABLE,), State.LIST_NEWEST, _NOW, _QUIET),
    _Row((State.WATCH_LIST,), (Outcome.REJECTED,), State.LIST, _NOW, _QUIET),
    _Row((State.WATCH_LIST,), (Outcome.DENIED,), _SAME, _BACK_OFF, _REPORT),
    _Row((State.WATCH_LIST,), (Outcome.FAILED,), State.LIST, _BACK_OFF, _REPORT),
    # watches
    _Row(WATCHES, (Outcome.ENDED,), _SAME, _PAUSE, _QUIET),
    # After a delay, another server may respond.
    _Row(WATCHES, (Outcome.ENDED_EARLY,), State.RESUME, _BACK_OFF, _QUIET),
    _Row(WATCHES, (Outcome.OVERLOADED,), State.RESUME, _BACK_OFF, _REPORT),
    _Row(WATCHES, (Outcome.LOST,), State.RESUME, _RECONNECT, _REPORT),
    _Row(WATCHES, (Outcome.SILENT,), State.RESUME, _NOW, _QUIET),
    _Row(WATCHES, (Outcome.CHANGED,), State.LIST, _NOW, _QUIET),
    _Row((State.RESUME,), (Outcome.CONFIRMED,), State.WATCH, _NOW, _QUIET),
    _Row(WATCHES, (Outcome.UNAVAILABLE, *_ERRORS), State.LIST, _BACK_OFF, _REPORT),
)

TRANSITIONS: Final[Mapping[tuple[State, Outcome], Step]] = {
    (state, outcome): Step(row.following or state, row.wait, row.is_reported)
    for row in _ROWS
    for state in row.states
    for outcome in row.outcomes
}
"""The next step for each state and outcome; impossible combinations have no entry."""


class Bookmarks(enum.Enum):
    """What the reflector knows about the server's bookmarks, which show that a watch without changes is alive."""

    UNKNOWN = "the source might not send any"
    EXPECTED = "an API server sends them, at least since 1.17"
    DOUBTED = "a watch that should have received one was silent"
    ABSENT = "two watches in a row were silent: the server sends none for this kind"
    SEEN = "the server has sent one"

    def after_silence(self) -> Bookmarks:
        """Return the next value after an expected bookmark did not arrive."""
        doubts = {Bookmarks.EXPECTED: Bookmarks.DOUBTED, Bookmarks.DOUBTED: Bookmarks.ABSENT}
        return doubts.get(self, self)

    @property
    def are_sent(self) -> bool:
        """Whether the server is assumed to send bookmarks, so that a watch without bookmarks counts as silent."""
        return self not in (Bookmarks.UNKNOWN, Bookmarks.ABSENT)


@attrs.define(eq=False)
class ServerFacts:
    """The facts that a reflector has learned about its server, for later requests."""

    bookmarks: Bookmarks
    is_paginated: bool = False
    """Whether the server paginates lists at resourceVersion ``"0"``, because it has no watch cache."""
    check_at: float = math.inf
    """The time of the version check of a resumed watch; infinity if no check is needed."""
