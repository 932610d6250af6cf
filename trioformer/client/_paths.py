"""The URL paths of a resource, and descriptions of operations for error messages."""

from __future__ import annotations

from typing import final
from urllib.parse import quote

import attrs

from .._suggestions import describe
from .._text import quoted
from ..models import KubernetesObject, ResourceInfo
from ..models._internal import is_path_segment


@final
@attrs.frozen
class ResourcePaths:
    """The URL paths of one resource, in one namespace or in all namespaces."""

    resource: ResourceInfo
    namespace: str | None
    """The namespace, or None for all namespaces."""
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
        """Return the URL path of the collection in a namespace.

        If ``namespace`` is None, ``self.namespace`` is used.
        """
        return self._collection if namespace in (None, self.namespace) else self._in(namespace)

    def object(self, name: str, *, namespace: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of one object.

        The result is never the path of a collection, because a DELETE request to a collection would delete all its
        objects.
        """
        namespace = self.namespace if namespace is None else namespace
        if namespace is None and self.resource.namespaced:
            hint = "pass namespace= to this method or to Client.api()"
            raise ValueError(f"{self.resource} are namespaced, and this API has no namespace; {hint}")
        parts = [self.collection(namespace=namespace), _quoted("name", name)]
        if subresource is not None:
            parts.append(_quoted("subresource", subresource))
        return "/".join(parts)

    def operation(
        self, verb: str, *, name: str = "", namespace: str | None = None, subresource: str | None = None
    ) -> str:
        """Return a description of an operation for error messages, such as "list pods in namespace default"."""
        what = "/".join(f"{part}" for part in (self._name, name, subresource) if part)
        return f"{verb} {_in_namespace(what, self.namespace if namespace is None else namespace)}"


def _in_namespace(what: str, namespace: str | None) -> str:
    return what if namespace is None else f"{what} in namespace {namespace}"


def _quoted(what: str, segment: object) -> str:
    """Check a segment of a URL path as apimachinery's ``IsValidPathSegmentName`` does, and quote it."""
    if not isinstance(segment, str):
        hint = f"; pass its {what}, as in obj.{what}" if isinstance(segment, KubernetesObject) else ""
        raise TypeError(f"a {what} must be a string, not {describe(segment)}{hint}")
    if not segment:
        raise ValueError(f"a {what} must not be empty")
    if segment.isascii() and segment.replace("-", "").isalnum():
        return segment
    if not is_path_segment(segment):
        raise ValueError(f"a {what} must not be '.' or '..' and must not contain '/' or '%': {quoted(segment)}")
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"a {what} must be text that can be encoded as UTF-8, not {quoted(segment)}") from None
