"""The request: the name of an object to be reconciled; and the type of requests of other forms."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, final

import attrs

from .._text import one_line
from ..models import KubernetesObject


@final
@attrs.frozen(cache_hash=True, repr=False)
class Request:
    """The name of an object to be reconciled; the reconcile function knows its kind.

    A request names the object, and not what happened to it: many events become one request, and the object is read when
    the request is handled.
    ``str(request)`` is the object's key, ``namespace/name`` or ``name``.

    Source: controller-runtime ``pkg/reconcile``, ``Request``; client-go ``tools/cache``, ``ObjectName``.
    """

    namespace: str | None
    """The object's namespace; None for a cluster-scoped kind."""
    name: str
    """The object's name."""

    def __attrs_post_init__(self) -> None:
        # Not a converter: for pyright the attribute would be a descriptor, and a request not an ObjectName.
        if self.namespace == "":
            object.__setattr__(self, "namespace", None)

    @classmethod
    def of(cls, obj: KubernetesObject) -> Request:
        """Make the request for an object."""
        return cls(obj.namespace, obj.name)

    @classmethod
    def parse(cls, key: str) -> Request:
        """Make the request for a key, for example one from a lister.

        Args:
            key: ``namespace/name`` or ``name``.

        Raises:
            ValueError: The key has another form.
        """
        namespace, slash, name = key.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"{key!r} is not a valid key; it must be 'namespace/name' or 'name'")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace is not None else self.name

    def __repr__(self) -> str:
        return f"<Request {one_line(str(self))}>"


if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type parameters have defaults since Python 3.13

    K = TypeVar("K", bound=Hashable, default=Request)
    K_contra = TypeVar("K_contra", bound=Hashable, default=Request, contravariant=True)
else:
    from typing import TypeVar

    K = TypeVar("K")
    K_contra = TypeVar("K_contra", contravariant=True)
