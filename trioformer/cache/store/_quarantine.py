"""The quarantine: the keys of the objects whose newest state the cache cannot take, and why.

The problem: one object that does not decode, or on which the program's transform or index function fails, must neither
end the informer, nor hold up the other objects, nor look as if it had been deleted.
So the cache keeps the state that it had before, if it had one, and marks the key.
A read of the key raises :class:`~trioformer.errors.QuarantinedError` instead of returning an old state or nothing.

A good state, a deletion, or a list that lacks the key removes the mark: the object is tried again whenever it changes,
and with every list.
Objects whose key is not known either are one entry under the empty key.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, final

import attrs
import trio

from ..._text import one_line, quoted
from ...errors import DecodeError, QuarantinedError
from ...models import KubernetesObject, key_of
from ...models._internal import find_undecodable
from .._bad_objects import MAX_KEY, MAX_NAMED, BadObject, Quarantined, QuarantineReason, in_words

logger = logging.getLogger("trioformer.cache")

MAX_REMEMBERED = 1_000
"""How many marks and warnings about listeners are remembered, so as not to repeat them."""
WARNING_PERIOD = 600.0
"""Seconds after which a warning that is still true is repeated."""


@final
@attrs.define(eq=False)
class Quarantine:
    """The objects in quarantine, by key; written by the process loop, and by listeners through the informer.

    Args:
        name: What is cached, for the log.
    """

    name: str = ""
    entries: dict[str, Quarantined] = attrs.field(factory=dict, init=False)
    """By key, in the order in which they came."""
    before: dict[str, Quarantined] = attrs.field(factory=dict, init=False)
    """By key, the marks of listeners that ended when another state came that does not decode."""
    _warned: dict[tuple[str, str], tuple[str, float]] = attrs.field(factory=dict, init=False)
    """The text and the time of the last warning, by listener and key."""

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def missing(self) -> int:
        """How many of the objects have no state in the cache."""
        return sum(not each.is_stored for each in self.entries.values())

    def add(self, bad: BadObject, *, is_stored: bool) -> None:
        """Mark a key, or renew its mark."""
        known = self.entries.get(bad.key)
        if known is not None and known.reason is QuarantineReason.LISTENER_FAILED:
            # The same state: a good copy of it would not be tried again, and must not remove the mark.
            is_same = known.resource_version == bad.resource_version != ""
            if is_same:
                return
        known = known or self.before.pop(bad.key, None)
        error = one_line(str(bad.error))
        since = trio.current_time() if known is None else known.since
        self.entries[bad.key] = Quarantined(bad.key, bad.reason, since, error, is_stored, bad.resource_version)
        if known is None or (known.reason, known.error) != (bad.reason, error):
            what = one_line(bad.key, longest=MAX_KEY) or "an object without a key"
            # Never its bytes: they may be those of a secret.
            logger.warning("%s: %s is in quarantine until it changes: %s", self.name, what, error)

    def clear(self, obj: KubernetesObject) -> None:
        """Remove the mark of an object, since the cache has taken this state of it.

        The mark of a listener stays until another state arrives: nobody has tried this one again.
        If that does not decode either, the listener will say so, and renew the mark.
        """
        key = key_of(obj)
        known = self.entries.get(key) or self.before.get(key)
        if known is None:
            return
        if known.reason is not QuarantineReason.LISTENER_FAILED:
            del self.entries[key]
        elif not (known.resource_version == obj.resource_version != ""):
            self.discard(key)
            if find_undecodable(obj) is not None:
                self.before[key] = known
                forget_oldest(self.before)

    def add_unless_good(self, obj: KubernetesObject, error: Exception, listener: str, *, is_newest: bool) -> None:
        """Mark an object that a listener has failed on, if the error is one of its newest state; otherwise, log it."""
        key = key_of(obj)
        if key in self.entries:
            return
        found = find_undecodable(obj) if is_newest and isinstance(error, DecodeError) else None
        if found is None:
            self._warn(listener, key, error)
        else:
            self.add(BadObject(key, QuarantineReason.LISTENER_FAILED, found, obj.resource_version), is_stored=True)

    def _warn(self, listener: str, key: str, error: Exception) -> None:
        """Log that a listener has failed on an object that is not put in quarantine; not with every event."""
        text, now = one_line(str(error)), trio.current_time()
        before, at = self._warned.pop((listener, key), ("", 0.0))
        is_known = before == text and now - at < WARNING_PERIOD
        self._warned[listener, key] = (text, at if is_known else now)
        forget_oldest(self._warned)
        if not is_known:
            shown = one_line(key, longest=MAX_KEY)
            logger.warning("%s failed on %s, which is not put in quarantine: %s", listener, shown, text)

    def discard(self, key: str) -> None:
        """Remove the mark of a key, since the object is gone."""
        self.entries.pop(key, None)
        self.before.pop(key, None)

    def renew(
        self,
        namespace: str,
        bad: Mapping[str, BadObject],
        listed: Mapping[str, KubernetesObject],
        stored: Callable[[str], KubernetesObject | None],
    ) -> None:
        """Renew the marks of a namespace after a list of it has been stored.

        Args:
            namespace: The listed namespace; empty for all.
            bad: The objects of the list that the cache could not take.
            listed: All objects of the list that could be decoded and transformed.
            stored: Returns the state in the cache.
        """
        prefix = f"{namespace}/" if namespace else ""
        for key in [key for key in (*self.entries, *self.before) if key.startswith(prefix) and key not in bad]:
            if (obj := listed.get(key)) is None:
                self.discard(key)
            else:
                self.clear(obj)
        for each in bad.values():
            self.add(each, is_stored=stored(each.key) is not None)

    def log_at_sync(self) -> None:
        """Log what a cache that has just synced lacks."""
        if self.entries:
            words = in_words(len(self), self.first())
            logger.warning(
                "%s: the cache has synced with %s; %d of them are missing in it", self.name, words, self.missing
            )

    def first(self) -> tuple[Quarantined, ...]:
        """Return the first few objects, to name them."""
        return tuple(itertools.islice(self.entries.values(), MAX_NAMED))

    def by_reason(self) -> Mapping[QuarantineReason, int]:
        """Count the objects by reason; every reason has a count."""
        counted = Counter(each.reason for each in self.entries.values())
        return {reason: counted[reason] for reason in QuarantineReason}

    def error_for(self, key: str) -> QuarantinedError:
        """Make the error for reading a key that is in quarantine."""
        entry = self.entries[key]
        if entry.reason is QuarantineReason.LISTENER_FAILED:
            hint = "this state is in the cache (allow_stale=True)"
        elif entry.is_stored:
            hint = "an earlier state is in the cache (allow_stale=True)"
        else:
            hint = "no earlier state is known"
        shown = quoted(key, longest=MAX_KEY)
        return QuarantinedError(
            f"{self.name} {shown} exists, but its newest state is in quarantine ({entry.reason}): {entry.error}; "
            f"correct the object, or the code that reads it; {hint}",
            key=key,
            reason=str(entry.reason),
            since=entry.since,
        )


def forget_oldest(remembered: dict[Any, Any]) -> None:
    """Keep a dict within its bound."""
    if len(remembered) > MAX_REMEMBERED:
        del remembered[next(iter(remembered))]
