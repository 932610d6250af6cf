"""The states of a reflector, and what follows each outcome in each of them.

A state says which request the reflector sends next.
:data:`TRANSITIONS` is the whole behaviour after successes and failures; ``docs/diagrams/_reflector.py`` draws it.

Why there are two kinds of list: a watch-list (KEP-3157) is a watch that begins with all objects, marks their end with a
bookmark, and then continues with the changes, which spares a server the memory of a whole list.
Since 1.33 a server streams its lists, and a list costs it much less CPU than a watch-list.

Why a watch after a lost connection has a state of its own: the server may have been restored from a backup.
It then accepts a watch from a version that it has not reached yet, and sends nothing until it has, with other objects.
So the reflector asks whether the server has the version, unless events show it before.

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
    """What the reflector requests next."""

    CHOOSE = "choose between list and watch-list, by the server's version"
    LIST = "list, in a state that is not older than the last version"
    LIST_NEWEST = "list the newest state"
    WATCH_LIST = "read a watch-list"
    WATCH_LIST_AGAIN = "read a watch-list, after one that was cut short"
    WATCH_LIST_NEWEST = "read a watch-list of the newest state"
    WATCH = "watch from the last version"
    RESUME = "watch from the last version, which the server may not have reached"


LISTS: Final = (State.LIST, State.LIST_NEWEST)
WATCH_LISTS: Final = (State.WATCH_LIST, State.WATCH_LIST_AGAIN, State.WATCH_LIST_NEWEST)
WATCHES: Final = (State.WATCH, State.RESUME)
NEWEST: Final = (State.LIST_NEWEST, State.WATCH_LIST_NEWEST)
"""The states that request the newest state, since the server cannot serve the last version."""


class Step(NamedTuple):
    """What follows an outcome."""

    state: State
    """The next state."""
    wait: Wait
    """What to wait for before its request."""
    is_reported: bool = False
    """Whether the error, if there is one, is passed to ``watch_error_handler``, or logged."""
    ends_watch_lists: bool = False
    """Whether lists are used from now on."""


_NOW, _PAUSE, _RECONNECT, _BACK_OFF = Wait.NONE, Wait.PAUSE, Wait.RECONNECT, Wait.BACK_OFF
_REPORT, _QUIET, _USE_LISTS = True, False, True
_SAME: Final = None
_NOT_LISTED: Final = (State.CHOOSE, *LISTS, *WATCH_LISTS)
_REPEATED: Final = (State.CHOOSE, *LISTS, State.WATCH_LIST_AGAIN, State.WATCH_LIST_NEWEST)
_FIRST_WATCH_LISTS: Final = (State.WATCH_LIST, State.WATCH_LIST_AGAIN)
_UNAVAILABLE: Final = (Outcome.EXPIRED, Outcome.TOO_LARGE)
_ERRORS: Final = (Outcome.REJECTED, Outcome.DENIED, Outcome.FAILED)


class _Row(NamedTuple):
    """Steps that are the same in several states, or after several outcomes."""

    states: tuple[State, ...]
    outcomes: tuple[Outcome, ...]
    following: State | None
    """The next state; None for the same."""
    wait: Wait
    is_reported: bool
    ends_watch_lists: bool = False


_ROWS: Final[Sequence[_Row]] = (
    _Row((State.CHOOSE,), (Outcome.LISTS,), State.LIST, _NOW, _QUIET),
    _Row((State.CHOOSE,), (Outcome.WATCH_LISTS,), State.WATCH_LIST, _NOW, _QUIET),
    # whatever is requested
    _Row((State.WATCH_LIST,), (Outcome.LOST,), State.CHOOSE, _RECONNECT, _REPORT),  # the version may not be known
    _Row(_REPEATED, (Outcome.LOST,), _SAME, _RECONNECT, _REPORT),
    _Row(_NOT_LISTED, (Outcome.OVERLOADED,), _SAME, _BACK_OFF, _REPORT),
    # lists
    _Row(LISTS, (Outcome.RECEIVED,), State.WATCH, _NOW, _QUIET),
    _Row((State.LIST,), _UNAVAILABLE, State.LIST_NEWEST, _NOW, _QUIET),  # a wait would not change it
    _Row((State.LIST_NEWEST,), _UNAVAILABLE, _SAME, _BACK_OFF, _REPORT),
    _Row(LISTS, _ERRORS, _SAME, _BACK_OFF, _REPORT),
    # watch-lists, up to their end bookmarks
    _Row(WATCH_LISTS, (Outcome.RECEIVED,), State.WATCH, _NOW, _QUIET),
    _Row(WATCH_LISTS, (Outcome.REJECTED, Outcome.NO_END), State.LIST, _NOW, _QUIET, _USE_LISTS),
    _Row((State.WATCH_LIST,), (Outcome.CUT_SHORT,), State.WATCH_LIST_AGAIN, _PAUSE, _REPORT),
    _Row((State.WATCH_LIST_AGAIN,), (Outcome.CUT_SHORT,), State.LIST, _NOW, _REPORT, _USE_LISTS),
    _Row((State.WATCH_LIST_NEWEST,), (Outcome.CUT_SHORT,), State.LIST_NEWEST, _PAUSE, _REPORT),
    _Row(_FIRST_WATCH_LISTS, _UNAVAILABLE, State.WATCH_LIST_NEWEST, _NOW, _QUIET),
    _Row((State.WATCH_LIST_NEWEST,), _UNAVAILABLE, State.LIST_NEWEST, _BACK_OFF, _REPORT),
    _Row(WATCH_LISTS, (Outcome.DENIED,), _SAME, _BACK_OFF, _REPORT),
    _Row(WATCH_LISTS, (Outcome.FAILED,), State.LIST, _BACK_OFF, _REPORT),
    # watches
    _Row(WATCHES, (Outcome.ENDED,), _SAME, _PAUSE, _QUIET),
    # The server may be another one after a delay.
    _Row(WATCHES, (Outcome.ENDED_EARLY,), State.RESUME, _BACK_OFF, _QUIET),
    _Row(WATCHES, (Outcome.OVERLOADED,), State.RESUME, _BACK_OFF, _REPORT),
    _Row(WATCHES, (Outcome.ENDED_EMPTY,), State.CHOOSE, _BACK_OFF, _REPORT),
    _Row(WATCHES, (Outcome.LOST,), State.RESUME, _RECONNECT, _REPORT),
    _Row(WATCHES, (Outcome.SILENT,), State.RESUME, _NOW, _QUIET),
    _Row((State.RESUME,), (Outcome.CONFIRMED,), State.WATCH, _NOW, _QUIET),
    _Row(WATCHES, (Outcome.INTERNAL,), _SAME, _PAUSE, _REPORT),
    _Row(WATCHES, (Outcome.TOO_LARGE,), State.LIST_NEWEST, _BACK_OFF, _REPORT),
    _Row(WATCHES, (Outcome.EXPIRED, *_ERRORS), State.CHOOSE, _BACK_OFF, _REPORT),
)

TRANSITIONS: Final[Mapping[tuple[State, Outcome], Step]] = {
    (state, outcome): Step(row.following or state, row.wait, row.is_reported, row.ends_watch_lists)
    for row in _ROWS
    for state in row.states
    for outcome in row.outcomes
}
"""What follows each outcome in each state; an outcome that a state cannot have has no entry."""


class ListMethod(enum.Enum):
    """How a server is listed."""

    UNKNOWN = "the server's version was not asked for"
    LIST = "with a list"
    WATCH_LIST = "with a watch-list"


class Bookmarks(enum.Enum):
    """What is known about a server's bookmarks, which show that a watch without changes is alive."""

    UNKNOWN = "the server may not send any"
    EXPECTED = "the server sends them, by its version or since a watch-list ended with one"
    DOUBTED = "a watch that should have received one was silent"
    ABSENT = "so were two in a row: the server sends none for this kind"
    SEEN = "the server has sent one"

    def after_silence(self) -> Bookmarks:
        """What is known after a watch that should have received one was silent."""
        doubts = {Bookmarks.EXPECTED: Bookmarks.DOUBTED, Bookmarks.DOUBTED: Bookmarks.ABSENT}
        return doubts.get(self, self)

    @property
    def are_sent(self) -> bool:
        """Whether a watch without any is silent."""
        return self in (Bookmarks.EXPECTED, Bookmarks.DOUBTED, Bookmarks.SEEN)


LIST_STREAMING_SINCE: Final = (1, 33)
"""The Kubernetes version since which lists are encoded item by item (StreamingCollectionEncodingToJSON)."""
BOOKMARKS_SINCE: Final = (1, 17)
"""The Kubernetes version since which every server sends bookmarks."""
MAX_VERSION_REQUESTS: Final = 2
"""Requests for the version without a response, after which a list is requested without it."""


@attrs.define(eq=False)
class ServerFacts:
    """What a reflector has found out about its server, for all further lists and watches."""

    list_method: ListMethod = ListMethod.UNKNOWN
    bookmarks: Bookmarks = Bookmarks.UNKNOWN
    is_paginated: bool = False
    """Whether the server honors limits at version ``"0"``: it has no watch cache."""
    check_at: float = math.inf
    """When to ask whether the server has the version of a resumed watch; infinity if that is known."""
    version_requests: int = 0
    """Requests for the version since the last list, or since it is known."""

    def must_request_version(self) -> bool:
        """Count a request for the server's version; False if it would decide nothing, or too many were in vain."""
        is_method_known = self.list_method is not ListMethod.UNKNOWN
        if is_method_known and self.bookmarks is not Bookmarks.UNKNOWN:
            return False
        if self.version_requests >= (1 if is_method_known else MAX_VERSION_REQUESTS):
            self.version_requests = 0
            return False
        self.version_requests += 1
        return True

    def record_version(self, version: tuple[int, int] | None) -> None:
        """Record the server's version, unless what it decides is known already."""
        self.version_requests = 0
        if self.list_method is ListMethod.UNKNOWN:
            streams_lists = version is not None and version >= LIST_STREAMING_SINCE
            self.list_method = ListMethod.LIST if streams_lists else ListMethod.WATCH_LIST
        if self.bookmarks is Bookmarks.UNKNOWN and version is not None and version >= BOOKMARKS_SINCE:
            self.bookmarks = Bookmarks.EXPECTED
