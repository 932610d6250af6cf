"""How new a cache is, and who waits for it to be newer.

After a write, a cache shows the old state until its watch has brought the new one.
A reader that must see its own writes waits for the resourceVersion that the write returned.
Versions of one resource are numbers that grow with every change (KEP-5504); they are compared only here, and only
when somebody waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import attrs
import trio


def as_number(resource_version: str) -> int:
    """Read a resourceVersion as the number that it is on every Kubernetes API server.

    Raises:
        ValueError: It is none, as an aggregated server may have it.
    """
    if not (resource_version.isascii() and resource_version.isdecimal()):
        raise ValueError(f"resourceVersion {resource_version!r} is no number, so it cannot be waited for")
    return int(resource_version)


@final
@attrs.define(eq=False)
class Versions:
    """The newest resourceVersion that a cache holds: one, or one for each of several namespaces."""

    _reached: dict[str, str]
    _moved: trio.Event | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that the cache is made of; one empty string when it is not made of several."""
        return tuple(self._reached)

    def advance(self, namespace: str, resource_version: str) -> None:
        """Note that the cache holds the state of ``resource_version``; a namespace that it does not have is ignored."""
        if resource_version and namespace in self._reached:
            self._reached[namespace] = resource_version
            if self._moved is not None:
                self._moved.set()
                self._moved = None

    def close(self) -> None:
        """Note that the cache will not become newer."""
        self._closed = True
        if self._moved is not None:
            self._moved.set()

    def has_reached(self, wanted: int, namespaces: Iterable[str]) -> bool:
        """Whether the cache is at least as new as ``wanted``.

        Raises:
            ValueError: The cache's own version is no number.
        """
        return all(
            version != "" and as_number(version) >= wanted for version in map(self._reached.__getitem__, namespaces)
        )

    async def wait_until_at_least(self, resource_version: str, namespaces: Iterable[str]) -> None:
        """Wait until the cache is at least as new.

        Raises:
            ValueError: A version is no number.
            trio.ClosedResourceError: The cache stops before.
        """
        wanted, namespaces = as_number(resource_version), tuple(namespaces)
        await trio.lowlevel.checkpoint()
        while not self.has_reached(wanted, namespaces):
            if self._closed:
                raise trio.ClosedResourceError(f"the cache stopped before it had reached {resource_version}")
            if self._moved is None:
                self._moved = trio.Event()
            await self._moved.wait()
