"""A record of the writes of a task, for a caller such as a controller that calls ``reconcile``.

Tasks that the task starts inherit the observer.  The caches of a client register here, so that the caller can wait
until they show a write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol, final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import attrs

if TYPE_CHECKING:
    from ..models import ResourceInfo
    from ..transport._internal import Transport

confirms_write: Final[ContextVar[bool]] = ContextVar("confirms_write", default=False)
"""Whether the current task reads what has become of a write, and goes on if it may not read it."""


@final
@attrs.frozen(kw_only=True)
class Write:
    """A request for a change of one object, and its outcome."""

    at: float
    """When the response arrived or the request failed, on trio's clock in seconds."""
    method: str
    """The HTTP method."""
    path: str
    """The path of the URL, such as ``/api/v1/namespaces/default/pods/web/status``."""
    code: int | None
    """The HTTP code of the response, or None if no response arrived, so that the outcome is unknown."""
    uid: str = ""
    """The uid of the object in the response.  Empty if the response contains no object."""
    resource_version: str = ""
    """The resourceVersion of the object in the response.  Empty if the response contains no object."""


@final
@attrs.define(eq=False)
class WrittenObject:
    """The object of a write, with what is necessary to find the caches that will show the write."""

    write: Write
    resource: ResourceInfo
    """The resource of the object; for a subresource, that of its parent."""
    body: bytes
    """The response, which is empty if it does not contain an object."""
    caches: tuple[WrittenCache, ...]
    """The running caches of the same client and resource."""
    _read_version: Callable[[str, str], Awaitable[str]]
    is_clear: bool
    """Whether the response says whether the write was carried out."""
    _new_name: str = attrs.field(alias="new_name")
    """The name in the response or the request, for a new object."""
    namespace: str = attrs.field(init=False)
    """The namespace, or an empty string for a cluster-scoped object."""
    name: str = attrs.field(init=False)
    """The name, which is empty for a collection, and for a new object if it is not known."""
    subresource: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        parts = [unquote(part) for part in self.write.path.split("/")][4 if self.resource.group else 3 :]
        is_in_namespace = self.resource.namespaced and parts[0] == "namespaces"
        self.namespace = parts[1] if is_in_namespace else ""
        self.name, self.subresource = [*parts[3 if is_in_namespace else 1 :], "", ""][:2]
        self.name = self.name or self._new_name

    async def read_version(self) -> str:
        """Read a resourceVersion that a cache must reach to show the write, if it was carried out.

        This is the version of the object, or ``0`` if the object does not exist.  If the server chooses the name of the
        object, it is the version of the resource, which a cache reaches at its next event or bookmark.
        """
        token = confirms_write.set(True)
        try:
            return await self._read_version(self.name, self.namespace)
        finally:
            confirms_write.reset(token)

    @property
    def key(self) -> str:
        """``namespace/name``, or only the name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def removes(self) -> bool:
        """Whether the write deletes the object, or asks for its deletion."""
        if self.write.method == "DELETE":
            return bool(self.name) and not self.subresource
        return self.subresource == "eviction"


class WrittenCache(Protocol):
    """A cache of a client, which shows the client's writes after some time."""

    def call_when_shown(self, written: WrittenObject, version: str, shown: Callable[[bool], None]) -> bool:
        """Call a function once, as soon as the cache shows a write, or will never show it.

        The argument of the function is False if the cache contains a later state without the written object, and True
        otherwise.  If the object was new, no event of the cache has reported it.

        Args:
            written: The write.
            version: The resourceVersion of the write, or ``0`` if the write has removed the object.
            shown: The function, which must be fast and must not raise an exception.

        Returns:
            False if the cache shows the write already, does not contain such objects, or cannot compare the version.
            Nothing is called then.
        """
        ...


_CACHES: Final[WeakKeyDictionary[object, dict[tuple[str, str], dict[WrittenCache, None]]]] = WeakKeyDictionary()


def caches_of(transport: Transport, resource: ResourceInfo) -> dict[WrittenCache, None]:
    """Return the running caches of a client for a resource in any version.  A cache adds and removes itself."""
    # The health of the server is what the client has in common with its copies that impersonate users.
    return _CACHES.setdefault(transport.health, {}).setdefault((resource.group, resource.plural), {})


def written_caches(api: Any) -> dict[WrittenCache, None]:
    """Return the caches of an :class:`Api`, as :func:`caches_of` does."""
    return caches_of(api._requests.transport, api.resource)


write_observer: Final[ContextVar[Callable[[WrittenObject], None] | None]] = ContextVar("write_observer", default=None)
"""The function that is called after each write of the current task."""
