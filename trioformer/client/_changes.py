"""Send changes to the object that was read, and never to a new object with the same name.

The uid cannot be the only precondition of a patch: in a patch of the status of a custom object, kube-apiserver ignores
all metadata except the resourceVersion (apiextensions-apiserver, ``pkg/registry/customresource/status_strategy.go``).
So each patch contains the resourceVersion of a state that has the right uid.  After a conflict, the next state is read,
and the patch is sent again unless somebody else has changed the same fields.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from ..errors import ConflictError
from ..models import KubernetesObject, json_equal, merge_patch

if TYPE_CHECKING:
    from ._api_verbs import ApiVerbs
    from ._options import FieldValidation

STATUS_TRIES: Final = 10
"""The largest number of attempts to change a status.  A status may have many writers, each with fields of its own."""

T = TypeVar("T", bound=KubernetesObject)


class ReplacedError(ConflictError):
    """The object was replaced by a new object with the same name."""


async def send_changes(
    api: ApiVerbs[T],
    old: T,
    patch: dict[str, Any],
    subresource: Literal["status"] | None,
    optimistic_lock: bool,
    dry_run: bool,
    field_validation: FieldValidation | None,
    field_manager: str | None,
) -> T:
    """Send a merge patch that was computed from the state ``old``; see :meth:`Api.update`."""
    if optimistic_lock and not old.resource_version:
        raise ValueError(f"{old!r} has no resourceVersion; pass the object as it was read from the server")
    if not patch:
        return old
    is_guarded = subresource == "status" and bool(old.uid and old.resource_version)

    def check(now: T) -> None:
        others = merge_patch(old, now)
        if path := _same_change(patch, others):
            text = f"{now!r} has changed at {path} since resourceVersion {old.resource_version}"
            raise ConflictError(text, code=409, reason="Conflict")

    async def write(now: T) -> T:
        sent = patch
        if optimistic_lock or is_guarded:
            uid = {"uid": now.uid} if now.uid else {}
            sent = {**patch, "metadata": {**patch.get("metadata", {}), **uid, "resourceVersion": now.resource_version}}
        return await api.patch(
            now,
            sent,
            subresource=subresource,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

    tries = STATUS_TRIES if is_guarded and not optimistic_lock else 1
    return await write_same(api, old, write, tries=tries, check=check)


def _same_change(mine: dict[str, Any], others: dict[str, Any], path: str = "") -> str:
    """Return the path of the first field to which two merge patches give different values, or an empty string."""
    for name in sorted(mine.keys() & others.keys()):
        here = f"{path}.{name}" if path else name
        one, other = mine[name], others[name]
        if isinstance(one, dict) and isinstance(other, dict):
            if found := _same_change(one, other, here):
                return found
        elif not json_equal(one, other):
            return here
    return ""


async def write_same(
    api: ApiVerbs[T],
    obj: T,
    write: Callable[[T], Awaitable[T]],
    *,
    tries: int = 4,
    check: Callable[[T], object] = lambda now: None,
) -> T:
    """Write a change to an object.  After a conflict, read the object and repeat the change.

    Args:
        api: The API for the object's kind.
        obj: The object with its uid and its resourceVersion.
        write: The function that sends the change with the resourceVersion of the given state.
        tries: The largest number of calls to ``write``.
        check: A function that is called with each state that was read, and may raise an exception.

    Raises:
        ReplacedError: The name belongs to a new object.
        ConflictError: The last call to ``write`` raised this error, or ``check`` did.
        NotFoundError: The object does not exist.
    """
    now = obj
    while True:
        tries -= 1
        try:
            return await write(now)
        except ConflictError:
            if not tries:
                raise
        now = await read_same(api, obj)
        check(now)


async def read_same(api: ApiVerbs[T], obj: T) -> T:
    """Read an object.

    Raises:
        ReplacedError: The name belongs to a new object.
        NotFoundError: The object does not exist.
    """
    now = await api.get(obj)
    check_same(obj, obj.uid, now)
    return now


def check_same(obj: KubernetesObject, uid: str, now: KubernetesObject) -> None:
    """Check that the object with this name still has this uid, unless the uid is empty.

    Raises:
        ReplacedError: The name belongs to a new object.
    """
    if uid and now.uid != uid:
        text = f"{obj!r} with uid {uid} no longer exists; the current object has uid {now.uid}"
        raise ReplacedError(text, code=409, reason="Conflict")
