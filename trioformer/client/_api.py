"""The API of one kind: read, write, list and watch objects."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, final, overload

import trio

from .._util import Slices
from ..errors import ConnectionFailedError
from ..models import FieldSelector, KubernetesObject, LabelSelector, Model, Unstructured, encode
from ..models._internal import dumps, encode_for_server
from ..transport._internal import ByteStream
from ._api_requests import ApiRequests, suggests_arguments
from ._lists import PAGE_SIZE, ObjectList, all_pages, read_list
from ._options import FieldSelectorLike, LabelSelectorLike, ListOptions, patch_params, watch_params
from ._patch import PatchType, patch_content, translate_patch_errors
from ._responses import Asked, check, drain, object_in, raise_failure, server_version_in, streamed_status_error
from ._subresources import OwnSubresource, body_in, created_in, is_success, with_name
from ._undecodable import Undecodable, UndecodableHandler
from ._watch import RESPONSE_GRACE, WatchStream
from ._wire_format import JSON

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

M = TypeVar("M", bound=Model)
T = TypeVar("T", bound=KubernetesObject)

PropagationPolicy: TypeAlias = Literal["Orphan", "Background", "Foreground"]
"""Whether the objects that a deleted object owns are deleted: not at all, after it, or before it."""


@final
class Api(ApiRequests[T]):
    """The API of one kind, in one namespace or in all; made by :meth:`Client.api`.

    A request is sent again where that does no harm: when the server asks for it with ``Retry-After``, and when the
    connection fails, if it is a read or if nothing of it was sent; ``open_client(retries=0)`` turns that off.
    "Retries" in docs/howto/connect.rst has the table.
    The server may have executed a request that was cancelled, or that raised
    :class:`~trioformer.errors.ConnectionFailedError`.

    Every method that sends a request raises:

    - :class:`~trioformer.errors.StatusError`: the server rejected the request; the subclass is the reason
    - :class:`~trioformer.errors.UnexpectedResponseError`: no API server sends such a response
    - :class:`~trioformer.errors.DecodeError`: the object in the response cannot be decoded, or has too many levels
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete response arrived
    - :class:`~trioformer.errors.LimitExceededError`: the response exceeds a limit of the client
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing or not valid, or is not that of the object

    Attributes:
        kind: The model.
        resource: The resource of the kind.
        namespace: The namespace; None for all namespaces.
    """

    __slots__ = ()

    # --- reading ---

    @overload
    async def get(self, name: str, *, subresource: OwnSubresource | None = None) -> T: ...
    @overload
    async def get(self, name: str, *, subresource: Literal["scale"]) -> Scale: ...
    @overload
    async def get(self, name: str, *, subresource: str) -> T | Scale | Unstructured: ...

    @suggests_arguments
    async def get(self, name: str, *, subresource: str | None = None) -> T | Scale | Unstructured:
        """Read one object.

        Args:
            name: The name of the object.
            subresource: Such as ``scale``; the object is of the kind that the server sends.

        Raises:
            NotFoundError: There is no object of this name, or the kind has no such subresource.
        """
        where = self._paths.operation("get", name=name, subresource=subresource)
        return await self._request_any("GET", where, name, subresource)

    @suggests_arguments
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

        If that version expires between two pages, all objects are listed again in one page without limit, as in
        client-go's pager.

        Args:
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            resource_version: None for the newest state, ``"0"`` for any, otherwise at least this one.
            resource_version_match: ``NotOlderThan`` or ``Exact``; None lets the server choose.
            page_size: The limit of a page, in objects; None for no limit.
            on_undecodable: Called at the end with each object that cannot be decoded; None raises an error for the
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
            return await all_pages(self.list_page, options, where, self._transport.limits, None)
        undecodable: deque[Undecodable] = deque()
        listed = await all_pages(self.list_page, options, where, self._transport.limits, undecodable)
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
            on_undecodable: Called with each object that cannot be decoded, which the list then omits; None raises an
                error for the first.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: The resourceVersion or the continue token has expired.
        """
        where, limits = self._paths.operation("list"), self._transport.limits
        undecodable: list[Undecodable] = []
        report = None if on_undecodable is None else undecodable.append

        async def read(body: ByteStream) -> ObjectList[T]:
            undecodable.clear()  # of an attempt whose connection failed
            return await read_list(body, self._wire_format, where, limits, report)

        page = await self._read_list(options if options is not None else ListOptions(), read)
        for each in undecodable:
            assert on_undecodable is not None
            on_undecodable(each)
        return page

    async def check_resource_version(
        self,
        resource_version: str,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
    ) -> None:
        """Check as cheaply as possible that the server has reached a resourceVersion.

        A server that was restored from a backup accepts a watch from a version that it has not reached yet, and sends
        nothing until it has.

        This lists one object at most, and decodes none: the status code of the response is enough, unless it comes with
        the Status of a failure.

        Args:
            resource_version: The version, such as that from which a watch is to be resumed.
            label_selector: That of the watch: the permission may be limited to it.
            field_selector: That of the watch, for the same reason.

        Raises:
            SelectorError: A selector does not parse.
            StatusError: Also if it has not reached the version; then ``is_too_large_resource_version`` is true.
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

    @suggests_arguments
    @asynccontextmanager
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
            resource_version: Receive all events after this version, such as a list's; None begins with the current
                state.
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            timeout_seconds: When the server should end the watch; None lets it choose.
            allow_bookmarks: Whether to receive bookmarks, which have a newer resourceVersion.
            send_initial_events: Whether to begin with the current state and a bookmark after it (KEP-3157).
            resumable: Whether the caller watches again after a ConnectionFailedError; then a watch that is silent on a
                connection that cannot be verified raises one.
            on_undecodable: Called with each frame that cannot be decoded, between the events before it and those after
                it, and the watch continues; None raises an error for the first, after the events before it.
                ERROR events are errors in any case.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: ``resource_version`` has expired; list again.
            ConnectionFailedError: Also if there is no response 30 s after ``timeout_seconds``; or if the watch is
                silent for 30 s, and the server does not respond to a probe within 15 s.

        Ownership:
            No task is started, so an exception of the block is not wrapped in a group.
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
                with self._wire_format.translate_errors():
                    raise await streamed_status_error(body, method="GET", where=where)
            yield WatchStream[T]._create(self._wire_format, body, where, self._transport.limits, on_undecodable)

    # --- writing ---

    async def create(self, obj: T) -> T:
        """Create an object, and return it as the server has stored it.

        A Binding is not stored: the server binds the pod of its name and responds with a Status; then this returns
        ``obj``.  If a custom kind makes an object of another kind, as OpenShift's ProjectRequest makes a Project, this
        returns the made object for a kind from :func:`unstructured_kind`, and ``obj`` for a class.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: The object is not valid; the details name the fields.
        """
        namespace = self._namespace_for(obj)
        where = self._paths.operation("create", name=obj.name, namespace=namespace)
        path = self._paths.collection(namespace=namespace)
        response = await self._send("POST", path, where, encode_for_server(obj))
        return created_in(response, self._wire_format, obj, namespace, where=where)

    async def create_subresource(self, name: str, subresource: str, body: M) -> M:
        """Send an object to a subresource that acts on the object of this name, and return the response.

        ``await pods.create_subresource("web-0", "eviction", Eviction())`` evicts a pod, if its disruption budgets allow
        it.
        Others are ``binding`` of pods, with a Binding, and ``token`` of service accounts, with a TokenRequest.

        Args:
            name: The name of the object.
            subresource: The name of the subresource.
            body: What to send; if its metadata has no name, it is sent with ``name``.

        Returns:
            What the server responds, an object of the same class; ``body`` as it was sent if the response is a Status.

        Raises:
            NotFoundError: There is no object of this name, or the kind has no such subresource.
            ConflictError: A precondition does not hold, or the pod is bound already.
            TooManyRequestsError: A disruption budget does not allow the eviction now.
        """
        where = self._paths.operation("create", name=name, subresource=subresource)
        path = self._paths.object(name, subresource=subresource)
        body = with_name(body, name)
        sent = await self._send("POST", path, where, encode(body), accept=JSON)
        return body_in(sent, body, self.namespace, where=where)

    async def replace(self, obj: T) -> T:
        """Replace the object of the same name, and return it as the server has stored it.

        Raises:
            ConflictError: The object has a resourceVersion, and the stored object has another one.
            NotFoundError: There is no object of this name.
        """
        return await self._replace(obj, None)

    async def replace_status(self, obj: T) -> T:
        """Replace the status of the object of the same name; the server ignores the rest of the object.

        Raises:
            ConflictError: The object has a resourceVersion, and the stored object has another one.
            NotFoundError: There is no object of this name, or the kind has no status subresource.
        """
        return await self._replace(obj, "status")

    async def _replace(self, obj: T, subresource: str | None) -> T:
        namespace = self._namespace_for(obj)
        where = self._paths.operation("replace", name=obj.name, namespace=namespace, subresource=subresource)
        path = self._paths.object(obj.name, namespace=namespace, subresource=subresource)
        asked = Asked(obj.name, namespace)
        return await self._request("PUT", path, where, asked=asked, content=encode_for_server(obj))

    @overload
    async def patch(
        self,
        name: str,
        patch: Mapping[str, object],
        *,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: OwnSubresource | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str,
        patch: Sequence[Mapping[str, object]],
        *,
        patch_type: Literal["json"],
        subresource: OwnSubresource | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str,
        patch: Mapping[str, object],
        *,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: Literal["scale"],
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str,
        patch: Sequence[Mapping[str, object]],
        *,
        patch_type: Literal["json"],
        subresource: Literal["scale"],
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        patch_type: PatchType = "merge",
        subresource: str,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured: ...

    async def patch(
        self,
        name: str,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured:
        """Patch an object, and return it as the server has stored it.

        - ``"merge"`` (RFC 7386): ``{"metadata": {"labels": {"seen": "yes", "old": None}}}`` sets one label and removes
          the other; lists are replaced.
        - ``"strategic"``: the same, but lists of named items, such as a pod's containers, are merged by name.
          Built-in kinds support it, custom kinds do not.
        - ``"json"`` (RFC 6902): a sequence of operations that are applied in order, all or none;
          ``[{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/metadata/labels/old"}]``.

        A merge patch or strategic merge patch with ``{"metadata": {"resourceVersion": …}}`` applies only to that
        version of the object.

        A model cannot be merged, such as the status in ``{"status": web.status}``: it cannot say that a field is
        removed.  Pass a mapping with None for such a field, or call :meth:`replace` or :meth:`replace_status`.
        In a strategic merge patch this is also true of the items of lists, such as containers.
        A model as an item of a list of a merge patch, or as the value of a JSON patch's operation, is sent as its JSON.

        Args:
            name: The name of the object.
            patch: The changes: a mapping, or a sequence of mappings for a JSON patch.
            patch_type: The type of the patch.
            subresource: Such as ``status``; the result is of the kind that the server sends, a Scale for ``scale``.
            field_manager: The manager of the changed fields in ``managedFields``; None derives it from the user agent.

        Raises:
            NotFoundError: There is no object of this name.
            ConflictError: The patch has a resourceVersion, and the stored object has another one.
            InvalidError: The result is not valid, or an operation of a JSON patch cannot be applied.
            UnsupportedMediaTypeError: The kind does not support this type of patch.
            TypeError: The patch is not of its type, or contains a model that would be merged.
        """
        where = self._paths.operation("patch", name=name, subresource=subresource)
        content, content_type = patch_content(patch, patch_type)
        params = patch_params(field_manager=field_manager)
        with translate_patch_errors(patch_type, where):
            return await self._request_any("PATCH", where, name, subresource, content, content_type, params)

    @suggests_arguments
    async def delete(
        self,
        name: str,
        *,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T | None:
        """Delete an object.

        Args:
            name: The name of the object.
            grace_period_seconds: The time for a graceful stop; 0 deletes immediately, None is the kind's default.
            propagation_policy: Whether the objects that it owns are deleted; None is the kind's default.
            uid: Delete it only if it has this uid.
            resource_version: Delete it only if it has this resourceVersion.

        Returns:
            The object while finalizers or a grace period keep it; None if the server responds with a Status.

        Raises:
            NotFoundError: There is no object of this name.
            ConflictError: It has another ``uid`` or ``resource_version``.
        """
        where = self._paths.operation("delete", name=name)
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        content = dumps({"kind": "DeleteOptions", "apiVersion": "v1", **given}) if given else None
        response = await self._send("DELETE", self._paths.object(name), where, content, JSON)
        with self._wire_format.translate_errors():
            check(response, method="DELETE", where=where)
        if is_success(response, where):
            return None
        asked = Asked(name, self.namespace)
        return object_in(response, self._wire_format, method="DELETE", where=where, asked=asked)

    # --- the server ---

    async def server_version(self) -> tuple[int, int] | None:
        """Return the major and minor version of the server, such as ``(1, 36)``; None if it has no valid version.

        It is requested once for each client, and kept.
        """
        return await self._transport.server_version(server_version_in)

    async def wait_to_retry(self, until: float) -> None:
        """Wait until a request may be sent again after a :class:`~trioformer.errors.ConnectionFailedError`.

        First until the given time, or until a request of this client has a response, and then for a turn: all users of
        the client go one after another, five a second while connections fail and 46 a second otherwise.

        Args:
            until: A time of trio's clock.
        """
        await self._transport.health.wait_to_retry(until)
