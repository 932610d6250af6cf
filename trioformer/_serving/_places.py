"""How many connections a server has, and which one has to give way to a new one.

A connection that waits for a request, for the rest of its head, or for its client to read the response costs a file
descriptor and does no work: when no place is free, the one that has waited longest is closed.
Clients that keep many idle connections, send heads byte by byte, or do not read therefore cannot keep others out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import attrs
import trio


@final
@attrs.define(eq=False)
class Places:
    """The places of one server's connections."""

    limit: int
    """How many connections there may be."""
    _used: int = attrs.field(default=0, init=False)
    _waiting: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """The connections that wait for their clients, the one that began first in front."""
    _released: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    async def take(self) -> None:
        """Take a place for a new connection; :meth:`release` has to follow.

        Cancellation:
            No place is taken.
        """
        while self._used >= self.limit:
            self.close_one()
            await self._released.park()
        self._used += 1

    def release(self) -> None:
        """Release a place."""
        self._used -= 1
        self._released.unpark()

    def close_one(self) -> None:
        """Close the connection that has waited longest for its client, if one waits."""
        for scope in self._waiting:
            del self._waiting[scope]
            scope.cancel()
            return

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[trio.CancelScope]:
        """Wait for the client in the block; cancels it after the time, or when another connection needs the place."""
        with trio.move_on_after(seconds) as scope:
            self._waiting[scope] = None
            try:
                yield scope
            finally:
                self._waiting.pop(scope, None)
