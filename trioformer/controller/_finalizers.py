"""Finalizers: names in an object's metadata that delay its removal until a controller has cleaned up.

Finalizers are changed with merge patches, which replace the whole list.  Each patch contains the object's
resourceVersion, so that a finalizer of another controller is never lost.

Source: controller-runtime ``pkg/controller/controllerutil`` (``AddFinalizer``, ``RemoveFinalizer``); kube-rs
``kube-runtime/src/finalizer.rs``; the API conventions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from ..client import Api, Client
from ..client._internal import ReplacedError, read_same, write_same
from ..errors import NotFoundError
from ..models import KubernetesObject
from ._create_or_update import api_of

T = TypeVar("T", bound=KubernetesObject)


async def ensure_finalizer(api: Api[T] | Client, obj: T, finalizer: str) -> T:
    """Add a finalizer to an object, if it is missing.

    Call this function before creating anything that must be cleaned up.

    Args:
        api: The client, or an API for the object's kind.
        obj: The object, for example from a lister.  An object without a resourceVersion is read from the server first.
        finalizer: The name of the finalizer with a domain, such as ``example.com/website``.

    Returns:
        The object as the server stored it.  If ``obj`` already has the finalizer, ``obj`` is returned without a
        request.

    Raises:
        ValueError: ``obj`` is being deleted, so the server would reject a new finalizer.
        NotFoundError: The object no longer exists.
        ConflictError: Other clients changed the object during each attempt, or the object was replaced by a new object
            with the same name.
        InvalidError: The object is being deleted, or the name of the finalizer is not valid.

    Cancellation: the server may have added the finalizer.  A later call then finds the finalizer.
    """
    if not obj.resource_version:
        obj = await read_same(api_of(api, obj), obj)
    if finalizer in obj.metadata.finalizers:
        await trio.lowlevel.checkpoint()
        return obj
    if obj.metadata.deletion_timestamp is not None:
        raise ValueError(
            f"cannot add a finalizer to {obj!r}, which is being deleted; check metadata.deletion_timestamp first"
        )
    return await _change(api_of(api, obj), obj, lambda old: [*old, *([] if finalizer in old else [finalizer])])


async def drop_finalizer(api: Api[T] | Client, obj: T, finalizer: str) -> T | None:
    """Remove a finalizer from an object, if it is present.

    Call this function after the cleanup.  The server removes a deleted object when its last finalizer is removed.

    Args:
        api: The client, or an API for the object's kind.
        obj: The object, for example from a lister.  An object without a resourceVersion is read from the server first.
        finalizer: The name of the finalizer.

    Returns:
        The object as the server stored it, or None if the object no longer exists.  If ``obj`` does not have the
        finalizer, ``obj`` is returned without a request.

    Raises:
        ConflictError: Other clients changed the object during each attempt.

    Cancellation: the server may have removed the finalizer and the object.
    """
    try:
        if not obj.resource_version:
            obj = await read_same(api_of(api, obj), obj)
        if finalizer not in obj.metadata.finalizers:
            await trio.lowlevel.checkpoint()
            return obj
        return await _change(api_of(api, obj), obj, lambda old: [each for each in old if each != finalizer])
    except ReplacedError:
        return None
    except NotFoundError as error:
        if error.is_unexpected_server_error:  # a proxy's page
            raise
        return None


async def _change(api: Api[T], obj: T, change: Callable[[tuple[str, ...]], list[str]]) -> T:
    """Change the finalizers of an object, and return the object as the server stored it."""

    async def write(now: T) -> T:
        old = now.metadata.finalizers
        new = change(old)
        if new == list(old):
            return now
        metadata = {"finalizers": new or None, "resourceVersion": now.resource_version}
        return await api.patch(now, {"metadata": metadata})

    return await write_same(api, obj, write)
