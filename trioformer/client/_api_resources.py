"""The resources that a server serves, and their lookup by the names that kubectl accepts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, final

import attrs

from .._suggestions import describe
from .._text import quoted
from ..models import ResourceInfo
from ..models._internal import EMPTY_MAP, builtin_resources, is_label, is_subdomain

__all__ = ["ApiResources", "ResourceName", "find_builtin", "suggest_names"]

_MAX_COMPARED: Final = 2_000
"""The maximum number of names to compare for a suggestion, which takes at most 20 ms."""


@final
@attrs.frozen
class _Meaning:
    """One possible meaning of a name.

    For example, ``deployments.v1.apps`` may mean the version v1 of the group ``apps``, or the group ``v1.apps``.
    """

    version: str | None
    group: str | None

    def matches(self, info: ResourceInfo, *, is_exact: bool) -> bool:
        if self.version not in (None, info.version):
            return False
        if self.group is None or info.group == self.group:
            return True
        return not is_exact and self.group != "" and info.group.startswith(self.group)


@final
@attrs.frozen
class ResourceName:
    """A name of a resource, such as ``deploy``, ``Deployment``, ``deployments.apps`` or ``deployments.v1.apps``."""

    text: str
    """The whole name, unchanged."""
    name: str
    """The first part of the name in lower case: a plural, a singular, a kind or a short name."""
    _meanings: tuple[_Meaning, ...]

    @classmethod
    def parse(cls, text: str) -> ResourceName:
        """Parse the name of a resource.

        Raises:
            ValueError: The name is not valid.
            TypeError: The name is not a string.
        """
        if not isinstance(text, str):
            raise TypeError(f"the name of a kind must be a string, not {describe(text)}")
        name, dot, rest = text.partition(".")
        version, _, group = rest.partition(".")
        meanings = []
        if is_label(version) and "." in rest and (not group or is_subdomain(group)):
            meanings.append(_Meaning(version, group))  # "pods.v1." means the core group
        if not dot or is_subdomain(rest):
            meanings.append(_Meaning(None, rest if dot else None))
        if not meanings or not is_label(name.lower()):
            hint = "for an apiVersion and a kind, write await client.discover('apps/v1', 'Deployment')"
            raise ValueError(
                f"the name of a kind must be one that kubectl accepts, such as deploy, not {quoted(text)}; {hint}"
            )
        return cls(text, name.lower(), tuple(meanings))

    def find(self, resources: Iterable[ResourceInfo]) -> ResourceInfo | None:
        """Return the best match among the given resources, or None if no resource matches.

        The best match is chosen with these rules:

        - A version in the name is preferred to a group that looks like a version.
        - A full group name is preferred to the beginning of one (``leases.coordination``).
        - A plural is preferred to a singular or a kind.
        - A singular or a kind is preferred to a short name.
        """
        named = [info for info in resources if _rank(info, self.name) is not None]
        for meaning in self._meanings:
            for is_exact in (True, False):
                found = [info for info in named if meaning.matches(info, is_exact=is_exact)]
                if found:
                    return min(found, key=lambda info: _rank(info, self.name) or 0)  # the first of the best matches
        return None

    def __str__(self) -> str:
        return self.text


def _rank(info: ResourceInfo, name: str) -> int | None:
    if name == info.plural:
        return 0
    if name in (info.singular, info.kind.lower()):
        return 1
    return 2 if name in info.short_names else None


def suggest_names(name: str, resources: Iterable[ResourceInfo]) -> str:
    """Return up to three similar plural names for an error message, or an empty string if there are none."""
    plurals = list(dict.fromkeys(info.plural for info in resources))[:_MAX_COMPARED]
    import difflib  # noqa: PLC0415  # imported only after a mistake, to keep the start of programs fast

    return " or ".join(difflib.get_close_matches(name, plurals, n=3, cutoff=0.75))


@final
@attrs.frozen(kw_only=True, repr=False)
class ApiResources:
    """The resources that a server serves, as returned by :meth:`Client.api_resources`.

    Iterating over this object yields the resources in :attr:`preferred`::

        for resource in await client.api_resources():
            print(resource.plural, resource.api_version, resource.kind)

    The order is the same as in kubectl's RESTMapper.  The resources of each group's preferred version come first.  The
    core group comes first, and the other groups follow in the server's order.
    """

    resources: tuple[ResourceInfo, ...]
    """All resources, in all versions that the server serves."""
    failures: Mapping[str, str] = EMPTY_MAP
    """The failures of the discovery, as a mapping of a group and version, such as ``metrics.k8s.io/v1beta1``, to a
    reason.

    The resources of such a version may be missing or out of date.  If the client or the server knows the resources from
    the last successful request, these are kept.
    """

    @property
    def preferred(self) -> tuple[ResourceInfo, ...]:
        """Each resource once, in the first version that serves the resource.

        The first version of a group is its preferred version.
        """
        first: dict[tuple[str, str], ResourceInfo] = {}
        for info in self.resources:
            first.setdefault((info.group, info.plural), info)
        return tuple(first.values())

    def find(self, name: str) -> ResourceInfo | None:
        """Return the resource with the given name, or None if no resource has this name.

        If several resources have the name, as for ``events``, the first one is returned.

        Args:
            name: A name that kubectl accepts: a plural, singular, kind or short name, in upper or lower case.  The name
                may include a version, and a group or the beginning of a group's name.  Examples are ``deploy``,
                ``deployments.apps``, ``deployments.v1.apps`` and ``Lease.coordination``.

        Raises:
            ValueError: The name is not valid.
            TypeError: The name is not a string.
        """
        return ResourceName.parse(name).find(self.resources)

    def __iter__(self) -> Iterator[ResourceInfo]:
        return iter(self.preferred)

    def __len__(self) -> int:
        return len(self.preferred)

    def __repr__(self) -> str:
        failed = f", without {', '.join(self.failures)}" if self.failures else ""
        return f"<{type(self).__name__}: {len(self)}{failed}>"


def find_builtin(name: ResourceName) -> ResourceInfo | None:
    """Return the built-in resource with the given name, or None if no built-in resource has this name.

    As on a server, the newest stable version is preferred to beta versions.
    """
    return name.find(_builtin_in_order())


@functools.cache
def _builtin_in_order() -> tuple[ResourceInfo, ...]:
    stable = builtin_resources()
    beta = builtin_resources(beta=True)[len(stable) :]
    # The core group is the first in the table; no two other groups have a name in common.
    in_order = sorted(stable, key=lambda info: (info.group, -int(info.version.removeprefix("v"))))
    return (*in_order, *beta)
