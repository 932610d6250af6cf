"""The argument of a webhook's function, and the exception with which the function refuses a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

import attrs

from ..client._internal import REASONS
from ..models import JSON, FrozenMap, KubernetesObject
from ..models.authentication_v1 import UserInfo

K = TypeVar("K", bound=KubernetesObject)
Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]

_UNKNOWN_USER: Final = UserInfo()


@final
@attrs.frozen(kw_only=True, eq=False)
class AdmissionRequest(Generic[K]):
    """A request to kube-apiserver that a webhook must decide on (``admission/v1 AdmissionRequest``).

    A test can call a function with a request that it has made itself, for example
    ``AdmissionRequest(object=website, operation="CREATE")``.
    """

    object: K
    """The object as it would be stored.  For DELETE, the object that would be deleted.  For a subresource such as
    ``scale``, the object of the subresource."""
    old: K | None = None
    """The stored object, for UPDATE and DELETE."""
    operation: str = "CREATE"
    """``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``."""
    user: UserInfo = _UNKNOWN_USER
    """The user who sends the request."""
    dry_run: bool = False
    """Whether nothing will be stored.  A function with side effects must not have them then."""
    namespace: str | None = None
    """The namespace of the object, or None if it has none."""
    name: str = ""
    """The name of the object, or an empty string if the server is going to generate it."""
    uid: str = ""
    """The unique identifier of this call, which is not the uid of the object."""
    subresource: str = ""
    """The subresource, such as ``status``, or an empty string for the object itself."""
    options: Mapping[str, JSON] = FrozenMap()
    """The options of the operation, such as a ``meta/v1 CreateOptions``, with the API's names."""


@final
class Denied(Exception):  # noqa: N818  # not an error: the function works
    """An exception with which the function of a webhook refuses a request.

    The user sees the message as ``admission webhook "…" denied the request: <message>``.

    Args:
        message: The reason for the user, which should say what to change.
        causes: A mapping of fields, such as ``spec.size``, to what is wrong with each of them.
        warnings: Texts that kubectl prints as warnings.
        code: The HTTP status code of the response, from 400 to 599.
        reason: The machine-readable reason, such as ``Invalid``.  The default, None, selects the reason that
            kube-apiserver uses with this code.

    Raises:
        ValueError: The code is not the code of an error.
    """

    def __init__(
        self,
        message: str,
        causes: Mapping[str, str] | None = None,
        *,
        warnings: Sequence[str] = (),
        code: int = 403,
        reason: str | None = None,
    ) -> None:
        if not 400 <= code < 600:
            raise ValueError(f"the code of a refusal must be from 400 to 599, not {code}")
        super().__init__(message)
        self.message = message
        self.causes: dict[str, str] = dict(causes or {})
        self.warnings: tuple[str, ...] = tuple(warnings)
        self.code = code
        self.reason: str = REASONS.get(code, "") if reason is None else reason
