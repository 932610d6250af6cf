"""Kinds whose objects contain only metadata.

The client requests ``PartialObjectMetadata``.  If a server sends complete objects anyway, this module removes
everything except the metadata, so the objects are always small.
``managedFields`` make up five sixths of a pod's metadata, and are rarely needed in objects that cannot be written.  So
``managedFields`` are removed, too, unless the program requests them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar

from .._text import one_line
from ..errors import DecodeError
from . import _lazy, _serde
from ._classes import frozen_model
from ._meta import _MAX_REPR, KubernetesObject, key_of
from ._resources import ResourceInfo, resource_of

__all__ = ["PartialObjectMetadata", "metadata_kind", "metadata_only"]


@frozen_model(kw_only=True)
class PartialObjectMetadata(KubernetesObject):
    """The metadata of an object (``meta/v1 PartialObjectMetadata``).

    This class itself is not a kind, because it has no resource.  :func:`metadata_kind` returns subclasses that are
    kinds, with the ``__resource__`` of the complete object.
    """

    has_managed_fields: ClassVar[bool] = False
    """Whether the objects keep ``managedFields``."""

    api_version: str = "meta.k8s.io/v1"
    kind: str = "PartialObjectMetadata"

    def __repr__(self) -> str:
        kind = type(self).__resource__.kind
        try:
            text = f"<metadata of {kind} {key_of(self)}{_at(self.resource_version)}>"
        except DecodeError as error:
            text = f"<metadata of {kind}: {error}>"
        return one_line(text, longest=_MAX_REPR)

    def __reduce__(self) -> tuple[Callable[..., KubernetesObject], tuple[object, ...]]:
        cls = type(self)
        return _unpickled, (resource_of(cls), cls.has_managed_fields, _lazy.encode(self))


def _at(version: str) -> str:
    return f" at {version}" if version else ""


def metadata_kind(
    kind: type[KubernetesObject] | ResourceInfo, *, managed_fields: bool = False
) -> type[PartialObjectMetadata]:
    """Return a kind whose objects contain only the metadata of another kind's objects.

    For example, ``client.api(metadata_kind(Pod))`` lists, watches, gets, patches and deletes pods, but receives only
    their metadata.
    An informer of such a kind needs much less memory.  Calls with the same resource return the same class.

    Args:
        kind: The complete kind, or its resource.
        managed_fields: Whether to keep ``metadata.managedFields``, which is usually the largest part of the metadata.

    Raises:
        TypeError: The argument is neither a kind nor a resource.
    """
    return _kind_at(kind if isinstance(kind, ResourceInfo) else resource_of(kind), managed_fields)


@functools.cache
def _kind_at(resource: ResourceInfo, managed_fields: bool) -> type[PartialObjectMetadata]:
    doc = f"The metadata of objects of {resource.api_version} {resource.kind}."
    members = {
        "__slots__": (),
        "__module__": __name__,
        "__doc__": doc,
        "__resource__": resource,
        "has_managed_fields": managed_fields,
    }
    return type(f"{resource.kind}Metadata", (PartialObjectMetadata,), members)


def _unpickled(resource: ResourceInfo, managed_fields: bool, data: bytes) -> KubernetesObject:
    return _lazy.from_json(_kind_at(resource, managed_fields), data)


_PREFIX = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
_metadata_of = _serde.level_decoder(("metadata",))


def metadata_only(data: bytes) -> bytes:
    """Return the JSON of an object's ``PartialObjectMetadata`` as new bytes.

    Raises:
        DecodeError: The bytes are not a JSON object.
    """
    try:
        (found,) = _metadata_of(data)
    except (ValueError, RecursionError) as error:
        raise _serde.decode_error(error, "an object's metadata") from error
    return _PREFIX + (bytes(found) or b"null") + b"}"
