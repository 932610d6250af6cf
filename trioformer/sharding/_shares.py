"""How the objects of an operator are divided: :class:`Shares`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal, final

import attrs

from ..leaderelection import LeaderElectionOptions
from ..models import KubernetesObject, resource_of
from ._kinds import label_value
from ._ranges import range_of

MAX_RANGES: Final = 256  # the URL of a request names each of the own ranges
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IDENTITY: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,148}[a-z0-9])?")


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
    """The durations of the Leases.  ``on_new_leader`` is not used."""

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
