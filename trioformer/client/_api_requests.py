"""The requests that an :class:`Api` sends, and the decoding of their responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, final

import attrs
import trio

from .._suggestions import describe
from .._text import quoted
from ..errors import ExpiredError
from ..models import (
    KubernetesObject,
    Model,
    PartialObjectMetadata,
    ResourceInfo,
    Unstructured,
    encode,
    metadata_kind,
    resource_of,
)
from ..models._internal import EMPTY_MAP, MAGIC, dumps, encode_request, scan_head, scan_whole
from ..transport._internal import ByteStream, Response, Transport
from ._object_ref import ObjectRef, reference_to
from ._options import ListOptions, list_params
from ._patch import APPLY
from ._paths import ResourcePaths
from ._subresources import body_in, has_own_kind, subresource_in, with_name
from ._writes import Write, WrittenObject, caches_of, write_observer
from .bodies._lists import ObjectList, read_list
from .bodies._protobuf import PROTOBUF
from .bodies._responses import check, object_in, streamed_status_error
from .bodies._wire_format import JSON, Scan, WireFormat

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale
    from ._options import FieldValidation, PropagationPolicy

M = TypeVar("M", bound=Model)
R = TypeVar("R")
T = TypeVar("T", bound=KubernetesObject)

_FIRST_ERROR: Final = 300
_NOT_FOUND: Final = 404
_FIRST_UNCLEAR: Final = 500
"""The first code of a response to a write that may have been carried out."""


@final
@attrs.frozen
class LocatedObject:
    """The location of one object on the server."""

    transport: Transport
    name: str
    namespace: str | None
    _paths: ResourcePaths

    def path(self, subresource: str | None = None) -> str:
        """Return the URL path of the object or of one of its subresources."""
        return self._paths.object(self.name, namespace=self.namespace, subresource=subresource or None)

    def operation(self, verb: str, subresource: str | None = None) -> str:
        """Return a description of the operation for error messages."""
        return self._paths.operation(verb, name=self.name, namespace=self.namespace, subresource=subresource)


@final
@attrs.frozen(eq=False)
class ApiRequests(Generic[T]):
    """The requests of one :class:`Api`."""

    transport: Transport
    kind: type[T]
    resource: ResourceInfo
    namespace: str | None
    paths: ResourcePaths
    wire_format: WireFormat[T]
    field_manager: str | None
    """The field manager for writes that pass no other field manager."""
    retries: bool = True
    query: Mapping[str, str] = EMPTY_MAP
    """Further query parameters for lists and watches."""
    keep: Callable[[T], T | None] | None = None
    """A function that returns the object to put into a list for each received one, or None to drop it."""

    @classmethod
    def of(
        cls,
        transport: Transport,
        kind: type[T],
        namespace: str | None,
        scan: Scan = scan_whole,
        field_manager: str | None = None,
        *,
        protobuf: bool = False,
    ) -> ApiRequests[T]:
        """Return the requests for one kind, in one namespace or in all namespaces."""
        resource = resource_of(kind)
        paths = ResourcePaths(resource, namespace)
        wire_format = WireFormat(kind, scan, protobuf=protobuf)
        return cls(transport, kind, resource, namespace, paths, wire_format, field_manager)

    # --- where objects are ---

    def locate(self, target: str | ObjectRef | T, namespace: str | None) -> LocatedObject:
        """Return the location of an object, given its name, a reference or the object itself.

        Raises:
            TypeError: The target is an object of another kind, or has the wrong type.
            ValueError: The namespace of the target differs from this API's namespace or from ``namespace``, or a
                namespace is given for a cluster-scoped kind.
        """
        if isinstance(target, str):
            name = target
        else:
            ref = reference_to(target, self.resource)
            if namespace not in (None, ref.namespace):
                raise ValueError(f"{target!r} is not in namespace {namespace!r}")
            name, namespace = ref.name, ref.namespace
        if namespace is None:
            namespace = self.namespace
        elif not self.resource.namespaced:
            raise ValueError(f"{self.resource} are not namespaced; omit the namespace {namespace!r}")
        elif namespace != (self.namespace or namespace):
            raise ValueError(f"{name} is in namespace {namespace!r}, but this API is for namespace {self.namespace!r}")
        return LocatedObject(self.transport, name, namespace, self.paths)

    def locate_new(self, obj: T) -> LocatedObject:
        """Return the location of an object to write.

        Raises:
            TypeError: The object is of another kind, or has only metadata.
            ValueError: The object's namespace is missing, differs from this API's namespace, or is given for a
                cluster-scoped kind.
        """
        self.check_object(obj)
        if self.wire_format.is_partial:
            kind = self.resource.kind
            hint = f"patch it, or use the API of {kind}"
            raise TypeError(f"{obj!r} contains only metadata, so it cannot be created, replaced or applied; {hint}")
        namespace = obj.namespace
        if not self.resource.namespaced:
            if namespace is not None:
                raise ValueError(f"{obj!r} has a namespace, but {self.resource} are not namespaced")
        elif namespace is None:
            namespace = self.namespace
            if namespace is None:
                raise ValueError(f"neither {obj!r} nor this API has a namespace; set either of them")
        elif namespace != (self.namespace or namespace):
            raise ValueError(f"{obj!r} is not in namespace {self.namespace!r}, which is the namespace of this API")
        return LocatedObject(self.transport, obj.name, namespace, self.paths)

    def check_object(self, obj: object) -> None:
        """Check that a value is an object of this API's kind.

        Raises:
            TypeError: The value is not an object of this kind.  The message omits the content of a dict, because it may
                be secret.
        """
        if isinstance(obj, self.kind):
            return
        kind = self.kind.__name__
        found = repr(obj) if isinstance(obj, KubernetesObject) else describe(obj)
        hint = f"; convert it with from_dict({kind}, ...)" if isinstance(obj, Mapping) else ""
        raise TypeError(f"the API of {kind} does not accept {found}{hint}")

    # --- requests for one object ---

    def write_params(
        self,
        dry_run: bool,
        field_validation: FieldValidation | None,
        field_manager: str | None,
        *,
        force: bool = False,
    ) -> dict[str, str]:
        """Return the query parameters of a write.

        If ``field_manager`` is None, the API's field manager is used.

        Raises:
            ValueError: The field manager is not valid.
        """
        manager = self.field_manager if field_manager is None else field_manager
        if manager is not None:
            check_field_manager(manager)
        params = {
            "fieldManager": manager,
            "dryRun": "All" if dry_run else None,
            "fieldValidation": field_validation,
            "force": "true" if force else None,
        }
        return {name: value for name, value in params.items() if value is not None}

    def check_applier(self, field_manager: str | None) -> None:
        """Check that an apply request has a field manager.

        Raises:
            ValueError: Neither the call nor the client has a field manager.
        """
        if not (field_manager or self.field_manager):
            raise ValueError(
                "apply() requires a field manager; pass field_manager=, or call open_client(field_manager='deployer')"
            )

    async def send(
        self,
        method: str,
        path: str,
        where: str,
        content: bytes | None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        *,
        accept: str | None = None,
    ) -> Response:
        """Send a request, report it to the observer of writes, and return the response."""
        is_dry = "dryRun" in (params or ()) or (method == "DELETE" and _is_dry(content))
        observe = None if method == "GET" or is_dry else write_observer.get()
        try:
            response = await self.transport.request(
                method,
                path,
                params=params,
                content=content,
                content_type=None if content is None else PROTOBUF if content.startswith(MAGIC) else content_type,
                accept=self.wire_format.accept if accept is None else accept,
                retries=self.retries,
                where=where,
            )
        except BaseException:
            if observe is not None:
                observe(self._written(method, path, content, None))
            raise
        if observe is not None:
            observe(self._written(method, path, content, response))
        return response

    def _written(self, method: str, path: str, content: bytes | None, response: Response | None) -> WrittenObject:
        code, body, name, uid, version = None, b"", "", "", ""
        if response is not None:
            code = response.code
        is_clear = code is not None and code < _FIRST_UNCLEAR
        with suppress(ValueError, RecursionError):  # the caller raises an error for a response of another form
            if response is not None and response.code < _FIRST_ERROR:
                body = response.body  # an error page may be long
                metadata = scan_head(body).metadata
                name, uid, version = metadata.name, metadata.uid, metadata.resourceVersion
            elif method == "POST" and not is_clear:
                name = scan_head(content or b"").metadata.name
        write = Write(at=trio.current_time(), method=method, path=path, code=code, uid=uid, resource_version=version)
        caches = tuple(caches_of(self.transport, self.resource))
        return WrittenObject(write, self.resource, body, caches, self._read_version, is_clear=is_clear, new_name=name)

    async def _read_version(self, name: str, namespace: str) -> str:
        """Return the resourceVersion of an object, ``0`` if it does not exist, or that of a list without a name."""
        path = self.paths.collection(namespace=namespace or None)
        params = {"limit": "1"}
        if name:
            path, params = self.paths.object(name, namespace=namespace or None), {}
        where = self.paths.operation("get" if name else "list", name=name, namespace=namespace or None)
        response = await self.transport.request(
            "GET", path, params=params, accept=JSON, retries=self.retries, where=where
        )
        if name and response.code == _NOT_FOUND:
            return "0"
        check(response, method="GET", where=where)
        return scan_head(response.body).metadata.resourceVersion

    async def request(
        self,
        method: str,
        verb: str,
        at: LocatedObject,
        subresource: str | None = None,
        content: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> T:
        """Send a request for an object, and return the object in the response. It must be of this API's kind."""
        where = at.operation(verb, subresource)
        response = await self.send(method, at.path(subresource), where, content, content_type, params)
        return object_in(response, self.wire_format, method=method, where=where)

    async def request_any(
        self,
        method: str,
        verb: str,
        at: LocatedObject,
        subresource: str | None,
        content: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> T | Scale | Unstructured:
        """Send a request for an object, and return the object in the response. It may be of any kind."""
        if subresource is None or has_own_kind(subresource):
            return await self.request(method, verb, at, subresource, content, content_type, params)
        where = at.operation(verb, subresource)
        response = await self.send(method, at.path(subresource), where, content, content_type, params, accept=JSON)
        return subresource_in(response, self.wire_format, self.resource, subresource, method=method, where=where)

    async def send_body(
        self,
        method: Literal["POST", "PUT", "PATCH"],
        at: LocatedObject,
        subresource: str,
        body: M,
        params: Mapping[str, str],
    ) -> M:
        """Send the object of a subresource, and return the object in the response."""
        verb = {"POST": "create", "PUT": "replace", "PATCH": "apply"}[method]
        where = at.operation(verb, subresource)
        body = with_name(body, at.name)
        if isinstance(body, KubernetesObject):
            content = encode_request(body, is_applied=method == "PATCH")
        else:
            content = encode(body)  # the kind is a field of the body
        media_type = APPLY if method == "PATCH" else JSON
        response = await self.send(method, at.path(subresource), where, content, media_type, params, accept=JSON)
        return body_in(response, body, method=method, where=where)

    # --- requests for collections ---

    async def read_list(self, options: ListOptions, read: Callable[[ByteStream], Awaitable[R]]) -> R:
        """Request one page of a list, and read the body if the request succeeds."""
        where = self.paths.operation("list")

        async def read_success(body: ByteStream) -> R:
            if body.code != 200:
                raise await streamed_status_error(body, method="GET", where=where)
            return await read(body)

        return await self.transport.read(
            self.paths.collection(),
            read_success,
            params={**self.query, **list_params(options)},
            accept=self.wire_format.accept_list,
            retries=self.retries,
            where=where,
        )

    async def delete_collection(self, options: ListOptions, content: bytes | None) -> ObjectList[PartialObjectMetadata]:
        """Delete objects page by page, and return their metadata."""
        found: dict[str, PartialObjectMetadata] = {}
        path = self.paths.collection()
        observe = None if _is_dry(content) else write_observer.get()
        version = ""
        pages = 0
        while True:
            pages += 1
            try:
                page = await self._delete_page(options, content)
            except ExpiredError:
                if not options.continue_token:
                    raise
                # Start over.  Deleted objects are not listed again.
                options = attrs.evolve(options, continue_token=None)
                continue
            except BaseException:  # some objects may be deleted, even if the server has responded with an error
                if observe is not None:
                    observe(self._written("DELETE", path, None, None))
                raise
            if observe is not None:
                for one in page:
                    observe(self._removed(f"{path}/{one.name}", one.uid))
            found |= {one.uid: one for one in page}
            version = version or page.resource_version
            if not page.continue_token:
                return ObjectList(items=tuple(found.values()), resource_version=version, pages=pages)
            options = attrs.evolve(options, continue_token=page.continue_token)

    async def _delete_page(self, options: ListOptions, content: bytes | None) -> ObjectList[PartialObjectMetadata]:
        where = self.paths.operation("delete collection")
        wire_format: WireFormat[Any] = WireFormat(metadata_kind(self.kind), scan_whole)
        async with self.transport.stream(
            self.paths.collection(),
            method="DELETE",
            params=list_params(options),
            content=content,
            content_type=None if content is None else JSON,
            accept=wire_format.accept_list,
            for_watch=False,
            retries=self.retries,
            where=where,
        ) as body:
            if body.code != 200:
                raise await streamed_status_error(body, method="DELETE", where=where)
            listed: ObjectList[PartialObjectMetadata] = await read_list(body, wire_format, where)
            return listed

    def _removed(self, path: str, uid: str) -> WrittenObject:
        """Return the deletion of one object of a collection."""
        write = Write(at=trio.current_time(), method="DELETE", path=path, code=200, uid=uid)
        caches = tuple(caches_of(self.transport, self.resource))
        return WrittenObject(write, self.resource, b"", caches, self._read_version, is_clear=True, new_name="")


def delete_options(
    *,
    grace_period_seconds: int | None,
    propagation_policy: PropagationPolicy | None,
    dry_run: bool,
    uid: str | None = None,
    resource_version: str | None = None,
) -> bytes | None:
    """Return the body of a delete request, or None if no option is given."""
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    options = {
        "gracePeriodSeconds": grace_period_seconds,
        "propagationPolicy": propagation_policy,
        "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
        "dryRun": ("All",) if dry_run else None,
    }
    given = {key: value for key, value in options.items() if value is not None}
    return dumps({"kind": "DeleteOptions", "apiVersion": "v1", **given}) if given else None


def _is_dry(options: bytes | None) -> bool:
    """Return whether the body of a delete request asks for a dry run; its other values cannot contain quotes."""
    return options is not None and b'"dryRun"' in options


def check_field_manager(name: str) -> None:
    """Check the name of a field manager as the server does (apimachinery ``ValidateFieldManager``).

    Raises:
        ValueError: The name is empty, is longer than 128 characters, or contains characters that are not printable.
    """
    if not (name and len(name) <= 128 and name.isprintable()):
        raise ValueError(f"a field manager must be 1 to 128 printable characters, not {quoted(name)}")


def check_kind(found: ResourceInfo, caller: str, what: str = "pods", resources: Collection[str] = ()) -> None:
    """Check that a function supports the resource of an API.

    Args:
        found: The resource of the API.
        caller: The name of the function in the error message.
        what: The supported resource, or a description of several resources for the error message.
        resources: The supported resources. By default, only ``what`` is supported.

    Raises:
        TypeError: The function does not support this resource.
    """
    if str(found) not in (resources or (what,)):
        raise TypeError(f"{caller}() is for {what}, but this is the API of {found}")
