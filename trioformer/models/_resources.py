"""The API resource of a kind: its names and its properties on the server."""

from __future__ import annotations

import attrs

from ._lazy import Model, check_made
from ._mistakes import not_a_kind
from ._names import check_resource

__all__ = ["GroupVersionKind", "ResourceInfo", "resource_of"]


@attrs.frozen
class GroupVersionKind:
    """The name of a kind, such as ``apps/v1 Deployment``."""

    group: str
    """API group; empty for the core group."""
    version: str
    """Version, such as ``v1``."""
    kind: str
    """Kind, such as ``Deployment``."""

    @property
    def api_version(self) -> str:
        """``group/version``, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@attrs.frozen(kw_only=True)
class ResourceInfo:
    """The API resource of a kind: its names and its properties on the server.

    The names become parts of URL paths, so they must be valid for an API server.

    Raises:
        ValueError: A name is not valid.
        TypeError: A name is not a string.
    """

    group: str
    """API group, a DNS subdomain such as ``apps`` or ``example.com``; empty for the core group."""
    version: str
    """Version, a DNS label such as ``v1``."""
    kind: str
    """Kind, such as ``Pod``."""
    plural: str
    """The resource's name in URLs, a DNS label such as ``pods``."""
    namespaced: bool
    """Whether each object belongs to a namespace."""
    short_names: tuple[str, ...] = ()
    """The names that kubectl accepts instead of the plural."""
    subresources: tuple[str, ...] = ()
    """Subresources, such as ``status`` and ``scale``."""
    categories: tuple[str, ...] = ()
    """Groups of resources such as ``all``."""
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    """The verbs that the server supports for the resource."""
    singular: str = attrs.field(default=attrs.Factory(lambda it: str(it.kind).lower(), takes_self=True))
    """The singular name, such as ``pod``."""

    def __attrs_post_init__(self) -> None:
        check_resource(self.group, self.version, self.kind, self.plural, self.subresources)

    @property
    def api_version(self) -> str:
        """``group/version``, or only the version for the core group."""
        return self.gvk.api_version

    @property
    def gvk(self) -> GroupVersionKind:
        """The group, version and kind of the resource."""
        return GroupVersionKind(self.group, self.version, self.kind)

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the collection, of one object, or of a subresource.  Names are not percent-encoded."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def resource_of(cls: type[object]) -> ResourceInfo:
    """Return the API resource of a kind.

    Raises:
        TypeError: The class is not a kind, because it has no ``__resource__`` or attrs has not processed it.
    """
    if not isinstance(cls, type):
        raise not_a_kind(cls)
    if issubclass(cls, Model):
        check_made(cls)
    info = getattr(cls, "__resource__", None)
    if not isinstance(info, ResourceInfo):
        raise TypeError(f"{cls.__name__} is not a kind: it needs __resource__ = ResourceInfo(…)")
    return info
