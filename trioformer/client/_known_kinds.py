"""The kinds that a client can find by name: built-in kinds, and kinds that were discovered on its server."""

from __future__ import annotations

from typing import Final, final

import attrs
import trio

from .._retry import TokenBucket
from ..errors import NotFoundError
from ..models import KubernetesObject, ResourceInfo, Unstructured, resource_of, unstructured_kind
from ..models._internal import builtin_kind, builtin_resources
from ..transport._internal import Transport
from ._api_resources import ApiResources, ResourceName, find_builtin, suggest_names
from ._discover_all import discover_all

__all__ = ["KnownKinds"]

REFRESH_BURST: Final = 10
REFRESH_RATE: Final = 1.0
"""The limit for refreshes that unknown names cause: ``REFRESH_BURST`` at once, and then ``REFRESH_RATE`` per second."""


@final
@attrs.define(eq=False)
class KnownKinds:
    """The resources that one client has discovered.

    The first call to :meth:`look_up` requests the resources of the server. A call with an unknown name requests the
    resources again, because a CustomResourceDefinition with this name may have just been created. A call with a known
    name sends no request.
    """

    _transport: Transport
    _served: ApiResources | None = attrs.field(default=None, init=False)
    _single: dict[tuple[str, str], ResourceInfo] = attrs.field(factory=dict, init=False)
    """The kinds that were discovered one at a time, keyed by apiVersion and kind."""
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _bucket: TokenBucket = attrs.field(factory=lambda: TokenBucket(REFRESH_RATE, REFRESH_BURST), init=False)
    _begun: int = attrs.field(default=0, init=False)
    """The number of refreshes that have begun."""
    _completed: int = attrs.field(default=0, init=False)
    """The sequence number of the last successful refresh, or 0 if no refresh has succeeded."""

    def find(self, text: str) -> type[KubernetesObject]:
        """Return the class of a known kind without sending a request.

        The server's resources take precedence over built-in kinds. Built-in kinds take precedence over kinds that were
        discovered one at a time, so discovering a single kind never changes the meaning of a built-in kind's name.

        Raises:
            LookupError: No kind with this name is known.
            ValueError: The name is not valid.
            TypeError: The name is not a string.
        """
        name = ResourceName.parse(text)
        served = () if self._served is None else self._served.resources
        info = name.find(served) or find_builtin(name) or name.find(self._single.values())
        if info is not None:
            return class_of(info)
        similar = suggest_names(name.name, (*served, *builtin_resources(beta=True), *self._single.values()))
        meant = f"did you mean {similar}? If not, " if similar else "for a custom kind "
        raise LookupError(
            f"{text!r} is neither a built-in kind nor one that this client has discovered; {meant}"
            f"call await client.discover({text!r}) first, or pass its class"
        )

    async def look_up(self, text: str) -> type[KubernetesObject]:
        """Return the class of a kind that the server serves.

        Raises:
            NotFoundError: The server does not serve a kind with this name.
            TrioformerError: The resources could not be discovered; see :func:`discover_all`.
            ValueError: The name is not valid.
            TypeError: The name is not a string.
        """
        name = ResourceName.parse(text)
        if self._served is not None and (info := name.find(self._served.resources)) is not None:
            await trio.lowlevel.checkpoint()
            return class_of(info)
        served = await self.refresh(is_bounded=True)
        info = name.find(served.resources)
        if info is None:
            similar = suggest_names(name.name, served.resources)
            raise _not_found(f"the server has no resource {text!r}", similar, served, f"discover {text}")
        return class_of(info)

    async def check_served(self, kind: type[KubernetesObject]) -> None:
        """Check that the server serves the resource of a class.

        Raises:
            NotFoundError: The server does not serve the resource.
            TrioformerError: The resources could not be discovered; see :func:`discover_all`.
            TypeError: The class is not a Kubernetes kind.
        """
        wanted = resource_of(kind)
        if self._served is not None and _serves(self._served, wanted):
            await trio.lowlevel.checkpoint()
            return
        served = await self.refresh(is_bounded=True)
        if not _serves(served, wanted):
            others = {info.api_version for info in served.resources if _is_same(info, wanted)}
            message = f"the server does not serve {wanted} in {wanted.api_version}"
            raise _not_found(message, " or ".join(sorted(others)), served, f"discover {wanted.kind}")

    async def refresh(self, *, is_bounded: bool = False) -> ApiResources:
        """Request the resources of the server, and return all known resources.

        Concurrent callers share requests: one refresh serves all calls that were made before the refresh began.

        Args:
            is_bounded: Whether the call waits before sending requests if there were many recent refreshes.

        Raises:
            TrioformerError: The resources could not be discovered; see :func:`discover_all`. Known resources are kept.

        Cancellation:
            Known resources are kept.
        """
        wanted = self._begun + 1
        async with self._lock:
            if self._completed >= wanted and self._served is not None:
                return self._served
            if is_bounded and (delay := self._bucket.take()) > 0:
                await trio.sleep(delay)
            self._begun += 1
            self._served = await discover_all(self._transport, self._served)
            self._completed = self._begun
            return self._served

    def remember(self, info: ResourceInfo) -> type[Unstructured]:
        """Remember a kind that was discovered by its apiVersion and name, and return its class."""
        self._single[info.api_version, info.kind] = info
        return unstructured_kind(info)


def class_of(info: ResourceInfo) -> type[KubernetesObject]:
    """Return the class of a built-in kind, or an unstructured class for any other kind."""
    try:
        kind = builtin_kind(info.api_version, info.kind)
    except LookupError:
        return unstructured_kind(info)
    own = resource_of(kind)
    # An aggregated server may serve the kind under another plural or scope.
    return kind if (own.plural, own.namespaced) == (info.plural, info.namespaced) else unstructured_kind(info)


def _serves(served: ApiResources, wanted: ResourceInfo) -> bool:
    return any(_is_same(info, wanted) and info.version == wanted.version for info in served.resources)


def _is_same(info: ResourceInfo, wanted: ResourceInfo) -> bool:
    return (info.group, info.plural, info.kind) == (wanted.group, wanted.plural, wanted.kind)


def _not_found(message: str, similar: str, served: ApiResources, where: str) -> NotFoundError:
    meant = f"; did you mean {similar}?" if similar else ""
    failed = f"; could not search {', '.join(served.failures)}" if served.failures else ""
    return NotFoundError(f"{message}{meant}{failed}", code=404, reason="NotFound", where=where)
