"""The verbs of the Kubernetes API: the methods of an :class:`Api` that send one kind of request."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

import attrs
import trio

from .._util import NoPublicConstructor, Slices, opened_by
from ..errors import ConnectionFailedError, NotFoundError, UnsupportedMediaTypeError
from ..models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    ResourceInfo,
    Unstructured,
    from_dict,
    metadata_kind,
)
from ..models._internal import encode_request
from ..transport._internal import ByteStream
from ._api_requests import ApiRequests, delete_options
from ._object_ref import ObjectRef
from ._options import (
    FieldSelectorLike,
    FieldValidation,
    LabelSelectorLike,
    ListOptions,
    PropagationPolicy,
    watch_params,
)
from ._patch import APPLY, PatchType, patch_content, unsupported_strategic_patch
from ._subresources import OwnSubresource, is_success
from ._watch import RESPONSE_GRACE, WatchStream
from .bodies._lists import PAGE_SIZE, ObjectList, Pages, all_pages, read_list
from .bodies._responses import check, created_in, drain, object_in, raise_failure, streamed_status_error
from .bodies._undecodable import Undecodable, UndecodableHandler

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

T = TypeVar("T", bound=KubernetesObject)


class ApiVerbs(Generic[T], metaclass=NoPublicConstructor):
    """The verbs of the API of one kind; the base of :class:`Api`, which describes its attributes and errors."""

    __slots__ = ("_requests", "kind", "namespace", "resource")

    def __init__(self, requests: ApiRequests[T]) -> None:
        self._requests = requests
        self.kind: type[T] = requests.kind
        self.resource: ResourceInfo = requests.resource
        self.namespace: str | None = requests.namespace

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._requests.paths} at {self._requests.transport.server}>"

    # --- read ---

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
        return await self._requests.request_any("GET", "get", self._requests.locate(name, namespace), subresource)

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
        at = self._requests.locate(name, namespace)
        requests = ApiRequests.of(self._requests.transport, metadata_kind(self.resource), self.namespace)
        metadata = type(self)._create(attrs.evolve(requests, retries=self._requests.retries))
        return await metadata.get_or_none(at.name, namespace=at.namespace) is not None

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
        where = self._requests.paths.operation("list")
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
        where = self._requests.paths.operation("list")
        undecodable: list[Undecodable] = []
        report = None if on_undecodable is None else undecodable.append

        async def read(body: ByteStream) -> ObjectList[T]:
            undecodable.clear()  # from an earlier attempt whose connection failed
            return await read_list(body, self._requests.wire_format, where, report)

        page = await self._requests.read_list(options if options is not None else ListOptions(), read)
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
            raise_failure(body, await drain(body), where=self._requests.paths.operation("list"))

        await self._requests.read_list(options, read)

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
        requests = self._requests
        where = requests.paths.operation("watch")
        async with AsyncExitStack() as stack:
            patience = math.inf if timeout_seconds is None else timeout_seconds + RESPONSE_GRACE
            try:
                with trio.fail_after(patience):
                    body = await stack.enter_async_context(
                        requests.transport.stream(
                            requests.paths.collection(),
                            params=params,
                            accept=requests.wire_format.accept,
                            for_watch=True,
                            resumable=resumable,
                            retries=requests.retries,
                            where=where,
                        )
                    )
            except trio.TooSlowError as exc:
                raise ConnectionFailedError(
                    f"{where}: {requests.transport.health.server_text}: no response within {patience:g} s; watch again"
                ) from exc
            if body.code != 200:
                raise await streamed_status_error(body, method="GET", where=where)
            yield WatchStream[T]._create(requests.wire_format, body, where, requests.transport.limits, on_undecodable)

    # --- write ---

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Create an object, and return it as the server has stored it.

        If the server responds with a Status, as for a Binding, return ``obj``.
        A custom kind may create an object of another kind: OpenShift's ProjectRequest creates a Project.  Then return
        the created object for a kind from :func:`unstructured_kind`, and ``obj`` for a class.

        Args:
            obj: The object; the server sets defaults for fields that were not given.
            dry_run: Validate and default the object on the server without storing it.
            field_validation: How the server treats unknown fields; None for its default, ``Warn``.
            field_manager: The manager in ``managedFields``; None for the client's own, or the user agent's name.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: The object is not valid; the details name the fields.
        """
        requests = self._requests
        at = requests.locate_new(obj)
        where = at.operation("create")
        path = requests.paths.collection(namespace=at.namespace)
        params = requests.write_params(dry_run, field_validation, field_manager)
        response = await requests.send("POST", path, where, encode_request(obj), params=params)
        return created_in(response, requests.wire_format, obj, where=where)

    async def replace(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the object of the same name, and return it as the server has stored it.

        Args:
            obj: The object; absent fields are removed or get their defaults.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: The object has a resourceVersion that differs from the stored one.
            NotFoundError: The object does not exist.
            InvalidError: The object is not valid.
        """
        params = self._requests.write_params(dry_run, field_validation, field_manager)
        at = self._requests.locate_new(obj)
        return await self._requests.request("PUT", "replace", at, None, encode_request(obj), params=params)

    async def replace_status(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the status of the object of the same name; the server ignores the rest of the object.

        The arguments are the same as for :meth:`replace`.

        Raises:
            ConflictError: The object has a resourceVersion that differs from the stored one.
            NotFoundError: The object or its status subresource does not exist.
        """
        params = self._requests.write_params(dry_run, field_validation, field_manager)
        at = self._requests.locate_new(obj)
        return await self._requests.request("PUT", "replace", at, "status", encode_request(obj), params=params)

    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object],
        *,
        namespace: str | None = None,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: Literal["json"],
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object],
        *,
        namespace: str | None = None,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: Literal["scale"],
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: Literal["json"],
        subresource: Literal["scale"],
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured: ...

    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured:
        """Patch an object, and return it as the server has stored it.

        - ``"merge"`` (RFC 7386): ``{"metadata": {"labels": {"seen": "yes", "old": None}}}`` sets one label and removes
          the other; lists are replaced.
        - ``"strategic"``: the same, but lists of named items, such as a pod's containers, are merged by name.
          Only built-in kinds support it.
        - ``"json"`` (RFC 6902): a sequence of operations that are applied in order, all or none;
          ``[{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/metadata/labels/old"}]``.

        A merge patch or strategic merge patch with ``{"metadata": {"resourceVersion": …}}`` applies only to that
        version of the object.

        A model, such as the status in ``{"status": web.status}``, cannot be merged, because it cannot mark a field as
        removed.  Pass a mapping with None for such a field, or call :meth:`Api.update` or :meth:`Api.update_status` to
        make a patch from two models.
        In a strategic merge patch, list items such as containers cannot be models either.
        A model in a list of a merge patch, or as the value of a JSON patch operation, is sent as JSON.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            patch: The changes: a mapping, or a sequence of mappings for a JSON patch.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            patch_type: The type of the patch.
            subresource: Such as ``status``; the result has the kind that the server sends, a Scale for ``scale``.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: The patch has a resourceVersion that differs from the stored one.
            InvalidError: The result is not valid, or an operation of a JSON patch cannot be applied.
            UnsupportedMediaTypeError: The kind does not support this type of patch.
            TypeError: The patch does not match its type, or contains a model that would be merged.
        """
        at = self._requests.locate(name, namespace)
        content, content_type = patch_content(patch, patch_type)
        params = self._requests.write_params(dry_run, field_validation, field_manager)
        try:
            return await self._requests.request_any("PATCH", "patch", at, subresource, content, content_type, params)
        except UnsupportedMediaTypeError as exc:
            if patch_type != "strategic":
                raise
            raise unsupported_strategic_patch(exc, at.operation("patch", subresource)) from exc

    async def apply(
        self,
        obj: T | Mapping[str, object],
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Apply an object by server-side apply, and return it as the server has stored it.

        The object is created if it does not exist.
        The manager owns the fields that it applies.  Fields that it applied before and now omits are removed, unless
        another manager owns them too.
        So pass every field that the manager wants to have, and no others: a new object, a mapping, or a changed result
        of :func:`~trioformer.models.extract`.  Fields that were not given to a new object are not applied; given empty
        lists or maps are.

        Args:
            obj: The fields to apply.  A mapping has the API's field names and may omit ``apiVersion`` and ``kind``.
                With a uid or a resourceVersion, only that object or version is changed.
            subresource: Apply only this part, such as ``status``; the object must exist.
            force: Take over fields that other managers have set to another value.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: The field manager, such as the name of the controller; None for the client's own.

        Raises:
            ApplyConflictError: Other managers have set some of the fields to another value; ``conflicts`` names them.
            ConflictError: The object has a resourceVersion that differs from the stored one.
            InvalidError: The result is not valid.
            ValueError: Neither the call nor the client has a field manager; or the object was read from a server (it
                has ``managedFields``, or a uid and a creation time), so the manager would own all of its fields.
        """
        self._requests.check_applier(field_manager)
        if isinstance(obj, Mapping):
            obj = self._from_mapping(obj)
        at = self._requests.locate_new(obj)
        metadata = obj.metadata
        # A cache may have dropped managedFields; only a server sets both of the others.
        if metadata.managed_fields or (metadata.uid and metadata.creation_timestamp is not None):
            hint = "apply a new object with the wanted fields, or the result of extract(obj, field_manager=...)"
            raise ValueError(f"{obj!r} was read from a server; applying it would take over all of its fields; {hint}")
        params = self._requests.write_params(dry_run, field_validation, field_manager, force=force)
        content = encode_request(obj, is_applied=True)
        return await self._requests.request("PATCH", "apply", at, subresource, content, APPLY, params)

    def _from_mapping(self, mapping: Mapping[str, object]) -> T:
        resource = self.resource
        expected = {"apiVersion": resource.api_version, "kind": resource.kind}
        for name, value in expected.items():
            if mapping.get(name, value) != value:
                raise TypeError(f"the {name} of the mapping must be {value}, as in this API of {self.kind.__name__}")
        return from_dict(self.kind, {**expected, **mapping})

    async def delete(
        self,
        name: str | ObjectRef | T,
        *,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T | None:
        """Delete an object.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            grace_period_seconds: The time for a graceful stop; 0 to delete immediately, None for the kind's default.
            propagation_policy: Whether to delete the objects that it owns; None for the kind's default.
            uid: Delete it only if it has this uid.
            resource_version: Delete it only if it has this resourceVersion.
            dry_run: Check on the server whether the object would be deleted, without deleting it.

        Returns:
            The object, if finalizers or a grace period keep it for now; None if the server responds with a Status.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: It has another ``uid`` or ``resource_version``.
        """
        requests = self._requests
        at = requests.locate(name, namespace)
        where = at.operation("delete")
        content = delete_options(
            grace_period_seconds=grace_period_seconds,
            propagation_policy=propagation_policy,
            dry_run=dry_run,
            uid=uid,
            resource_version=resource_version,
        )
        response = await requests.send("DELETE", at.path(), where, content)
        check(response, method="DELETE", where=where)
        if is_success(response, where):
            return None
        return object_in(response, requests.wire_format, method="DELETE", where=where)
