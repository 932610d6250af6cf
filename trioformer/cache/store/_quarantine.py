"""The quarantine, which records each object whose newest state the cache cannot store, with the reason.

An object is bad if it cannot be decoded, or if the program's transform or index function fails on it.  Such an object
must not end the informer, delay other objects, or appear to be deleted.
So the cache keeps the previous state of a bad object, if there is one, and marks its key.
Reading a marked key raises :class:`~trioformer.errors.QuarantinedError` instead of returning the previous state or
None.

The mark is removed when the server sends a good state of the object, its deletion, or a list without the object.  So
the cache tries to store the object again after every change and every list.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Container, Mapping
from typing import Final, final

import attrs
import trio

from ..._text import one_line, quoted, suppressed_lines
from ..._util import LogLimit, Slices
from ...errors import QuarantinedError
from .._bad_objects import MAX_KEY, MAX_NAMED, BadObject, Quarantined, QuarantineReason, in_words

logger = logging.getLogger("trioformer.cache")

MAX_LINES: Final = 5
"""The largest number of log lines for one list or for a minute of changes; further objects are only counted."""
LOG_PERIOD: Final = 60.0
"""The period of the limit on log lines for changes, in seconds; a tenant may change an object often."""


@final
@attrs.define
class StagedQuarantine:
    """The next content of a quarantine, which is built while the current content is still in use."""

    entries: dict[str, Quarantined] = attrs.field(factory=dict)
    new: list[Quarantined] = attrs.field(factory=list)
    """The first few of the entries to log."""
    count: int = 0
    """The number of entries to log."""


@final
@attrs.define(eq=False)
class Quarantine:
    """The objects in quarantine, by key; only the process loop changes them.

    Args:
        name: The name of the informer in log messages.
    """

    name: str = ""
    entries: dict[str, Quarantined] = attrs.field(factory=dict, init=False)
    """The entries of the quarantine, by key."""
    _log_limit: LogLimit = attrs.field(factory=lambda: LogLimit(LOG_PERIOD, lines=MAX_LINES), init=False)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def missing(self) -> int:
        """The number of objects in quarantine that have no earlier state in the cache."""
        return sum(not each.is_stored for each in self.entries.values())

    def add(self, bad: BadObject, *, is_stored: bool) -> None:
        """Put an object into quarantine, or update its entry."""
        known = self.entries.get(bad.key)
        entry = self.entries[bad.key] = _entry_of(bad, known, is_stored=is_stored)
        if _is_new(entry, known) and (count := self._log_limit.count(None)):
            self._log(entry, suppressed_lines(count - 1))

    def discard(self, key: str) -> None:
        """Remove a key from the quarantine, after its newest state was stored or the object was deleted."""
        self.entries.pop(key, None)

    async def stage(
        self, bad: Mapping[str, BadObject], stored: Container[str], stays: Callable[[str], bool] | None = None
    ) -> StagedQuarantine:
        """Build the entries after a list, with a checkpoint about once a millisecond.

        Args:
            bad: The bad objects of the list, by key.
            stored: The keys of the objects that will be in the cache after the list.
            stays: A function that returns whether the key is of another part of the cache than the list.  None if the
                list was complete.
        """
        staged = StagedQuarantine()
        slices = Slices()
        if stays is not None:
            for key, entry in tuple(self.entries.items()):
                if stays(key):
                    staged.entries[key] = entry
                if slices.is_over():
                    await slices.checkpoint()
        for key, each in bad.items():
            known = self.entries.get(key)
            entry = staged.entries[key] = _entry_of(each, known, is_stored=key in stored)
            if _is_new(entry, known):
                staged.count += 1
                if staged.count <= MAX_LINES:
                    staged.new.append(entry)
            if slices.is_over():
                await slices.checkpoint()
        return staged

    def swap(self, staged: StagedQuarantine) -> dict[str, Quarantined]:
        """Atomically replace all entries with the staged entries, and log the first few new entries.

        Returns:
            The previous entries, which the caller must free in slices.
        """
        before, self.entries = self.entries, staged.entries
        for entry in staged.new:
            self._log(entry)
        if staged.count > len(staged.new):
            more = staged.count - len(staged.new)
            logger.warning("%s: %d more objects of this list are in quarantine until they change", self.name, more)
        return before

    def _log(self, entry: Quarantined, others: str = "") -> None:
        # Never log the bytes, which may be part of a secret.
        key = one_line(entry.key, longest=MAX_KEY)
        logger.warning("%s: %s is in quarantine until it changes: %s%s", self.name, key, entry.error, others)

    def log_at_sync(self) -> None:
        """Log the objects that are in quarantine when the cache has synced."""
        if self.entries:
            words = in_words(len(self), self.first())
            logger.warning(
                "%s: the cache has synced with %s; %d of them are missing from the cache",
                self.name,
                words,
                self.missing,
            )

    def first(self) -> tuple[Quarantined, ...]:
        """Return the first few objects in quarantine, for messages."""
        return tuple(itertools.islice(self.entries.values(), MAX_NAMED))

    def by_reason(self) -> Mapping[QuarantineReason, int]:
        """Return the number of objects in quarantine for each reason, including reasons without objects."""
        counted = Counter(each.reason for each in self.entries.values())
        return {reason: counted[reason] for reason in QuarantineReason}

    def error_for(self, key: str) -> QuarantinedError:
        """Return the error to raise when the key of an object in quarantine is read."""
        entry = self.entries[key]
        hint = "an earlier state is in the cache (allow_stale=True)" if entry.is_stored else "no earlier state is known"
        shown = quoted(key, longest=MAX_KEY)
        return QuarantinedError(
            f"{self.name} {shown} exists, but its newest state is in quarantine ({entry.reason}): {entry.error}; "
            f"correct the object, or the code that reads it; {hint}",
            key=key,
            reason=str(entry.reason),
            since=entry.since,
        )


def _entry_of(bad: BadObject, known: Quarantined | None, *, is_stored: bool) -> Quarantined:
    since = trio.current_time() if known is None else known.since
    return Quarantined(bad.key, bad.reason, since, one_line(str(bad.error)), is_stored, bad.resource_version)


def _is_new(entry: Quarantined, known: Quarantined | None) -> bool:
    """Return whether to log an entry: the object was good before, or is now bad for another reason."""
    return known is None or (known.reason, known.error) != (entry.reason, entry.error)
