"""The public API: :class:`Shares` says how objects are divided, and with :func:`open_shares`, a replica takes part."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeVar, final

import attrs

from .._surroundings import host_name, new_uuid
from .._util import open_serving_nursery, opened_by
from ..cache import ApiListWatch, SharedInformer, SharedInformerFactory
from ..cache._internal import DividedSource, attach_shares
from ..client import Client
from ..client._internal import open_separate_client
from ..leaderelection import LeaderElectionOptions
from ..models import KubernetesObject, ResourceInfo, resource_of
from ._caches import ShareCaches
from ._kinds import By, KindShare, label_value
from ._ownership import Ownership
from ._ranges import range_of

T = TypeVar("T", bound=KubernetesObject)

MAX_RANGES: Final = 256  # the URL of a request names each of the own ranges
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IDENTITY: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,148}[a-z0-9])?")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


@final
@attrs.frozen
class Shares:
    """How the objects of an operator are divided between its replicas.

    The objects are divided into ranges of hashes.  A Lease decides which replica owns a range: it caches the objects of
    the range, and reconciles them.  All replicas must have the same arguments, except for ``identity``.
    """

    name: str
    """The name of the shares, which begins the names of the Leases: at most 63 lower-case letters, digits and ``-``."""
    ranges: int = 16
    """The number of ranges, at most 256.  A replica owns whole ranges, so use several times as many ranges as
    replicas."""
    by: Literal["namespace", "uid"] = "namespace"
    """What is hashed: the namespace of an object, so that all kinds in a namespace have the same owner, or its uid."""
    namespace: str = attrs.field(default="default", kw_only=True)
    """The namespace of the Leases."""
    whole: Collection[type[KubernetesObject]] = attrs.field(default=(), kw_only=True)
    """The kinds that are not divided: each replica caches all their objects."""
    labels: Mapping[type[KubernetesObject], str] = attrs.field(factory=dict, kw_only=True)
    """The kinds that are divided by a label, and this label.  The owner of an object writes it, with :meth:`label_for`.
    With ``by="uid"``, this is how owned objects follow their owners."""
    identity: str | None = attrs.field(default=None, kw_only=True)
    """The unique identity of this replica, which must be a DNS subdomain.  The default, None, generates an identity
    from the host name and a random part."""
    options: LeaderElectionOptions = attrs.field(factory=LeaderElectionOptions, kw_only=True)
    """The durations of the Leases."""

    def __attrs_post_init__(self) -> None:
        ranges: object = self.ranges
        if isinstance(ranges, bool) or not isinstance(ranges, int) or not 1 <= ranges <= MAX_RANGES:
            raise ValueError(f"ranges must be a number from 1 to {MAX_RANGES}, not {ranges!r}")
        if self.by not in ("namespace", "uid"):
            raise ValueError(f"by must be 'namespace' or 'uid', not {self.by!r}")
        for what, pattern, longest in (("name", _NAME, 63), ("identity", _IDENTITY, 150)):
            text: object = getattr(self, what)
            if text is None and what == "identity":
                continue
            if not isinstance(text, str) or not pattern.fullmatch(text):
                raise ValueError(
                    f"{what} must consist of at most {longest} lower-case letters, digits and '-', not {text!r}"
                )
        if isinstance(self.whole, type) or not isinstance(self.labels, Mapping):
            raise TypeError("whole= must be a list of kinds, and labels= a mapping of kinds to labels")
        if both := {resource_of(each) for each in self.whole} & {resource_of(each) for each in self.labels}:
            raise ValueError(f"{both.pop()} cannot be in both whole= and labels=")

    def label_for(self, kind: type[KubernetesObject], owner: KubernetesObject) -> Mapping[str, str]:
        """Return the label that an object of a kind in ``labels`` must have, to be in the range of its owner.

        Raises:
            ValueError: The kind is not in ``labels``, or the owner was not read from the server.
        """
        if kind not in self.labels:
            raise ValueError(f"{kind.__name__} is not in labels= of Shares")
        text = owner.uid if self.by == "uid" else owner.namespace
        if not text:
            raise ValueError(f"{owner!r} has no {self.by}; pass the object from the cache or from a response")
        return {self.labels[kind]: label_value(range_of(text, self.ranges), self.ranges)}


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
    _whole: set[str]

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
            whole=tuple(sorted(self._whole)),
            mislabelled=sum(each.mislabelled for each in kinds),
        )


@asynccontextmanager
async def prepare_shares(
    client: Client, shares: Shares, factory: SharedInformerFactory, grace: float
) -> AsyncGenerator[OpenShares, None]:
    """Divide the informers of a factory, which has none yet, and yield the shares, which own nothing yet."""
    host = _NOT_IN_NAMES.sub("-", host_name().lower())[:60].strip("-")
    identity = shares.identity or f"{host}-{new_uuid()[:8]}"
    caches = ShareCaches(grace)
    divider = _Divider(shares, caches)
    attach_shares(factory, divider)
    async with open_separate_client(client, purpose="shares") as own:
        ownership = Ownership(
            own,
            shares.name,
            namespace=shares.namespace,
            identity=identity,
            ranges=shares.ranges,
            division=f"{shares.ranges}-by-{shares.by}",
            options=shares.options,
            hold=caches.hold,
        )
        yield OpenShares(shares, identity, ownership, caches, divider.whole)


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


@final
@attrs.define(eq=False)
class _Divider:
    """What divides the informers of a factory."""

    _shares: Shares
    _caches: ShareCaches
    whole: set[str] = attrs.field(factory=set, init=False)
    """The kinds that are not divided."""
    _divided: dict[str, By] = attrs.field(factory=dict, init=False)

    def divide(self, source: ApiListWatch[T] | Mapping[str, ApiListWatch[T]]) -> DividedSource[T] | None:
        """Return the divided source of a new informer, or None if its kind is whole.

        Raises:
            ValueError: The informer cannot be divided.
        """
        shares, plain = self._shares, source if isinstance(source, ApiListWatch) else next(iter(source.values()))
        resource = plain.api.resource
        by = _found(shares.labels, resource)
        if any(resource_of(each) == resource for each in shares.whole):
            self.whole.add(resource.kind)
            return None
        if not isinstance(source, ApiListWatch) or (by is None and shares.by == "namespace" and plain.api.namespace):
            raise ValueError(
                f"{resource} of given namespaces cannot be divided; omit namespace=, or add the kind to whole="
            )
        if by is None and shares.by == "namespace" and not resource.namespaced:
            raise ValueError(
                f"{resource} are cluster-scoped and cannot be divided by namespace; add it to whole=, or use "
                'by="uid" if a controller reconciles it'
            )
        share = KindShare(
            plain, "label" if by else shares.by, shares.ranges, self._caches.held, by or "", self._divided
        )
        if not by:
            self._divided[resource.kind] = shares.by
        return DividedSource(f"{plain.name} in {shares.name}", plain, share, share.select)

    def add(self, informer: SharedInformer[T], source: DividedSource[T]) -> None:
        """Add an informer with a divided source."""
        assert isinstance(source.division, KindShare)  # from divide()
        self._caches.add(informer, source.division)


def _found(labels: Mapping[type[KubernetesObject], str], resource: ResourceInfo) -> str | None:
    return next((label for kind, label in labels.items() if resource_of(kind) == resource), None)
