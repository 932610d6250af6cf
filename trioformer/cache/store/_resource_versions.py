"""The resourceVersion of a cache, and functions that wait until the cache reaches a newer one.

After a write, the cache contains the old state until the watch delivers the new one.
If a program must read its own writes, it waits for the resourceVersion that the write returned.
The resourceVersions of one resource are numbers that increase with every change (KEP-5504).  Only this module compares
resourceVersions, and only while a task waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, final

import attrs
import trio

from ..._text import quoted
from ...errors import DecodeError

MAX_DIGITS: Final = 100
"""The largest number of digits of a resourceVersion.  In etcd, a resourceVersion has at most 19 digits, and Python's
``int()`` rejects more than 4,300 digits."""


def parse_resource_version(resource_version: str) -> int:
    """Return a resourceVersion as a number.

    Raises:
        DecodeError: The resourceVersion is not a number, as on some aggregated API servers, or has more than
            :data:`MAX_DIGITS` digits.
    """
    if not (resource_version.isascii() and resource_version.isdecimal()) or len(resource_version) > MAX_DIGITS:
        shown = quoted(resource_version, longest=MAX_DIGITS)
        raise DecodeError(f"cannot wait for resourceVersion {shown}, because it is not a number")
    return int(resource_version)


@final
@attrs.define(eq=False)
class ResourceVersions:
    """The newest resourceVersion of a cache; a cache of several namespaces has one for each namespace."""

    _newest: dict[str, str]
    _observers: dict[str, Callable[[str], bool]] = attrs.field(factory=dict, init=False)
    """By namespace, a function that is called with each new resourceVersion until it returns False."""
    _leaving: Counter[str] = attrs.field(factory=Counter, init=False)
    """How often a part has been removed whose objects are still in the cache; the part may have been opened again."""
    _advanced: trio.Event | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The cached namespaces, if there are several reflectors; otherwise a tuple with one empty string."""
        return tuple(self._newest)

    def open(self, namespace: str) -> None:
        """Begin with a part of a divided cache, which has not been listed yet."""
        self._newest[namespace] = ""

    def remove(self, namespace: str) -> None:
        """Forget a part of a divided cache, whose objects will be removed, and wake the tasks that wait for it."""
        del self._newest[namespace]
        self._observers.pop(namespace, None)
        self._leaving[namespace] += 1
        self._wake()

    def end_removal(self, namespace: str) -> None:
        """Record that the objects of a removed part are no longer in the cache."""
        self._leaving[namespace] -= 1
        self._leaving = +self._leaving  # without zeros

    def newest(self, namespace: str) -> str:
        """Return the newest resourceVersion of a namespace, or an empty string before the first list."""
        return self._newest[namespace]

    def is_unlisted(self, namespace: str) -> bool:
        """Return whether a part is open and has not been listed."""
        return self._newest.get(namespace) == ""

    def observe(self, namespace: str, on_advance: Callable[[str], bool]) -> None:
        """Call a function with each new resourceVersion of a namespace until it returns False.

        The cache contains the changes up to this version, but no listener has been notified of the last ones.
        """
        self._observers[namespace] = on_advance

    def advance(self, namespace: str, resource_version: str) -> None:
        """Record that the cache has reached ``resource_version``; ignore a namespace that is not in the cache.

        What a removed part had still to apply does not count for the part that was opened after it.
        """
        if self._leaving and self._leaving[namespace]:
            return
        if resource_version and namespace in self._newest:
            self._newest[namespace] = resource_version
            if self._observers:
                self._tell_observer(namespace, resource_version)
            if self._advanced is not None:  # not a call of another function for each event
                self._advanced.set()
                self._advanced = None

    def _wake(self) -> None:
        if self._advanced is not None:
            self._advanced.set()
            self._advanced = None

    def _tell_observer(self, namespace: str, resource_version: str) -> None:
        observer = self._observers.pop(namespace, None)
        if observer is not None and observer(resource_version):
            self._observers[namespace] = observer

    def close(self) -> None:
        """Record that the cache has stopped, and wake the waiting tasks."""
        self._closed = True
        if self._advanced is not None:
            self._advanced.set()

    def has_reached(self, wanted: int, namespaces: Iterable[str]) -> bool:
        """Return whether the cache has reached the resourceVersion ``wanted`` in all these namespaces.

        Raises:
            DecodeError: The resourceVersion of the cache is not a number.
        """
        return all(
            version != "" and parse_resource_version(version) >= wanted
            for version in (self._newest[each] for each in namespaces if each in self._newest)
        )

    async def wait_until_listed(self, namespace: str) -> None:
        """Wait until a part of a divided cache has been listed, or the part or the cache has ended."""
        await trio.lowlevel.checkpoint()
        while self._newest.get(namespace) == "" and not self._closed:
            await self._next_advance()

    async def _next_advance(self) -> None:
        if self._advanced is None:
            self._advanced = trio.Event()
        await self._advanced.wait()

    async def wait_until_at_least(self, resource_version: str, namespaces: Iterable[str]) -> None:
        """Wait until the cache has reached a resourceVersion in all these namespaces.

        Raises:
            DecodeError: The resourceVersion of the write or of the cache is not a number.
            trio.ClosedResourceError: The cache stopped before it reached the resourceVersion.
        """
        wanted, namespaces = parse_resource_version(resource_version), tuple(namespaces)
        await trio.lowlevel.checkpoint()
        while not self.has_reached(wanted, namespaces):
            if self._closed:
                raise trio.ClosedResourceError(
                    f"the cache stopped before it reached resourceVersion {resource_version}"
                )
            await self._next_advance()
