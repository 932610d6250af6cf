"""References to objects. Many methods accept a reference instead of a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .._suggestions import describe
from .._text import one_line
from ..models import KubernetesObject, ResourceInfo, resource_of

if TYPE_CHECKING:
    from typing import Self


@attrs.frozen(cache_hash=True, repr=False)
class ObjectRef:
    """The namespace and name of an object. The kind is not included, because the API or lister knows it.

    ``str(ref)`` is the object's key: ``namespace/name``, or ``name`` if the object has no namespace.

    Source: client-go ``tools/cache``, ``ObjectName``.
    """

    namespace: str | None
    """The object's namespace, or None for an object of a cluster-scoped kind."""
    name: str
    """The object's name."""

    def __attrs_post_init__(self) -> None:
        # In Kubernetes, an empty namespace also means that there is no namespace.
        # This is not a converter, because pyright would then treat the attribute as a descriptor.
        if self.namespace == "":
            object.__setattr__(self, "namespace", None)

    @classmethod
    def of(cls, obj: KubernetesObject) -> Self:
        """Return a reference to an object."""
        return cls(obj.namespace, obj.name)

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return the reference for a key, such as a key from a lister.

        Args:
            key: The key of the object: ``namespace/name`` or ``name``.

        Raises:
            ValueError: The key has neither of these forms.
        """
        namespace, slash, name = key.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"{key!r} is not a valid key; it must be 'namespace/name' or 'name'")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace is not None else self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {one_line(str(self))}>"


def reference_to(target: object, wanted: ResourceInfo | None, *, reader: str = "API") -> ObjectRef:
    """Return a reference to the object that the caller passed instead of a name.

    Raises:
        TypeError: The value is neither an ``ObjectRef`` nor an object of the wanted kind.
    """
    if isinstance(target, ObjectRef):
        return target
    if not isinstance(target, KubernetesObject):
        accepted = "a name, an ObjectRef, a controller's request or an object"
        raise TypeError(f"expected {accepted}, not {describe(target)}")
    found = wanted and resource_of(type(target))
    if wanted and found and (found.group, found.kind) != (wanted.group, wanted.kind):
        kind = wanted.kind if found.kind != wanted.kind else f"{wanted.api_version} {wanted.kind}"
        hint = f"for the {kind} with the same name, pass Request.of(obj)"
        raise TypeError(f"the {reader} of {kind} does not accept {target!r}; {hint}")
    return ObjectRef.of(target)
