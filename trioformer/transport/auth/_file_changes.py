"""Decides when files that may be rotated while the program runs are read again.

The problem: a program that rotates a certificate writes two or three files, and a plain write of one is not atomic.
A certificate without its key is refused by OpenSSL, but half a bundle of authorities is a valid bundle, and half a
token a valid token: a reader in between would fail requests for no reason.

So a look at files is a ``stat``, at most one a second, and only when a request is sent.
Files that have changed are read when they have not been written for a second, by their own time or by two equal looks.
What is in the files is also read now and then for file systems whose ``stat`` does not show each change.
After a rejected credential there is nothing to lose, and files that have changed are read immediately.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Final, TypeAlias, final

import trio

LOOK_PERIOD: Final = 1.0
"""Seconds between two looks."""
SETTLED_AFTER: Final = 1.0
"""Seconds without a change after which a file counts as completely written."""

_State: TypeAlias = tuple[tuple[int, int, int, int] | None, ...]
"""Device, inode, size and time of change in nanoseconds of each file; None if it is not found."""


@final
class FileChanges:
    """The changes of some files since they were read; the caller reads them.

    Args:
        files: The paths; None for a file that is not configured.
        period: Seconds after which files are read again even if no change is seen.
    """

    __slots__ = ("_files", "_is_rejected", "_looked_at", "_period", "_read", "_read_at", "_seen", "_seen_at")

    def __init__(self, files: Iterable[str | None], *, period: float) -> None:
        self._files = [file for file in files if file is not None]
        self._period = period
        self._is_rejected = False
        self.record_read()

    def record_read(self) -> None:
        """Record that the files are about to be read, whatever comes of it."""
        # Before they are read: what is written meanwhile is a change.
        self._read = self._seen = self._look()
        self._read_at = self._looked_at = self._seen_at = trio.current_time()

    def record_rejection(self) -> None:
        """Record that the server has rejected what was read: files that have changed are then read immediately."""
        self._is_rejected = True

    def must_read(self) -> bool:
        """Whether the files should be read now."""
        if not self._files:
            return False
        now = trio.current_time()
        is_rejected, self._is_rejected = self._is_rejected, False
        if not is_rejected and now < self._looked_at + LOOK_PERIOD:
            return False
        self._looked_at = now
        state = self._look()
        if state == self._read:
            return now >= self._read_at + self._period
        if is_rejected or _is_settled(state):
            return True
        if state == self._seen:
            return now >= self._seen_at + SETTLED_AFTER
        self._seen, self._seen_at = state, now
        return False

    def _look(self) -> _State:
        return tuple(_state_of(file) for file in self._files)


def _state_of(file: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(file)
    except (OSError, ValueError):  # a NUL in the path, too; reading the file says what is wrong
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _is_settled(state: _State) -> bool:
    """Whether all files are there and were last written a second ago or earlier, by the system's clock.

    A program that sends a request each hour would otherwise send this one with what is in use no more.
    The clock of a file server may be ahead; then it is not true, and two equal looks decide.
    """
    settled = time.time_ns() - int(SETTLED_AFTER * 1e9)
    return all(each is not None and each[3] <= settled for each in state)
