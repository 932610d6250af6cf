"""The states of a reflector, and what follows each outcome in each of them.

A state says which request the reflector sends next.
:data:`TRANSITIONS` is the whole behaviour after successes and failures; ``docs/images/reflector.svg`` is drawn from it.

Why there are two kinds of list: a watch-list (KEP-3157) is a watch that begins with all objects, marks their end with a
bookmark, and then continues with the changes, which spares a server before 1.33 the memory of a whole list.
Since 1.33 a server streams its lists, and a list costs it half the CPU of a watch-list.

Why a watch after a lost connection has a state of its own: the server may have been restored from a backup.
It then accepts a watch from a version that it has not reached yet, and sends nothing until it has, with other objects.
So the reflector asks whether the server has the version, unless events show it before.

Source: client-go ``tools/cache/reflector.go``; the shape is that of kube-rs's watcher.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
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
    RESUME = "watch from the last version, which the server may not have any more"


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
_REPORT, _USE_LISTS = True, True


def _in(states: Iterable[State], outcome: Outcome, step: Step) -> dict[tuple[State, Outcome], Step]:
    return {(state, outcome): step for state in states}


def _stay(
    states: Iterable[State], outcome: Outcome, wait: Wait, *, is_reported: bool
) -> dict[tuple[State, Outcome], Step]:
    return {(state, outcome): Step(state, wait, is_reported) for state in states}


TRANSITIONS: Final[Mapping[tuple[State, Outcome], Step]] = {
    # A server that rejects the question is not asked again.
    (State.CHOOSE, Outcome.LISTS): Step(State.LIST, _NOW),
    (State.CHOOSE, Outcome.WATCH_LISTS): Step(State.WATCH_LIST, _NOW),
    # Whichever request it is, it is repeated after these.
    **_stay((State.CHOOSE, *LISTS, *WATCH_LISTS), Outcome.LOST, _RECONNECT, is_reported=True),
    **_stay((State.CHOOSE, *LISTS, *WATCH_LISTS), Outcome.OVERLOADED, _BACK_OFF, is_reported=True),
    **_in(State, Outcome.NOT_STORED, Step(State.CHOOSE, _BACK_OFF, _REPORT)),
    # --- lists ---
    **_in(LISTS, Outcome.RECEIVED, Step(State.WATCH, _NOW)),
    # The server can serve the newest state only; a wait would not change that.
    (State.LIST, Outcome.EXPIRED): Step(State.LIST_NEWEST, _NOW),
    (State.LIST, Outcome.TOO_LARGE): Step(State.LIST_NEWEST, _NOW),
    **_stay([State.LIST_NEWEST], Outcome.EXPIRED, _BACK_OFF, is_reported=True),
    **_stay([State.LIST_NEWEST], Outcome.TOO_LARGE, _BACK_OFF, is_reported=True),
    **_stay(LISTS, Outcome.REJECTED, _BACK_OFF, is_reported=True),
    **_stay(LISTS, Outcome.DENIED, _BACK_OFF, is_reported=True),
    **_stay(LISTS, Outcome.FAILED, _BACK_OFF, is_reported=True),
    # --- watch-lists, up to their end bookmarks ---
    **_in(WATCH_LISTS, Outcome.RECEIVED, Step(State.WATCH, _NOW)),
    **_in(WATCH_LISTS, Outcome.REJECTED, Step(State.LIST, _NOW, False, _USE_LISTS)),
    **_in(WATCH_LISTS, Outcome.NO_END, Step(State.LIST, _NOW, False, _USE_LISTS)),
    (State.WATCH_LIST, Outcome.CUT_SHORT): Step(State.WATCH_LIST_AGAIN, _PAUSE, _REPORT),
    (State.WATCH_LIST_AGAIN, Outcome.CUT_SHORT): Step(State.LIST, _NOW, _REPORT, _USE_LISTS),
    (State.WATCH_LIST_NEWEST, Outcome.CUT_SHORT): Step(State.LIST_NEWEST, _PAUSE, _REPORT),
    **_in([State.WATCH_LIST, State.WATCH_LIST_AGAIN], Outcome.EXPIRED, Step(State.WATCH_LIST_NEWEST, _NOW)),
    **_in([State.WATCH_LIST, State.WATCH_LIST_AGAIN], Outcome.TOO_LARGE, Step(State.WATCH_LIST_NEWEST, _NOW)),
    (State.WATCH_LIST_NEWEST, Outcome.EXPIRED): Step(State.LIST_NEWEST, _BACK_OFF, _REPORT),
    (State.WATCH_LIST_NEWEST, Outcome.TOO_LARGE): Step(State.LIST_NEWEST, _BACK_OFF, _REPORT),
    **_stay(WATCH_LISTS, Outcome.DENIED, _BACK_OFF, is_reported=True),
    **_in(WATCH_LISTS, Outcome.FAILED, Step(State.LIST, _BACK_OFF, _REPORT)),
    # --- watches ---
    **_stay(WATCHES, Outcome.ENDED, _PAUSE, is_reported=False),
    **_stay(WATCHES, Outcome.ENDED_EARLY, _BACK_OFF, is_reported=False),
    **_in(WATCHES, Outcome.ENDED_EMPTY, Step(State.CHOOSE, _BACK_OFF, _REPORT)),
    **_in(WATCHES, Outcome.LOST, Step(State.RESUME, _RECONNECT, _REPORT)),
    **_in(WATCHES, Outcome.SILENT, Step(State.RESUME, _NOW)),
    (State.RESUME, Outcome.CONFIRMED): Step(State.WATCH, _NOW),
    **_stay(WATCHES, Outcome.OVERLOADED, _BACK_OFF, is_reported=True),
    **_stay(WATCHES, Outcome.INTERNAL, _PAUSE, is_reported=True),
    **_in(WATCHES, Outcome.EXPIRED, Step(State.CHOOSE, _BACK_OFF, _REPORT)),
    **_in(WATCHES, Outcome.TOO_LARGE, Step(State.LIST_NEWEST, _BACK_OFF, _REPORT)),
    **_in(WATCHES, Outcome.REJECTED, Step(State.CHOOSE, _BACK_OFF, _REPORT)),
    **_in(WATCHES, Outcome.DENIED, Step(State.CHOOSE, _BACK_OFF, _REPORT)),
    **_in(WATCHES, Outcome.FAILED, Step(State.CHOOSE, _BACK_OFF, _REPORT)),
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


@attrs.define(eq=False)
class ServerFacts:
    """What a reflector has found out about its server, for all further lists and watches."""

    list_method: ListMethod = ListMethod.UNKNOWN
    bookmarks: Bookmarks = Bookmarks.UNKNOWN
    is_paginated: bool = False
    """Whether the server honors limits at version ``"0"``: it has no watch cache."""

    def record_version(self, version: tuple[int, int] | None, *, has_watch_lists: bool) -> None:
        """Record the server's version, unless what it decides is known already."""
        if self.list_method is ListMethod.UNKNOWN:
            streams_lists = version is not None and version >= LIST_STREAMING_SINCE
            self.list_method = ListMethod.WATCH_LIST if has_watch_lists and not streams_lists else ListMethod.LIST
        if self.bookmarks is Bookmarks.UNKNOWN and version is not None and version >= BOOKMARKS_SINCE:
            self.bookmarks = Bookmarks.EXPECTED
