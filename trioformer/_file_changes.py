"""Decide when to reread files that may be rotated while the program runs.

Rotating a certificate means writing two or three files, and a plain write is not atomic.
OpenSSL rejects a certificate with the wrong key, but accepts an incomplete bundle of authorities, and an incomplete
token looks valid.  If files were read too early, requests would fail for no reason.

So files are checked with ``stat``, at most once a second, and only when a request is sent or a client connects.
Changed files are read when they have been stable for a second, according to their modification times or because two
checks gave the same result.
Files are also read periodically, because ``stat`` does not show every change on some file systems.
After the server has rejected a credential, changed files are read immediately.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Final, TypeAlias, final

import trio

LOOK_PERIOD: Final = 1.0
"""Seconds between two checks."""
SETTLED_AFTER: Final = 1.0
"""Seconds without a change after which a file counts as completely written."""

_State: TypeAlias = tuple[tuple[int, int, int, int] | None, ...]
"""The device, inode, size and time of change in nanoseconds of each file; None for a missing file."""


@final
class FileChanges:
    """Tracks changes of files since they were last read. The caller reads the files.

    Args:
        files: The paths of the files. None stands for a file that is not configured.
        period: The number of seconds after which files are read again even without a visible change.
    """

    __slots__ = ("_files", "_is_rejected", "_looked_at", "_period", "_read", "_read_at", "_seen", "_seen_at")

    def __init__(self, files: Iterable[str | None], *, period: float) -> None:
        self._files = [file for file in files if file is not None]
        self._period = period
        self._is_rejected = False
        self.record_read()

    def record_read(self) -> None:
        """Record that the files are about to be read, even if reading them fails."""
        # Before they are read, so that a write meanwhile counts as a change.
        self._read = self._seen = self._look()
        self._read_at = self._looked_at = self._seen_at = trio.current_time()

    def record_rejection(self) -> None:
        """Record that the server has rejected the content. Changed files are then read immediately."""
        self._is_rejected = True

    def must_read(self) -> bool:
        """Return whether the files should be read now."""
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
    except (OSError, ValueError):  # ValueError: a NUL in the path; reading the file reports the problem
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _is_settled(state: _State) -> bool:
    """Return whether all files exist and were last written at least a second ago, by the system's clock.

    Without this check, a program that sends one request per hour would use outdated content for it.
    If the clock of a file server is ahead, this function returns False, and the comparison of two checks decides.
    """
    settled = time.time_ns() - int(SETTLED_AFTER * 1e9)
    return all(each is not None and each[3] <= settled for each in state)
