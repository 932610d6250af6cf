"""The verbs of the Kubernetes API, such as get, list and watch, as methods of :class:`Api`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

import attrs
import trio

from .._util import NoPublicConstructor, Slices, opened_by
from ..errors import ConnectionFailedError, NotFoundError, StatusError
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
from ._patch import APPLY, UNSUPPORTED_MEDIA_TYPE, PatchType, patch_content, unsupported_strategic_patch
from ._subresources import OwnSubresource, is_success
from ._watch import RESPONSE_GRACE, WatchStream
from .bodies._lists import PAGE_SIZE, ObjectList, Pages, all_pages, read_list
from .bodies._responses import check, created_in, drain, object_in, raise_failure, streamed_status_error
from .bodies._undecodable import Undecodable, UndecodableHandler

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

T = TypeVar("T", bound=KubernetesObject)


class ApiVerbs(Generic[T], metaclass=NoPublicConstructor):
    """The base class of :class:`Api`, with a method for each verb of the Kubernetes API.

    The attributes and the exceptions are described in :class:`Api`.
    """

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
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.
            subresource: The name of a subresource, such as ``scale``.  The result then has the kind of the subresource,
                such as Scale.

        Raises:
            NotFoundError: The object or the subresource does not exist.
        """
        return await self._requests.request_any("GET", "get", self._requests.locate(name, namespace), subresource)

    async def get_or_none(self, name: str | ObjectRef | T, *, namespace: str | None = None) -> T | None:
        """Read one object, or return None if the object does not exist.

        Args:
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.

        Raises:
            NotFoundError: The server does not serve this kind, or a proxy responded with 404.  The object may still
                exist.
        """
        try:
            return await self.get(name, namespace=namespace)
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:
                raise
            return None

    async def exists(self, name: str | ObjectRef | T, *, namespace: str | None = None) -> bool:
        """Return whether an object exists.

        Only the metadata of the object is requested.

        Args:
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.

        Raises:
            NotFoundError: The server does not serve this kind, or a proxy responded with 404.  The object may still
                exist.
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
        """Return a single list of all objects that match the selectors.

        The objects are requested page by page, at one resourceVersion.  If this version expires between two pages, all
        objects are listed again in one page without a limit, as client-go's pager does.

        Args:
            label_selector: A label selector.  The default, None, selects all objects.
            field_selector: A field selector.  The default, None, selects all objects.
            resource_version: The minimum resourceVersion of the list.  ``"0"`` accepts any version.  The default, None,
                requests the newest state.
            resource_version_match: How the server compares ``resource_version``: ``NotOlderThan`` or ``Exact``.  If
                None, the server chooses.
            page_size: The maximum number of objects per page, or None for no limit.
            on_undecodable: A function that is called with each object that cannot be decoded, once the whole list has
                arrived.  If None, the first such object raises an error.

        Raises:
            SelectorError: A selector is not valid.
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

        The objects are decoded while the response arrives, so a long page does not block other tasks.

        Args:
            options: The options of the page.  If None, all objects are listed.
            on_undecodable: A function that is called with each object that cannot be decoded.  The list omits these
                objects.  If None, the first such object raises an error.

        Raises:
            SelectorError: A selector is not valid.
            ExpiredError: The resourceVersion or the continue token has expired.
        """
        where = self._requests.paths.operation("list")
        undecodable: list[Undecodable] = []
        report = None if on_undecodable is None else undecodable.append

        async def read(body: ByteStream) -> ObjectList[T]:
            undecodable.clear()  # from an earlier attempt whose connection failed
            return await read_list(body, self._requests.wire_format, where, report, self._requests.keep)

        page = await self._requests.read_list(options if options is not None else ListOptions(), read)
        for each in undecodable:
            assert on_undecodable is not None
            on_undecodable(each)
        return page

    def pages(self, options: ListOptions | None = None) -> AsyncIterator[ObjectList[T]]:
        """Iterate over the pages of a list: ``async for page in api.pages(ListOptions(limit=500)):``.

        Each page is requested when the loop reaches it, so only one page is in memory at a time.
        You may leave the loop early, because no connection stays open between pages.

        Args:
            options: The options of the first page.  If None, the limit is 500 objects per page.

        Raises:
            SelectorError: A selector is not valid.
            ExpiredError: The resourceVersion of the list has expired between two pages.  List the objects again.
        """
        return Pages(self.list_page, options if options is not None else ListOptions(limit=PAGE_SIZE))

    async def check_resource_version(
        self,
        resource_version: str,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
    ) -> None:
        """Send a cheap request to check that the server has reached a resourceVersion.

        A server that was restored from a backup accepts a watch from a future version, but sends no events until the
        server reaches that version.

        The request lists at most one object, which is not decoded.

        Args:
            resource_version: The resourceVersion, for example the resourceVersion of a watch to resume.
            label_selector: The label selector of the watch.  The user's permissions may require this selector.
            field_selector: The field selector of the watch.  The user's permissions may require this selector.

        Raises:
            SelectorError: A selector is not valid.
            StatusError: The request failed.  If the server has not reached the version,
                ``is_too_large_resource_version`` is true.
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
        """Watch objects for changes.

        The block receives a :class:`WatchStream`.  Read its events with ``async for event in events:``.

        Args:
            resource_version: The resourceVersion after which events are sent, such as the resourceVersion of a list. If
                None, the watch begins with the current state.
            label_selector: A label selector.  The default, None, selects all objects.
            field_selector: A field selector.  The default, None, selects all objects.
            timeout_seconds: The time after which the server ends the watch, in seconds.  If None, the server chooses.
            allow_bookmarks: Whether the server may send bookmarks, which are events that contain only a newer
                resourceVersion.
            send_initial_events: Whether the server first sends the current state, followed by a bookmark (KEP-3157).
            resumable: Whether the caller starts a new watch after a ConnectionFailedError.  If true, a silent watch
                raises this error when its connection cannot be verified.
            on_undecodable: A function that is called with each frame that cannot be decoded, in the order of the
                stream.  The watch then continues.  If None, the first such frame raises an error once all earlier
                events have been delivered.  An ERROR event always raises an error.

        Raises:
            SelectorError: A selector is not valid.
            ExpiredError: The ``resource_version`` has expired.  List the objects again.
            ConnectionFailedError: The connection failed, or no response arrived within 30 s after ``timeout_seconds``,
                or the watch was silent for 30 s and the server did not respond to a probe within 15 s.

        Ownership:
            No task is started, so exceptions from the block are not wrapped in an exception group.
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
                            params={**requests.query, **params},
                            accept=requests.wire_format.accept_watch,
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
        """Create an object, and return the stored object.

        If the server responds with a Status, as for a Binding, ``obj`` is returned. For some custom kinds, the server
        creates an object of another kind instead.  For example, OpenShift's ProjectRequest creates a Project. In this
        case, an API with a class from :func:`unstructured_kind` returns the created object, and an API with a typed
        class returns ``obj``.

        Args:
            obj: The object.  The server sets defaults for omitted fields.
            dry_run: Whether to validate the object and set defaults on the server without storing the object.
            field_validation: How the server treats unknown and duplicate fields.  If None, the server's default,
                ``Warn``, is used.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.

        Raises:
            AlreadyExistsError: An object with this name already exists.
            InvalidError: The object is not valid.  The error's details name the invalid fields.
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
        """Replace the object with the same name, and return the stored object.

        Args:
            obj: The new object.  Fields that the object omits are removed or set to their defaults.
            dry_run: Whether to validate the request on the server without storing the result.
            field_validation: How the server treats unknown and duplicate fields.  If None, the server's default,
                ``Warn``, is used.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.

        Raises:
            ConflictError: The resourceVersion of ``obj`` differs from the stored one.
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
        """Replace the status of the object with the same name.

        The server ignores all other fields of ``obj``.

        The arguments are the same as for :meth:`replace`.

        Raises:
            ConflictError: The resourceVersion of ``obj`` differs from the stored one.
            NotFoundError: The object does not exist, or the kind has no status subresource.
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
        """Patch an object, and return the stored object.

        - ``"merge"`` (RFC 7386): ``{"metadata": {"labels": {"seen": "yes", "old": None}}}`` sets one label and removes
          the other.  Lists are replaced as a whole.
        - ``"strategic"``: the same as ``"merge"``, but lists of named items, such as a pod's containers, are merged by
          name.  Only built-in kinds support this type.
        - ``"json"`` (RFC 6902): operations that the server applies in order, or not at all if one of them fails:
          ``[{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/metadata/labels/old"}]``.

        If a merge patch or a strategic merge patch contains ``{"metadata": {"resourceVersion": …}}``, the server
        applies the patch only to this version of the object.

        A model, such as the status in ``{"status": web.status}``, cannot be merged, because it cannot mark a field as
        removed. Instead, pass a mapping with None for each field to remove.  To send the difference between two models,
        call :meth:`Api.update` or :meth:`Api.update_status`. In a strategic merge patch, list items such as containers
        cannot be models either. A list in a merge patch may contain models, and the value of a JSON patch operation may
        be a model.

        Args:
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            patch: The changes as a mapping, or as a sequence of mappings for a JSON patch.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.
            patch_type: The type of the patch: ``merge``, ``strategic`` or ``json``.
            subresource: The name of a subresource, such as ``status``.  The result then has the kind of the
                subresource, such as Scale.
            dry_run: Whether to validate the request on the server without storing the result.
            field_validation: How the server treats unknown and duplicate fields.  If None, the server's default,
                ``Warn``, is used.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: The resourceVersion in the patch differs from the stored one.
            InvalidError: The patched object is not valid, or an operation of a JSON patch cannot be applied.
            StatusError: The kind does not support this type of patch (415).
            TypeError: The patch does not match its type, or contains a model that cannot be merged.
        """
        at = self._requests.locate(name, namespace)
        content, content_type = patch_content(patch, patch_type)
        params = self._requests.write_params(dry_run, field_validation, field_manager)
        try:
            return await self._requests.request_any("PATCH", "patch", at, subresource, content, content_type, params)
        except StatusError as exc:
            if exc.code != UNSUPPORTED_MEDIA_TYPE or patch_type != "strategic":
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
        """Apply an object with server-side apply, and return the stored object.

        If the object does not exist, the server creates the object. The field manager owns the applied fields.  The
        server removes a field that the manager applied before but omits now, unless another manager also owns the
        field.

        Therefore, always pass exactly the fields that the manager should own.  Pass a new object, a mapping, or a
        changed result of :func:`~trioformer.models.extract`. A new object applies only the fields that were passed to
        its constructor, including empty lists and maps.

        Args:
            obj: The fields to apply.  A mapping uses the API's field names and may omit ``apiVersion`` and ``kind``.
                If the fields include a uid or a resourceVersion, only an object with this uid or version is changed.
                In the status of a custom object, kube-apiserver ignores the uid.
            subresource: The subresource to apply instead of the whole object, such as ``status``.  The object must
                exist.
            force: Whether to take over fields that other managers have set to a different value.
            dry_run: Whether to validate the request on the server without storing the result.
            field_validation: How the server treats unknown and duplicate fields, as for :meth:`create`.
            field_manager: The name of the field manager, such as the name of the controller.  If None, the client's
                field manager is used.

        Raises:
            ApplyConflictError: Other managers have set some of the fields to different values.  The ``conflicts`` of
                the error name these fields.
            ConflictError: The resourceVersion of ``obj`` differs from the stored one.
            InvalidError: The applied object is not valid.
            ValueError: Neither the call nor the client has a field manager, or the object was read from a server.  An
                object from a server has ``managedFields``, or a uid and a creation time.  Applying such an object would
                make the manager the owner of all its fields.
        """
        self._requests.check_applier(field_manager)
        if isinstance(obj, Mapping):
            obj = self._from_mapping(obj)
        at = self._requests.locate_new(obj)
        metadata = obj.metadata
        # A cache may have dropped managedFields.  Only a server sets both the uid and the creation time.
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
                raise TypeError(f"the {name} of the mapping must be {value} for the API of {self.kind.__name__}")
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
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.
            grace_period_seconds: The grace period, in seconds.  0 deletes the object immediately.  If None, the kind's
                default grace period is used.
            propagation_policy: How to delete the objects that this object owns.  If None, the kind's default policy is
                used.
            uid: The required uid of the object.  An object with another uid is not deleted.
            resource_version: The required resourceVersion of the object.  An object with another resourceVersion is not
                deleted.
            dry_run: Whether to validate the request on the server without deleting the object.

        Returns:
            The object if it still exists because of finalizers or a grace period, or None if the server responds with a
            Status.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: The uid or the resourceVersion of the object differs from the given one.
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
