"""The request, which names an object to reconcile."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, final

import attrs

from ..client import ObjectRef


@final
@attrs.frozen(cache_hash=True, repr=False)
class Request(ObjectRef):
    """The name of an object to reconcile.

    A request does not contain an event.  Several events of an object may result in a single request, and ``reconcile``
    reads the current state of the object.

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
