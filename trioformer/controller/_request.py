"""The request: the name of an object to be reconciled; and the type of requests of other forms."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, final

import attrs

from ..client import ObjectRef


@final
@attrs.frozen(cache_hash=True, repr=False)
class Request(ObjectRef):
    """The name of an object to be reconciled; the reconcile function knows its kind.

    A request names the object, and not what happened to it: many events become one request, and the object is read when
    the request is handled.

    Source: controller-runtime ``pkg/reconcile``, ``Request``.
    """


if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type parameters have defaults since Python 3.13

    K = TypeVar("K", bound=Hashable, default=Request)
    K_contra = TypeVar("K_contra", bound=Hashable, default=Request, contravariant=True)
else:
    from typing import TypeVar

    K = TypeVar("K")
    K_contra = TypeVar("K_contra", contravariant=True)
