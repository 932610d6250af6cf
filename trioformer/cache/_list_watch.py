"""What a reflector needs of a server: a list and a watch."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar, final

import attrs

from ..client import Api, ObjectList, WatchEvent
from ..models import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)
T_co = TypeVar("T_co", bound=KubernetesObject, covariant=True)


class EventSource(Protocol[T]):
    """An open watch."""

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events, and take all that are complete.

        Raises:
            trio.EndOfChannel: The server has ended the watch.
            ConnectionFailedError: The stream broke.
            StatusError: The server sent an ERROR event.
            DecodeError: The server sent something that is no event.
        """
        ...


class ListWatch(Protocol[T]):
    """Where a reflector reads from; implement it to feed an informer from anything that lists and watches.

    Both may raise `StatusError`, `ConnectionFailedError`, `UnexpectedAnswerError` and `DecodeError`, which a reflector
    goes on from; anything else ends the informer.
    """

    @property
    def name(self) -> str:
        """What is listed, for messages, such as ``Pod``."""
        ...

    async def list(self, *, resource_version: str, page_size: int | None) -> ObjectList[T]:
        """List everything.

        Args:
            resource_version: ``"0"`` for any state, ``""`` for the newest, otherwise at least this one.
            page_size: How many objects a page may hold; None asks for all at once.
        """
        ...

    def watch(self, *, resource_version: str, timeout_seconds: int) -> AbstractAsyncContextManager[EventSource[T]]:
        """Watch for what happens after ``resource_version``, with bookmarks, for at most ``timeout_seconds``."""
        ...


@final
@attrs.frozen
class ApiListWatch(Generic[T]):
    """A list and a watch over an :class:`~trioformer.client.Api`, restricted by selectors."""

    api: Api[T]
    """Kind and namespace."""
    label_selector: str | None = None
    """Only objects whose labels match."""
    field_selector: str | None = None
    """Only objects whose fields match."""

    @property
    def name(self) -> str:
        """The kind, and the namespace when there is one."""
        kind = self.api.resource.kind
        return f"{kind} in namespace {self.api.namespace}" if self.api.namespace else kind

    async def list(self, *, resource_version: str, page_size: int | None) -> ObjectList[T]:
        """List everything that the selectors allow."""
        return await self.api.list(
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            resource_version=resource_version,
            page_size=page_size,
        )

    def watch(self, *, resource_version: str, timeout_seconds: int) -> AbstractAsyncContextManager[EventSource[T]]:
        """Watch what the selectors allow."""
        return self.api.watch(
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            allow_bookmarks=True,
        )
