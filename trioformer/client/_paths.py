"""The URL paths of a resource, and the names of its operations in errors."""

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
    """The paths of one resource, in one namespace or in all."""

    resource: ResourceInfo
    namespace: str | None
    """The namespace; None for all namespaces."""

    def __attrs_post_init__(self) -> None:
        if self.namespace is not None:
            if not self.resource.namespaced:
                raise ValueError(f"{self.resource} are not namespaced; omit the namespace {self.namespace!r}")
            if self.namespace == "":
                raise ValueError("a namespace must not be empty; pass None for all namespaces")
            _quoted("namespace", self.namespace)

    def __str__(self) -> str:
        return _in_namespace(str(self.resource), self.namespace)

    def collection(self, *, namespace: str | None = None) -> str:
        """Return the URL path of the collection, in the given namespace or in that of these paths."""
        namespace = self.namespace if namespace is None else namespace
        return self.resource.path(namespace=None if namespace is None else _quoted("namespace", namespace))

    def object(self, name: str, *, namespace: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of one object; never that of the collection: a DELETE would delete all objects."""
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
        what = "/".join(f"{part}" for part in (self.resource, name, subresource) if part)
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
    if not is_path_segment(segment):
        raise ValueError(f"a {what} must not be '.' or '..' and must not contain '/' or '%', not {quoted(segment)}")
    if segment.isascii() and segment.replace("-", "").isalnum():
        return segment
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"a {what} must be text that can be encoded as UTF-8, not {quoted(segment)}") from None
