"""The source that a reflector reads from: a list and a watch."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar, final

import attrs
import trio

from ...client import Api, ObjectList, WatchEvent
from ...client._internal import UndecodableHandler, without_retries
from ...models import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)


class EventSource(Protocol[T]):
    """An open watch."""

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events, and return all complete ones; an empty list if only undecodable events arrived.

        Raises:
            trio.EndOfChannel: The server ended the watch.
            ConnectionFailedError: The connection broke.
            StatusError: The server sent an ERROR event.
            DecodeError: The server sent an undecodable frame.
        """
        ...


class ListWatch(Protocol[T]):
    """The source of a reflector: subclass it to feed an informer from anything that lists and watches.

    Only :meth:`list` and :meth:`watch` are required.
    The reflector retries after a `StatusError`, `ConnectionFailedError`, `UnexpectedResponseError` or `DecodeError`;
    any other exception ends the informer.
    """

    @property
    def name(self) -> str:
        """The name of the listed objects, for messages, such as ``Pod``; by default the name of the class."""
        return type(self).__name__

    @property
    def kind(self) -> type[T] | None:
        """The class of all objects; an object of another class is an error.  None, the default, permits any class."""
        return None

    @property
    def supports_watch_list(self) -> bool:
        """Whether :meth:`watch` supports ``send_initial_events`` and sends a bookmark about once a minute."""
        return False

    @abstractmethod
    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[T]:
        """List all objects.

        Args:
            resource_version: ``"0"`` for any state, ``""`` for the newest, otherwise at least this one.
            page_size: The largest number of objects in a page; None requests all objects in one page.
            on_undecodable: Called with each undecodable object instead of raising; raises if the object has no key.
        """
        ...

    async def wait_to_retry(self, until: float) -> None:
        """Wait before another request after the connection failed; by default, ``trio.sleep_until(until)``.

        It may return earlier if the server is known to be reachable again, and later to spread the requests of many
        reflectors.

        Args:
            until: The planned time of the request, on trio's clock.
        """
        await trio.sleep_until(until)

    async def check(self, *, resource_version: str) -> None:
        """Check as cheaply as possible that the server has reached ``resource_version``; by default, do nothing.

        A server that was restored from a backup accepts a watch from a version that it has not reached yet, but sends
        no events until it reaches it.

        Raises:
            StatusError: The server has not reached the version: it is too large.
        """
        await trio.lowlevel.checkpoint()

    @abstractmethod
    def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AbstractAsyncContextManager[EventSource[T]]:
        """Watch the changes after ``resource_version``, with bookmarks.

        Args:
            resource_version: The version after which the events begin.
            timeout_seconds: Seconds after which the server should end the watch.
            send_initial_events: Begin with all objects, in a state that is not older than ``resource_version``,
                followed by a bookmark with the annotation ``k8s.io/initial-events-end: "true"``.
            on_undecodable: Called with each undecodable event instead of raising: after ``receive_batch`` has returned
                all earlier events, and before it returns a later one.  Raises if the object has no key.
        """
        ...


@final
@attrs.frozen
class ApiListWatch(Generic[T]):
    """Lists and watches an :class:`~trioformer.client.Api`, restricted by selectors."""

    api: Api[T]
    """The kind and namespace to list and watch."""
    label_selector: str | None = None
    """Only objects whose labels match."""
    field_selector: str | None = None
    """Only objects whose fields match."""
    _api: Api[T] = attrs.field(
        default=attrs.Factory(lambda self: without_retries(self.api), takes_self=True), init=False, repr=False, eq=False
    )
    """The same API without retries: the reflector decides when to repeat a request."""

    @property
    def name(self) -> str:
        """The kind, with the namespace and the selectors, if there are any."""
        words = [self.api.resource.kind]
        if self.api.namespace:
            words.append(f"in namespace {self.api.namespace}")
        if restrictions := [each for each in (self.label_selector, self.field_selector) if each]:
            words.append(f"with {' and '.join(restrictions)}")
        return " ".join(words)

    @property
    def kind(self) -> type[T]:
        """The API's kind."""
        return self.api.kind

    @property
    def supports_watch_list(self) -> bool:
        """True; the reflector falls back to a list if the server does not support it."""
        return True

    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[T]:
        """List all objects that match the selectors."""
        return await self._api.list(
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            resource_version=resource_version,
            page_size=page_size,
            on_undecodable=on_undecodable,
        )

    async def wait_to_retry(self, until: float) -> None:
        """Wait in turn with all other retries of the same client."""
        await self.api.wait_to_retry(until)

    async def check(self, *, resource_version: str) -> None:
        """List at most one object that matches the selectors, in a state not older than ``resource_version``."""
        await self._api.check_resource_version(
            resource_version, label_selector=self.label_selector, field_selector=self.field_selector
        )

    def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        send_initial_events: bool,
        on_undecodable: UndecodableHandler,
    ) -> AbstractAsyncContextManager[EventSource[T]]:
        """Watch the objects that match the selectors."""
        return self._api.watch(
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            allow_bookmarks=True,
            send_initial_events=True if send_initial_events else None,
            resumable=True,
            on_undecodable=on_undecodable,
        )
