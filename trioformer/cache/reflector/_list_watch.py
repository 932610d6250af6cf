"""The source from which a reflector lists and watches objects."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, Protocol, TypeVar, final

import attrs
import trio

from ...client import Api, ObjectList, WatchEvent
from ...client._internal import UndecodableHandler, without_retries
from ...models import FrozenMap, KubernetesObject
from ...models._internal import EMPTY_MAP

T = TypeVar("T", bound=KubernetesObject)


_SELECTORS: Final = {"labelSelector": "label_selector", "fieldSelector": "field_selector"}
_OWNED: Final = frozenset({
    "allowWatchBookmarks", "continue", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
    "timeoutSeconds", "watch",
})  # fmt: skip
"""The query parameters that a reflector sets itself."""


def checked_query(query: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return a sorted and read-only copy of further query parameters.

    Raises:
        TypeError: The query is not a mapping of strings to strings.
        ValueError: The reflector sets one of these parameters itself.
    """
    given: object = {} if query is None else query
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for item in given.items() for each in item):
        raise TypeError("query must be a mapping of strings to strings, such as {'shardSelector': '…'}")
    for name in query or ():
        if name in _SELECTORS:
            raise ValueError(f"query= must not contain {name!r}; pass {_SELECTORS[name]}= instead")
        if name in _OWNED:
            raise ValueError(f"query= must not contain {name!r}, because the informer sets this parameter itself")
    return FrozenMap(sorted((query or {}).items()))


def restrictions_of(label_selector: str | None, field_selector: str | None, query: Mapping[str, str]) -> str:
    """Return the selectors and the query as text, for messages."""
    return " and ".join(text for text in (label_selector, field_selector, *map("=".join, query.items())) if text)


class ListAgain(Exception):  # noqa: N818  # it is a request
    """Raised by :meth:`ListWatch.watch`, because the source selects other objects now.

    The reflector then lists immediately.
    """


class EventSource(Protocol[T]):
    """An open watch, from which a reflector receives events."""

    async def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events and return them; return an empty list if only undecodable events arrived.

        Raises:
            trio.EndOfChannel: If the server has ended the watch.
            ConnectionFailedError: The connection broke.
            StatusError: The server sent an ERROR event.
            DecodeError: The server sent an undecodable frame.
        """
        ...


class ListWatch(Protocol[T]):
    """The base class of sources for a reflector.

    Subclass it to fill an informer from a source other than an API server. A subclass must implement only :meth:`list`
    and :meth:`watch`. The reflector retries after a `StatusError`, `ConnectionFailedError`, `UnexpectedResponseError`
    or `DecodeError`. All other exceptions end the informer.
    """

    @property
    def name(self) -> str:
        """A name of the objects for messages, such as ``Pod``.  The default is the name of the source's class."""
        return type(self).__name__

    @property
    def kind(self) -> type[T] | None:
        """The class of all objects. The default, None, permits objects of any class."""
        return None

    @property
    def supports_watch_list(self) -> bool:
        """Whether :meth:`watch` supports ``send_initial_events`` and sends bookmarks about once a minute."""
        return False

    @abstractmethod
    async def list(
        self, *, resource_version: str, page_size: int | None, on_undecodable: UndecodableHandler
    ) -> ObjectList[T]:
        """List all objects.

        Args:
            resource_version: The oldest acceptable resourceVersion of the list.  ``"0"`` requests any state, and
                ``""`` requests the newest state.
            page_size: The largest number of objects in a page, or None to request all objects in one page.
            on_undecodable: A function to call with each undecodable object, instead of raising an exception.  The
                function itself raises an exception if the object has no key.
        """
        ...

    async def wait_to_retry(self, until: float) -> None:
        """Wait before the next request after a connection has failed; by default, call ``trio.sleep_until(until)``.

        A subclass may return earlier if the server is reachable again, or later to spread the requests of many
        reflectors.

        Args:
            until: The time for which the request is planned, on trio's clock.
        """
        await trio.sleep_until(until)

    async def check(self, *, resource_version: str) -> None:
        """Check with a cheap request that the server has reached ``resource_version``; by default, do nothing.

        After a server is restored from a backup, it accepts a watch from a resourceVersion that it has not reached
        yet. It sends no events until it reaches this version.

        Raises:
            StatusError: The server has not reached ``resource_version``.
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
        """Open a watch of the changes after ``resource_version``, with bookmarks.

        Args:
            resource_version: The resourceVersion from which the watch resumes.
            timeout_seconds: The time after which the server should end the watch, in seconds.
            send_initial_events: Whether the watch begins with an event for each existing object. The states must not
                be older than ``resource_version``.  After these events, a bookmark with the annotation
                ``k8s.io/initial-events-end: "true"`` must follow.
            on_undecodable: A function to call with each undecodable event, instead of raising an exception.  Call the
                function when ``receive_batch`` has returned all earlier events, and before it returns a later event.
                The
                function itself raises an exception if the object has no key.
        """
        ...


@final
@attrs.frozen
class ApiListWatch(Generic[T]):
    """A source that lists and watches an :class:`~trioformer.client.Api`, optionally with selectors.

    Raises:
        ValueError: ``query`` contains a parameter that the reflector sets itself, or a selector.
    """

    api: Api[T]
    """The API for the kind and the namespace to list and watch."""
    label_selector: str | None = None
    """A label selector, or None for all objects."""
    field_selector: str | None = None
    """A field selector, or None for all objects."""
    query: Mapping[str, str] = attrs.field(default=EMPTY_MAP, converter=checked_query)
    """Further query parameters for each list and watch.  Only the server knows which objects they select."""
    _keep: Callable[[T], T | None] | None = attrs.field(default=None, repr=False, eq=False, alias="_keep", kw_only=True)
    """A function that is called while a list arrives.  For each received object, it returns the object to put into the
    list, or None to drop it."""
    _api: Api[T] = attrs.field(
        default=attrs.Factory(lambda self: without_retries(self.api, self.query, self._keep), takes_self=True),
        init=False,
        repr=False,
        eq=False,
    )
    """The same API without retries: the reflector decides when to repeat a request."""

    @property
    def name(self) -> str:
        """The kind, the namespace, the selectors and the query as text, for messages."""
        words = [self.api.resource.kind]
        if self.api.namespace:
            words.append(f"in namespace {self.api.namespace}")
        if restrictions := restrictions_of(self.label_selector, self.field_selector, self.query):
            words.append(f"with {restrictions}")
        return " ".join(words)

    @property
    def kind(self) -> type[T]:
        """The class of the objects."""
        return self.api.kind

    @property
    def supports_watch_list(self) -> bool:
        """Always true.  If the server does not support watch-lists, the reflector falls back to a list."""
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
        """Wait before the next request, coordinated with all other retries of the same client."""
        await self.api.wait_to_retry(until)

    async def check(self, *, resource_version: str) -> None:
        """List at most one matching object, and require a state that is not older than ``resource_version``."""
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
        """Open a watch of the objects that match the selectors."""
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
