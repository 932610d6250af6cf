"""The methods of an :class:`Api` that read: one object, lists and watches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Literal, TypeVar, overload

import trio

from .._util import Slices, opened_by
from ..errors import ConnectionFailedError, NotFoundError
from ..models import FieldSelector, KubernetesObject, LabelSelector, Unstructured, metadata_kind
from ..models._internal import scan_whole
from ..transport._internal import ByteStream
from ._api_requests import ApiRequests
from ._object_ref import ObjectRef
from ._options import FieldSelectorLike, LabelSelectorLike, ListOptions, watch_params
from ._subresources import OwnSubresource
from ._watch import RESPONSE_GRACE, WatchStream
from .bodies._lists import PAGE_SIZE, ObjectList, Pages, all_pages, read_list
from .bodies._responses import drain, raise_failure, streamed_status_error
from .bodies._undecodable import Undecodable, UndecodableHandler

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

T = TypeVar("T", bound=KubernetesObject)


class ApiReads(ApiRequests[T]):
    """The methods that read; a base of :class:`Api`, which describes their errors."""

    __slots__ = ()

    @overload
    async def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: OwnSubresource | None = None
    ) -> T: ...
    @overload
    async def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: Literal["scale"]
    ) -> Scale: ...
    @overload
    async def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: str
    ) -> T | Scale | Unstructured: ...

    async def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: str | None = None
    ) -> T | Scale | Unstructured:
        """Read one object.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            subresource: Such as ``scale``; the result has the kind that the server sends.

        Raises:
            NotFoundError: The object or the subresource does not exist.
        """
        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("get", name=name, namespace=namespace, subresource=subresource)
        return await self._request_any("GET", where, name, namespace, subresource)

    async def get_or_none(self, name: str | ObjectRef | T, *, namespace: str | None = None) -> T | None:
        """Read one object; return None if it does not exist.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.

        Raises:
            NotFoundError: The server does not serve this kind, or a proxy sent the 404; the object may still exist.
        """
        try:
            return await self.get(name, namespace=namespace)
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:
                raise
            return None

    async def exists(self, name: str | ObjectRef | T, *, namespace: str | None = None) -> bool:
        """Check whether an object exists; request only its metadata.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.

        Raises:
            NotFoundError: As for :meth:`get_or_none`.
        """
        name, namespace = self._locate(name, namespace)
        metadata = type(self)._create(self._transport, metadata_kind(self.resource), self.namespace, scan_whole)
        metadata._retries = self._retries
        return await metadata.get_or_none(name, namespace=namespace) is not None

    async def list(
        self,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        page_size: int | None = PAGE_SIZE,
        on_undecodable: UndecodableHandler | None = None,
    ) -> ObjectList[T]:
        """List objects: all pages, at one resourceVersion.

        If that version expires between two pages, all objects are listed again in one page without a limit, as
        client-go's pager does.

        Args:
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            resource_version: None for the newest state, ``"0"`` for any, otherwise at least this one.
            resource_version_match: ``NotOlderThan`` or ``Exact``; None lets the server choose.
            page_size: The limit of a page, in objects; None for no limit.
            on_undecodable: Called at the end with each object that cannot be decoded; None to raise an error for the
                first.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: ``resource_version`` has expired.
        """
        options = ListOptions(
            label_selector=str(LabelSelector.of(label_selector)),
            field_selector=str(FieldSelector.of(field_selector)),
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            limit=page_size,
        )
        where = self._paths.operation("list")
        if on_undecodable is None:
            return await all_pages(self.list_page, options, where, None)
        undecodable: deque[Undecodable] = deque()
        listed = await all_pages(self.list_page, options, where, undecodable)
        slices = Slices()
        for each in undecodable:
            on_undecodable(each)
            if slices.is_over():
                await slices.checkpoint()
        return listed

    async def list_page(
        self, options: ListOptions | None = None, *, on_undecodable: UndecodableHandler | None = None
    ) -> ObjectList[T]:
        """List one page of objects.

        Objects are decoded while the response arrives, so a long page does not block other tasks.

        Args:
            options: The options of the page; None for all objects.
            on_undecodable: Called with each object that cannot be decoded; the list omits these objects.  None to raise
                an error for the first.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: The resourceVersion or the continue token has expired.
        """
        where = self._paths.operation("list")
        undecodable: list[Undecodable] = []
        report = None if on_undecodable is None else undecodable.append

        async def read(body: ByteStream) -> ObjectList[T]:
            undecodable.clear()  # from an earlier attempt whose connection failed
            return await read_list(body, self._wire_format, where, report)

        page = await self._read_list(options if options is not None else ListOptions(), read)
        for each in undecodable:
            assert on_undecodable is not None
            on_undecodable(each)
        return page

    def pages(self, options: ListOptions | None = None) -> AsyncIterator[ObjectList[T]]:
        """List objects page by page: ``async for page in api.pages(ListOptions(limit=500)):``.

        Each page is requested when the loop reaches it, so a list of any length takes the memory of one page.
        The loop may end early: nothing is left open.

        Args:
            options: The options of the first page; without a limit, 500 objects a page.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: The resourceVersion of the list has expired between two pages; list again.
        """
        return Pages(self.list_page, options if options is not None else ListOptions(limit=PAGE_SIZE))

    async def check_resource_version(
        self,
        resource_version: str,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
    ) -> None:
        """Check as cheaply as possible that the server has reached a resourceVersion.

        A server that was restored from a backup accepts a watch from a version that it has not reached yet, and sends
        nothing until it reaches it.

        This lists at most one object, and does not decode it.

        Args:
            resource_version: The version, for example to resume a watch from.
            label_selector: The selector of the watch: permissions may be limited to it.
            field_selector: The selector of the watch, for the same reason.

        Raises:
            SelectorError: A selector does not parse.
            StatusError: The request failed; ``is_too_large_resource_version`` is true if the server has not reached the
                version.
        """
        options = ListOptions(
            label_selector=str(LabelSelector.of(label_selector)),
            field_selector=str(FieldSelector.of(field_selector)),
            resource_version=resource_version,
            resource_version_match="NotOlderThan" if resource_version else None,
            limit=1,
        )

        async def read(body: ByteStream) -> None:
            raise_failure(body, await drain(body), where=self._paths.operation("list"))

        await self._read_list(options, read)

    @opened_by("watch", "async with api.watch() as events:")
    async def watch(
        self,
        *,
        resource_version: str | None = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        timeout_seconds: int | None = None,
        allow_bookmarks: bool = False,
        send_initial_events: bool | None = None,
        resumable: bool = False,
        on_undecodable: UndecodableHandler | None = None,
    ) -> AsyncGenerator[WatchStream[T], None]:
        """Watch changes of objects.

        Yields a :class:`WatchStream`, for ``async for event in events``.

        Args:
            resource_version: Receive all events after this version, such as a list's; None to begin with the current
                state.
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            timeout_seconds: The server ends the watch after this time; None lets it choose.
            allow_bookmarks: Whether to receive bookmarks, which have a newer resourceVersion.
            send_initial_events: Whether to begin with the current state, followed by a bookmark (KEP-3157).
            resumable: Whether the caller watches again after a ConnectionFailedError.  If so, a silent watch raises
                this error when its connection cannot be verified.
            on_undecodable: Called in order with each frame that cannot be decoded; the watch then continues.  None to
                raise an error for the first, after the events before it.  ERROR events always raise.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: ``resource_version`` has expired; list again.
            ConnectionFailedError: The connection failed; there was no response 30 s after ``timeout_seconds``; or the
                watch was silent for 30 s, and the server did not respond to a probe within 15 s.

        Ownership:
            No task is started, so exceptions of the block are not wrapped in a group.
            The end of the block closes the connection, unless the server has ended the watch.
        """
        params = watch_params(
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            allow_bookmarks=allow_bookmarks,
            send_initial_events=send_initial_events,
        )
        where = self._paths.operation("watch")
        async with AsyncExitStack() as stack:
            patience = math.inf if timeout_seconds is None else timeout_seconds + RESPONSE_GRACE
            try:
                with trio.fail_after(patience):
                    body = await stack.enter_async_context(self._open_watch(params, where, resumable=resumable))
            except trio.TooSlowError as exc:
                raise ConnectionFailedError(
                    f"{where}: {self._transport.health.server_text}: no response within {patience:g} s; watch again"
                ) from exc
            if body.code != 200:
                raise await streamed_status_error(body, method="GET", where=where)
            yield WatchStream[T]._create(self._wire_format, body, where, self._transport.limits, on_undecodable)
