"""The objects of one kind: read, write, list, watch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final, overload
from urllib.parse import quote

import attrs
import trio

from .._util import NoPublicConstructor
from ..errors import ConnectionFailedError, ExpiredError, UnexpectedResponseError
from ..models import FieldSelector, KubernetesObject, LabelSelector, ResourceInfo, resource_of
from ..models._internal import dumps, encode_for_server
from ..transport._internal import Response, Scan, Transport
from ._lists import PAGE_SIZE, ObjectList, read_list
from ._options import FieldSelectorLike, LabelSelectorLike, ListOptions, list_params, patch_params, watch_params
from ._patch import PatchType, explaining_patch, patch_content
from ._responses import check, object_in, streamed_status_error
from ._undecodable import Undecodable, UndecodableHandler
from ._watch import WatchStream
from ._wire_format import JSON, WireFormat, kind_in

T = TypeVar("T", bound=KubernetesObject)

ANSWER_GRACE: Final = 30.0
"""Seconds that a watch's answer may outlast the watch's own ``timeoutSeconds``."""

PropagationPolicy: TypeAlias = Literal["Orphan", "Background", "Foreground"]
"""What becomes of the objects that a deleted one owns."""


@final
class Api(Generic[T], metaclass=NoPublicConstructor):
    """The objects of one kind in one namespace, or in all; made by :meth:`Client.api`.

    Requests are sent once: what to do about a failure is the caller's to decide.
    A request that was cancelled, or that ended with a :class:`~trioformer.errors.ConnectionFailedError`, may have been
    carried out.

    Every method that sends something raises:

    - :class:`~trioformer.errors.StatusError`: the server refused; the subclass says why
    - :class:`~trioformer.errors.UnexpectedResponseError`: the answer is none of an API server
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete answer came
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing, cannot be one, or contradicts the object

    Attributes:
        kind: The model.
        resource: Where its objects live on the server.
        namespace: The only namespace that is dealt with, or None.
    """

    __slots__ = ("_transport", "_wire_format", "kind", "namespace", "resource")

    def __init__(self, transport: Transport, kind: type[T], namespace: str | None, scan: Scan) -> None:
        self._transport = transport
        self.kind: type[T] = kind
        self.resource: ResourceInfo = resource_of(kind)
        self._wire_format = WireFormat(kind, scan)
        self.namespace: str | None = namespace
        if namespace is not None:
            if not self.resource.namespaced:
                raise ValueError(f"{self.resource} belong to no namespace, so there are none in {namespace!r}")
            if namespace == "":
                raise ValueError("a namespace must not be empty; None stands for all of them")
            _quoted("namespace", namespace)

    def __repr__(self) -> str:
        what = _in_namespace(str(self.resource), self.namespace)
        return f"<{type(self).__name__} of {what} at {self._transport.server}>"

    # --- reading ---

    async def get(self, name: str) -> T:
        """Read one object.

        Raises:
            NotFoundError: There is none of this name.
        """
        where = self._where("get", name=name)
        return await self._request("GET", self._object(name), where)

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
        """List objects: page by page, joined, all at one version of the collection.

        If the server forgets that version between two pages, everything is listed anew in one answer without limit, as
        client-go's pager does.

        Args:
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            resource_version: None for the newest state, ``"0"`` for any, otherwise at least this one.
            resource_version_match: ``NotOlderThan`` or ``Exact``; None lets the server choose.
            page_size: How many objects to ask for at once; None for all.
            on_undecodable: Is told, at the end, of each object that does not decode; None makes the first
                an error.  When everything is listed anew, an object is told of again.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: ``resource_version`` is no longer known.
        """
        asked = ListOptions(
            label_selector=str(LabelSelector.of(label_selector)),
            field_selector=str(FieldSelector.of(field_selector)),
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            limit=page_size,
        )
        if on_undecodable is None:
            return await self._all_pages(asked, None)
        lost: deque[Undecodable] = deque()
        listed = await self._all_pages(asked, lost)
        for each in lost:
            on_undecodable(each)
        return listed

    async def _all_pages(self, asked: ListOptions, lost: deque[Undecodable] | None) -> ObjectList[T]:
        on_undecodable = None if lost is None else lost.append
        page = first = await self.list_page(asked, on_undecodable=on_undecodable)
        items = list(first.items)
        pages = 1
        while page.continue_token:
            token = page.continue_token
            # The token stands for the version; the server refuses both together.
            following = attrs.evolve(asked, continue_token=token, resource_version=None, resource_version_match=None)
            pages += 1
            try:
                page = await self.list_page(following, on_undecodable=on_undecodable)
            except ExpiredError:
                if lost is not None:
                    lost.clear()  # they were of pages that do not count any more
                whole = await self.list_page(attrs.evolve(asked, limit=None), on_undecodable=on_undecodable)
                return attrs.evolve(whole, pages=pages)
            if page.continue_token == token:
                raise UnexpectedResponseError(f"{self._where('list')}: a page continues with itself", code=200)
            items += page.items
        return ObjectList(items=tuple(items), resource_version=first.resource_version, pages=pages)

    async def list_page(
        self, options: ListOptions | None = None, *, on_undecodable: UndecodableHandler | None = None
    ) -> ObjectList[T]:
        """List objects: one page, the one that ``options`` describe.

        Objects are made while the answer arrives, so a long page does not hold up other tasks.

        Args:
            options: What to ask for; None for everything.
            on_undecodable: Is told of each object that does not decode, and the rest is listed; None makes the first
                an error.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: The resourceVersion or the continue token is no longer known.
        """
        params = list_params(options if options is not None else ListOptions())
        where = self._where("list")
        accept = self._wire_format.accept_list
        async with self._transport.stream(self._collection(), params=params, accept=accept, for_watch=False) as body:
            if body.code != 200:
                with self._wire_format.translate_errors():
                    raise await streamed_status_error(body, method="GET", where=where)
            return await read_list(body, self._wire_format, where, on_undecodable)

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
        on_undecodable: UndecodableHandler | None = None,
    ) -> AsyncGenerator[WatchStream[T], None]:
        """Watch what happens to objects.

        The block is given the events, for ``async for event in events``.

        Args:
            resource_version: See everything after it, such as a list's; None begins with the present state.
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            timeout_seconds: When the server should end the watch; None lets it choose.
            allow_bookmarks: Whether to be told of newer resourceVersions when nothing else happens.
            send_initial_events: Whether to begin with the present state and a bookmark after it (KEP-3157).
            on_undecodable: Is told of each frame that does not decode, before the events that came with it are handed
                out, and the watch goes on; None makes the first one an error, after the events before it.
                ERROR events and frames of more than 16 MB are errors in any case.

        Raises:
            SelectorError: A selector does not parse.
            ExpiredError: ``resource_version`` is no longer known; list again.
            ConnectionFailedError: Also when the server has not even begun to answer long after ``timeout_seconds``.

        Ownership:
            No task is started, so what the block raises leaves it as it is.
            Leaving it closes the connection, unless the server has ended the watch.
        """
        params = watch_params(
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            allow_bookmarks=allow_bookmarks,
            send_initial_events=send_initial_events,
        )
        where = self._where("watch")
        async with AsyncExitStack() as stack:
            # A watch may be silent for any time, but not for longer than it may live at all.
            patience = math.inf if timeout_seconds is None else timeout_seconds + ANSWER_GRACE
            try:
                with trio.fail_after(patience):
                    accept = self._wire_format.accept
                    body = await stack.enter_async_context(
                        self._transport.stream(self._collection(), params=params, accept=accept, for_watch=True)
                    )
            except trio.TooSlowError as exc:
                raise ConnectionFailedError(
                    f"{self._transport.server}: no answer to the watch came within {patience:g} s; watch again"
                ) from exc
            if body.code != 200:
                with self._wire_format.translate_errors():
                    raise await streamed_status_error(body, method="GET", where=where)
            yield WatchStream[T]._create(self._wire_format, body, where, on_undecodable)

    # --- writing ---

    async def create(self, obj: T) -> T:
        """Create an object; returns it as the server has stored it.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: The object is not valid; its details name the fields.
        """
        namespace = self._namespace_for(obj)
        where = self._where("create", name=obj.name, namespace=namespace)
        return await self._request("POST", self._collection(namespace=namespace), where, content=encode_for_server(obj))

    async def replace(self, obj: T) -> T:
        """Store an object in place of the one of its name; returns it as the server has stored it.

        Raises:
            ConflictError: The object has a resourceVersion and is not that of the stored one any more.
            NotFoundError: There is none of this name.
        """
        return await self._replace(obj, None)

    async def replace_status(self, obj: T) -> T:
        """Store an object's status; everything else of it is ignored.

        Raises:
            ConflictError: The object has a resourceVersion and is not that of the stored one any more.
            NotFoundError: There is none of this name, or the kind has no status of its own.
        """
        return await self._replace(obj, "status")

    async def _replace(self, obj: T, subresource: str | None) -> T:
        namespace = self._namespace_for(obj)
        where = self._where("replace", name=obj.name, namespace=namespace, subresource=subresource)
        path = self._object(obj.name, namespace=namespace, subresource=subresource)
        return await self._request("PUT", path, where, content=encode_for_server(obj))

    @overload
    async def patch(
        self,
        name: str,
        patch: Mapping[str, object],
        *,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str,
        patch: Sequence[Mapping[str, object]],
        *,
        patch_type: Literal["json"],
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> T: ...

    async def patch(
        self,
        name: str,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Change an object; returns it as the server has stored it.

        - ``"merge"`` (RFC 7386): ``{"metadata": {"labels": {"seen": "yes", "old": None}}}`` sets one label and removes
          the other; lists are replaced whole.
        - ``"strategic"``: as that, but lists of named items, such as a pod's containers, are merged by their names.
          Built-in kinds know it, custom ones do not.
        - ``"json"`` (RFC 6902): a sequence of operations, carried out in order, all or none;
          ``[{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/metadata/labels/old"}]``.

        A merge of either kind that has ``{"metadata": {"resourceVersion": …}}`` is for that state of the object alone.

        Args:
            name: Which object.
            patch: What to change: a mapping, for a JSON patch a sequence of mappings.
            patch_type: How ``patch`` is to be understood.
            subresource: Such as ``status``.
            field_manager: In whose name the change is noted in ``managedFields``; None for the user agent's.

        Raises:
            NotFoundError: There is none of this name.
            ConflictError: The patch names a resourceVersion that is not the stored one's any more.
            InvalidError: The result is not valid, or an operation of a JSON patch does not apply.
            UnsupportedMediaTypeError: The kind does not know this type of patch.
            TypeError: The patch is none of its type.
        """
        where = self._where("patch", name=name, subresource=subresource)
        path = self._object(name, subresource=subresource)
        content, content_type = patch_content(patch, patch_type)
        params = patch_params(field_manager=field_manager)
        with explaining_patch(patch_type, where):
            return await self._request("PATCH", path, where, content=content, content_type=content_type, params=params)

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
            name: Which object.
            grace_period_seconds: How long it may take to stop; 0 deletes at once, None is the kind's default.
            propagation_policy: What becomes of the objects it owns; None is the kind's default.
            uid: Delete it only if this is its uid.
            resource_version: Delete it only if this is its resourceVersion.

        Returns:
            The object, if the server answers with it, as it does while finalizers or a grace period keep it; else None.

        Raises:
            NotFoundError: There is none of this name.
            ConflictError: It is not the one that ``uid`` or ``resource_version`` describe.
        """
        where = self._where("delete", name=name)
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        content = dumps({"kind": "DeleteOptions", "apiVersion": "v1", **given}) if given else None
        answer = await self._send("DELETE", self._object(name), content, JSON)
        with self._wire_format.translate_errors():
            check(answer, method="DELETE", where=where)
        try:
            is_status = kind_in(answer.body) == "Status"
        except (ValueError, RecursionError):
            is_status = False  # the next line says what it is instead
        return None if is_status else object_in(answer, self._wire_format, method="DELETE", where=where)

    # --- what all of them need ---

    async def _request(
        self,
        method: str,
        path: str,
        where: str,
        *,
        content: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> T:
        answer = await self._send(method, path, content, content_type, params)
        with self._wire_format.translate_errors():
            return object_in(answer, self._wire_format, method=method, where=where)

    async def _send(
        self, method: str, path: str, content: bytes | None, content_type: str, params: Mapping[str, str] | None = None
    ) -> Response:
        given = None if content is None else content_type
        return await self._transport.request(
            method, path, params=params, content=content, content_type=given, accept=self._wire_format.accept
        )

    def _collection(self, *, namespace: str | None = None) -> str:
        """The URL path of all objects in a namespace: the API's, or another if this has none."""
        namespace = self.namespace if namespace is None else namespace
        return self.resource.path(namespace=None if namespace is None else _quoted("namespace", namespace))

    def _object(self, name: str, *, namespace: str | None = None, subresource: str | None = None) -> str:
        """The URL path of one object; never that of the collection, which a DELETE would empty."""
        namespace = self.namespace if namespace is None else namespace
        if namespace is None and self.resource.namespaced:
            raise ValueError(f"{self.resource} belong to a namespace, and this is the API of all; give it one")
        parts = [self._collection(namespace=namespace), _quoted("name", name)]
        if subresource is not None:
            parts.append(_quoted("subresource", subresource))
        return "/".join(parts)

    def _namespace_for(self, obj: T) -> str | None:
        """The namespace that an object is to be written to."""
        if not isinstance(obj, self.kind):
            raise TypeError(f"this is the API of {self.kind.__name__}, and {obj!r} is none")
        if self._wire_format.is_partial:
            kind = self.resource.kind
            raise TypeError(f"{obj!r} cannot be written, as it would lose all else; patch it, or use the API of {kind}")
        if not self.resource.namespaced:
            if obj.namespace is not None:
                raise ValueError(f"{self.resource} belong to no namespace, but {obj!r} names one")
            return None
        namespace = self.namespace if obj.namespace is None else obj.namespace
        if namespace is None:
            raise ValueError(f"{obj!r} has no namespace, and neither has this API; give one of them")
        if namespace != (self.namespace or namespace):
            raise ValueError(f"{obj!r} is not of namespace {self.namespace!r}, which this API is restricted to")
        return namespace

    def _where(self, verb: str, *, name: str = "", namespace: str | None = None, subresource: str | None = None) -> str:
        """What is being done, for errors."""
        what = "/".join(part for part in (str(self.resource), name, subresource) if part)
        return f"{verb} {_in_namespace(what, self.namespace if namespace is None else namespace)}"


def _in_namespace(what: str, namespace: str | None) -> str:
    return what if namespace is None else f"{what} in namespace {namespace}"


def _quoted(what: str, segment: str) -> str:
    """Quote one segment of a URL's path (apimachinery ``IsValidPathSegmentName`` says what cannot be one)."""
    if not isinstance(segment, str):
        raise TypeError(f"a {what} must be a string, not {type(segment).__name__}")
    if not segment:
        raise ValueError(f"a {what} must not be empty")
    if segment in (".", "..") or "/" in segment or "%" in segment:
        raise ValueError(f"a {what} must not be '.' or '..' nor hold '/' or '%', as {segment!r} does")
    return quote(segment, safe="")
