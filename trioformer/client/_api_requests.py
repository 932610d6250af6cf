"""Requests of an :class:`Api` for single objects, and their responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final, get_args
from urllib.parse import quote

import attrs

from .._suggestions import attribute_hints, describe
from .._text import quoted
from .._util import NoPublicConstructor
from ..models import KubernetesObject, ResourceInfo, Unstructured, resource_of
from ..models._internal import is_path_segment
from ..transport._internal import ByteStream, Response, Transport
from ._object_ref import ObjectRef, reference_to
from ._options import FieldValidation, ListOptions, list_params
from ._subresources import has_own_kind, subresource_in
from .bodies._responses import object_in, streamed_status_error
from .bodies._wire_format import JSON, Scan, WireFormat

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

R = TypeVar("R")
T = TypeVar("T", bound=KubernetesObject)
A = TypeVar("A", bound="ApiRequests[Any]")

_METHODS_OF_OTHERS: Final = {
    "post": "write create(object)",
    "put": "write replace(object)",
    "read": "write get(name)",
}
"""Methods of other clients, and their equivalents here."""


def _described(obj: object, kind: type[KubernetesObject]) -> str:
    """Describe a value that is not an object of the kind; omit the content of a dict, which may be secret."""
    if isinstance(obj, KubernetesObject):
        return f"{obj!r} is not one"
    hint = f"; from_dict({kind.__name__}, ...) makes one" if isinstance(obj, Mapping) else ""
    return f"{describe(obj)} is not one{hint}"


class ApiRequests(Generic[T], metaclass=NoPublicConstructor):
    """The requests of the API of one kind; the base of :class:`Api`, which describes its attributes."""

    __slots__ = ("_field_manager", "_paths", "_retries", "_transport", "_wire_format", "kind", "namespace", "resource")

    if not TYPE_CHECKING:  # type checkers would accept every name
        __getattr__ = attribute_hints(**_METHODS_OF_OTHERS)

    def __init__(
        self,
        transport: Transport,
        kind: type[T],
        namespace: str | None,
        scan: Scan,
        field_manager: str | None = None,
    ) -> None:
        self._transport = transport
        self._field_manager = field_manager
        self._retries = True
        self.kind: type[T] = kind
        self.resource: ResourceInfo = resource_of(kind)
        self._wire_format = WireFormat(kind, scan)
        self.namespace: str | None = namespace
        self._paths = ResourcePaths(self.resource, namespace)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._paths} at {self._transport.server}>"

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
        """Send a request, and return the object of this kind in its response."""
        response = await self._send(method, path, where, content, content_type, params)
        return object_in(response, self._wire_format, method=method, where=where)

    async def _request_any(
        self,
        method: str,
        where: str,
        name: str,
        namespace: str | None,
        subresource: str | None,
        content: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> T | Scale | Unstructured:
        """Send a request about one object, and return the object in its response, whatever its kind."""
        path = self._paths.object(name, namespace=namespace, subresource=subresource)
        if subresource is None or has_own_kind(subresource):
            return await self._request(method, path, where, content=content, content_type=content_type, params=params)
        response = await self._send(method, path, where, content, content_type, params, accept=JSON)
        return subresource_in(response, self._wire_format, self.resource, subresource, method=method, where=where)

    async def _send(
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
        given = None if content is None else content_type
        accept = self._wire_format.accept if accept is None else accept
        return await self._transport.request(
            method,
            path,
            params=params,
            content=content,
            content_type=given,
            accept=accept,
            retries=self._retries,
            where=where,
        )

    def _params(
        self,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
        force: bool = False,
    ) -> dict[str, str]:
        """Return the query of a write; the client's field manager is the default."""
        manager = self._field_manager if field_manager is None else field_manager
        return write_params(
            field_manager=manager, dry_run=dry_run, field_validation=field_validation, force=force or None
        )

    async def _read_list(self, options: ListOptions, read: Callable[[ByteStream], Awaitable[R]]) -> R:
        """Request one page, and read the body of a successful response."""
        where = self._paths.operation("list")

        async def read_success(body: ByteStream) -> R:
            if body.code != 200:
                raise await streamed_status_error(body, method="GET", where=where)
            return await read(body)

        return await self._transport.read(
            self._paths.collection(),
            read_success,
            params=list_params(options),
            accept=self._wire_format.accept_list,
            retries=self._retries,
            where=where,
        )

    def _open_watch(
        self, params: Mapping[str, str], where: str, *, resumable: bool
    ) -> AbstractAsyncContextManager[ByteStream]:
        """Request a watch of the collection, and stream the response."""
        return self._transport.stream(
            self._paths.collection(),
            params=params,
            accept=self._wire_format.accept,
            for_watch=True,
            resumable=resumable,
            retries=self._retries,
            where=where,
        )

    def _locate(self, target: str | ObjectRef | T, namespace: str | None) -> tuple[str, str | None]:
        """Return the name and namespace of an object, given its name, a reference, or the object itself.

        Raises:
            TypeError: It is an object of another kind, or something else.
            ValueError: Its namespace differs from this API's, or from the given one.
        """
        if isinstance(target, str):
            name = target
        else:
            ref = reference_to(target, self.resource)
            if namespace not in (None, ref.namespace):
                raise ValueError(f"{target!r} is not in namespace {namespace!r}")
            name, namespace = ref.name, ref.namespace
        if namespace is None:
            return name, self.namespace
        if not self.resource.namespaced:
            raise ValueError(f"{self.resource} are not namespaced; omit the namespace {namespace!r}")
        if namespace != (self.namespace or namespace):
            raise ValueError(f"{name} is in namespace {namespace!r}, and this is the API of {self.namespace!r}")
        return name, namespace

    def _check_kind(self, method: str, resource: str) -> None:
        if str(self.resource) != resource:
            raise TypeError(f"{method}() is for {resource}, and this is the API of {self.resource}")

    def _namespace_for(self, obj: T) -> str | None:
        """Return the namespace to write an object to."""
        if not isinstance(obj, self.kind):
            raise TypeError(f"this is the API of {self.kind.__name__}, and {_described(obj, self.kind)}")
        if self._wire_format.is_partial:
            kind = self.resource.kind
            raise TypeError(f"{obj!r} is only metadata and cannot be written; patch it, or use the API of {kind}")
        if not self.resource.namespaced:
            if obj.namespace is not None:
                raise ValueError(f"{obj!r} has a namespace, but {self.resource} are not namespaced")
            return None
        namespace = self.namespace if obj.namespace is None else obj.namespace
        if namespace is None:
            raise ValueError(f"neither {obj!r} nor this API has a namespace; set one of them")
        if namespace != (self.namespace or namespace):
            raise ValueError(f"{obj!r} is not in namespace {self.namespace!r}, which is the namespace of this API")
        return namespace


@final
@attrs.frozen
class LocatedObject:
    """One object of an API, for requests of other packages."""

    transport: Transport
    name: str
    namespace: str | None
    _paths: ResourcePaths

    def path(self, subresource: str) -> str:
        """Return the path of a subresource."""
        return self._paths.object(self.name, namespace=self.namespace, subresource=subresource or None)

    def operation(self, verb: str, subresource: str | None = None) -> str:
        """Return the operation, for errors."""
        return self._paths.operation(verb, name=self.name, namespace=self.namespace, subresource=subresource)


def located(
    api: ApiRequests[T], caller: str, name: str | ObjectRef | T, namespace: str | None, resource: str | None = "pods"
) -> LocatedObject:
    """Return one object of an API, for functions that send requests about it.

    Raises:
        TypeError: The API is not for ``resource``, or ``name`` has another type.
        ValueError: The object's namespace differs from the API's, or from the given one.
    """
    if resource is not None:
        api._check_kind(caller, resource)
    found, namespace = api._locate(name, namespace)
    return LocatedObject(api._transport, found, namespace, api._paths)


def without_retries(api: A) -> A:
    """Return an API that sends each request once, for callers with their own retries.

    After a 401, the request is still sent again with a new credential.
    """
    found = copy(api)
    found._retries = False
    return found


async def obtain_credential(api: ApiRequests[Any]) -> None:
    """Run the credential plugin if needed, before a request with a deadline that is too short for it.

    Without a plugin, this does not even execute a checkpoint.

    Raises:
        ExecPluginError: The plugin did not return a credential.
        trio.ClosedResourceError: The client is closed.

    Cancellation:
        If no other request waits for the plugin, it is killed.
    """
    await api._transport.obtain_credential()


def plugin_of(api: ApiRequests[Any]) -> str:
    """Return the command of the credential plugin, or an empty string."""
    return api._transport.plugin


# --- the paths and the queries of requests ---


@final
@attrs.frozen
class ResourcePaths:
    """The paths of one resource, in one namespace or in all namespaces."""

    resource: ResourceInfo
    namespace: str | None
    """The namespace; None for all namespaces."""
    _name: str = attrs.field(init=False)
    _cluster: str = attrs.field(init=False)
    """The path of the collection in all namespaces."""
    _collection: str = attrs.field(init=False)
    """The path of the collection in the namespace."""

    def __attrs_post_init__(self) -> None:
        if self.namespace is not None:
            if not self.resource.namespaced:
                raise ValueError(f"{self.resource} are not namespaced; omit the namespace {self.namespace!r}")
            if self.namespace == "":
                raise ValueError("a namespace must not be empty; pass None for all namespaces")
            _quoted("namespace", self.namespace)
        object.__setattr__(self, "_name", str(self.resource))
        object.__setattr__(self, "_cluster", self.resource.path())
        object.__setattr__(self, "_collection", self._in(self.namespace))

    def __str__(self) -> str:
        return _in_namespace(self._name, self.namespace)

    def _in(self, namespace: str | None) -> str:
        if namespace is None or not self.resource.namespaced:
            return self._cluster
        return self.resource.path(namespace=_quoted("namespace", namespace))

    def collection(self, *, namespace: str | None = None) -> str:
        """Return the URL path of the collection, in the given namespace or the default one."""
        return self._collection if namespace in (None, self.namespace) else self._in(namespace)

    def object(self, name: str, *, namespace: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of one object; never the collection's path: a DELETE of it would delete all objects."""
        namespace = self.namespace if namespace is None else namespace
        if namespace is None and self.resource.namespaced:
            hint = "pass namespace=, or one to Client.api()"
            raise ValueError(f"{self.resource} are namespaced, and this API has no namespace; {hint}")
        parts = [self.collection(namespace=namespace), _quoted("name", name)]
        if subresource is not None:
            parts.append(_quoted("subresource", subresource))
        return "/".join(parts)

    def operation(
        self, verb: str, *, name: str = "", namespace: str | None = None, subresource: str | None = None
    ) -> str:
        """Describe an operation for errors, such as "list pods in namespace default"."""
        what = "/".join(f"{part}" for part in (self._name, name, subresource) if part)
        return f"{verb} {_in_namespace(what, self.namespace if namespace is None else namespace)}"


def _in_namespace(what: str, namespace: str | None) -> str:
    return what if namespace is None else f"{what} in namespace {namespace}"


def _quoted(what: str, segment: object) -> str:
    """Quote one segment of a URL path, after the checks of apimachinery's ``IsValidPathSegmentName``."""
    if not isinstance(segment, str):
        hint = f"; pass its {what}, as in obj.{what}" if isinstance(segment, KubernetesObject) else ""
        raise TypeError(f"a {what} must be a string, not {describe(segment)}{hint}")
    if not segment:
        raise ValueError(f"a {what} must not be empty")
    if segment.isascii() and segment.replace("-", "").isalnum():
        return segment
    if not is_path_segment(segment):
        raise ValueError(f"a {what} must not be '.' or '..' and must not contain '/' or '%', not {quoted(segment)}")
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"a {what} must be text that can be encoded as UTF-8, not {quoted(segment)}") from None


def check_field_manager(name: str) -> None:
    """Check the name of a field manager as the server does (apimachinery ``ValidateFieldManager``).

    Raises:
        ValueError: It is empty, longer than 128 characters, or has characters that cannot be printed.
        TypeError: It is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"a field manager must be a string, not {describe(name)}")
    if not (name and len(name) <= 128 and name.isprintable()):
        raise ValueError(f"a field manager must be 1 to 128 printable characters, not {quoted(name)}")


def write_params(
    *,
    field_manager: str | None = None,
    dry_run: bool = False,
    field_validation: FieldValidation | None = None,
    force: bool | None = None,
) -> dict[str, str]:
    """Return the query parameters of a write, omitting None and false values.

    Raises:
        ValueError: The field manager or the field validation is not valid.
    """
    if field_manager is not None:
        check_field_manager(field_manager)
    if field_validation not in (None, *get_args(FieldValidation)):
        known = ", ".join(map(repr, get_args(FieldValidation)))
        raise ValueError(f"a field validation must be one of {known}, not {quoted(str(field_validation))}")
    params = {
        "fieldManager": field_manager,
        "dryRun": "All" if dry_run else None,
        "fieldValidation": field_validation,
        "force": "true" if force else None,
    }
    return {name: value for name, value in params.items() if value is not None}
