"""The part of one replica in shares: :func:`open_shares`."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final, final

import attrs

from .._surroundings import host_name, new_uuid
from .._util import open_serving_nursery, opened_by
from ..cache import SharedInformerFactory
from ..cache._internal import attach_shares
from ..client import Client
from ..client._internal import open_separate_client
from ._caches import ShareCaches
from ._ownership import Ownership
from ._shares import Shares

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


@final
@attrs.frozen(kw_only=True)
class SharesState:
    """The state of the shares, as one replica sees it."""

    identity: str
    """The identity of this replica."""
    own: Mapping[int, str]
    """The ranges that this replica owns, and for each of them ``listing``, ``ready`` or ``releasing``."""
    owners: Mapping[int, str]
    """The owner of each range that has one."""
    members: Collection[str]
    """The live replicas."""
    moves: int
    """How often this replica has become the owner of a range."""
    waits_for: str
    """A replica with other ranges that this one waits for, or an empty string."""
    filtered_by_server: Mapping[str, bool | None]
    """For each divided kind, whether the server confirmed that it sends only the ranges that were asked for.  None if
    it has not been listed, or is divided by a label.  If the value is False, other objects are dropped here."""
    whole: Collection[str]
    """The cached kinds that are not divided."""
    mislabelled: int
    """The number of objects whose label names another range than that of their owner."""

    def __str__(self) -> str:
        return f"{self.identity} owns {len(self.own)} ranges; {len(self.members)} replicas, {self.moves} moves"


@final
@attrs.define(eq=False, repr=False)
class OpenShares:
    """The part of one replica in the shares, from :func:`open_shares`."""

    shares: Shares
    """How the objects are divided."""
    identity: str
    """The identity of this replica."""
    ownership: Ownership
    """What owns the ranges; it is run by :func:`open_shares` or by the manager."""
    _caches: ShareCaches

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state}>"

    @property
    def state(self) -> SharesState:
        """A snapshot of the owners, the members and the caches."""
        ownership, kinds = self.ownership, self._caches.kinds
        return SharesState(
            identity=self.identity,
            own={number: held.state.value for number, held in sorted(self._caches.held.items())},
            owners=ownership.owners,
            members=tuple(sorted(ownership.members)),
            moves=ownership.moves,
            waits_for=ownership.waits_for,
            filtered_by_server={str(each.resource): each.is_filtered for each in kinds},
            whole=tuple(sorted(self._caches.whole)),
            mislabelled=sum(len(each.mislabelled) for each in kinds),
        )


@asynccontextmanager
async def prepare_shares(
    client: Client, shares: Shares, factory: SharedInformerFactory, grace: float
) -> AsyncGenerator[OpenShares, None]:
    """Divide the informers of a factory, which has none yet, and yield the shares, which own nothing yet."""
    host = _NOT_IN_NAMES.sub("-", host_name().lower())[:60].strip("-")
    identity = shares.identity or f"{host}-{new_uuid()[:8]}"
    caches = ShareCaches(shares, grace)
    attach_shares(factory, caches)
    async with open_separate_client(client, purpose="shares") as own:
        yield OpenShares(shares, identity, Ownership(own, shares, identity, caches.hold), caches)


@opened_by("shares", "async with open_shares(client, shares, factory) as opened:")
async def open_shares(
    client: Client, shares: Shares, factory: SharedInformerFactory, *, grace: float = 30.0
) -> AsyncGenerator[OpenShares, None]:
    """Take part in shares during an ``async with`` block.

    The informers of the factory then cache only the ranges that this replica owns, and controllers that watch them
    reconcile only these objects.  `run_controllers` does this with ``shares=``.

    Args:
        client: The client, which must stay open during the block.
        shares: How the objects are divided.
        factory: The factory, which has no informers yet.  It must run until the block has ended.
        grace: How long the calls to ``reconcile`` in a range may take to end when the range is given up, in seconds.

    Raises:
        RuntimeError: The factory already has informers.
        ExceptionGroup: The Leases could not be listed, because all responses were permanent errors.

    Cancellation: at the end of the block, all ranges are given up: their calls to ``reconcile`` finish within ``grace``
        seconds.  If the block is cancelled, they are cancelled.
    """
    async with prepare_shares(client, shares, factory, grace) as opened, open_serving_nursery() as nursery:
        await nursery.start(opened.ownership.run)
        yield opened
        await opened.ownership.leave()
