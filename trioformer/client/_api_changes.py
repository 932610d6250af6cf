"""The methods of an :class:`Api` that change an object from one state to another."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Literal, ParamSpec, TypeVar, cast

import attrs

from .._suggestions import check_sync, describe
from ..models import KubernetesObject, key_of, merge_patch
from ._api_reads import ApiReads
from ._api_writes import ApiWrites
from ._object_ref import ObjectRef
from ._options import FieldValidation
from ._retry_on_conflict import retry_on_conflict

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=KubernetesObject)

_CHANGE = "def change(obj): return attrs.evolve(obj, ...)"


def _of_two_states(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Name the method to call instead if one object is given: in other clients, these names replace an object."""

    @functools.wraps(method)
    async def call(*args: P.args, **given: P.kwargs) -> R:
        given_states = len(args) - 1 + ("new" in given)  # the first argument is the API
        if given_states == 1 and "old" not in given:
            name = method.__name__
            instead = name.replace("update", "replace")
            raise TypeError(f"{name}() takes two states, old and new, and sends what has changed; write {instead}(obj)")
        return await method(*args, **given)

    return call


class ApiChanges(ApiReads[T], ApiWrites[T]):
    """The methods that send changes; a base of :class:`Api`, which describes their errors."""

    __slots__ = ()

    @_of_two_states
    async def update(
        self,
        old: T,
        new: T,
        *,
        optimistic_lock: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Send the difference between two states of an object as a merge patch, and return the stored object.

        ``await websites.update(site, attrs.evolve(site, metadata=attrs.evolve(site.metadata, labels=labels)))`` changes
        the labels and keeps everything else, including changes by other programs since ``site`` was read.
        Fields that ``new`` no longer has are removed.
        Lists are replaced as a whole.

        If the kind has a status subresource, the status is not sent; call :meth:`update_status`.

        Args:
            old: The object as it was read, such as from a cache.
            new: The desired object, usually ``attrs.evolve(old, …)``.
            optimistic_lock: Fail if the object has changed since ``old`` was read.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Returns:
            The object as the server has stored it; ``old``, without a request, if nothing differs.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: With ``optimistic_lock``: the object has changed since ``old`` was read.
            InvalidError: The result is not valid.
            TypeError: The objects are of another kind than this API.
            ValueError: They have different names; or ``old`` has no resourceVersion for the ``optimistic_lock``.
        """
        patch = merge_patch(old, new)
        if "status" in self.resource.subresources:
            patch.pop("status", None)
        return await self._send_changes(
            old,
            patch,
            None,
            optimistic_lock=optimistic_lock,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

    @_of_two_states
    async def update_status(
        self,
        old: T,
        new: T,
        *,
        optimistic_lock: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Send the difference between two statuses of an object, and return the stored object.

        ``await websites.update_status(site, attrs.evolve(site, status=status))`` also removes fields that the new
        status no longer has, such as a message.
        Other differences between the objects are not sent.

        Args:
            old: As for :meth:`update`.
            new: As for :meth:`update`.
            optimistic_lock: As for :meth:`update`.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Returns:
            The object as the server has stored it; ``old``, without a request, if nothing differs.

        Raises:
            NotFoundError: The object or its status subresource does not exist.
            ConflictError: As for :meth:`update`.
            InvalidError: As for :meth:`update`.
            TypeError: As for :meth:`update`.
            ValueError: As for :meth:`update`.
        """
        found = merge_patch(old, new)
        return await self._send_changes(
            old,
            {"status": found["status"]} if "status" in found else {},
            "status",
            optimistic_lock=optimistic_lock,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

    async def _send_changes(
        self,
        old: T,
        patch: dict[str, object],
        subresource: Literal["status"] | None,
        *,
        optimistic_lock: bool,
        dry_run: bool,
        field_validation: FieldValidation | None,
        field_manager: str | None,
    ) -> T:
        if not isinstance(old, self.kind):
            raise TypeError(f"this is the API of {self.kind.__name__}, and {describe(old)} is not one")
        if optimistic_lock:
            if not old.resource_version:
                raise ValueError(f"{old!r} has no resourceVersion; pass the object as it was read from the server")
            changes = cast("dict[str, object]", patch.get("metadata") or {})
            locked = {**patch, "metadata": {**changes, "resourceVersion": old.resource_version}}
        else:
            locked = patch
        if not patch:
            return old
        return await self.patch(
            old,
            locked,
            subresource=subresource,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

    async def update_with_retry(
        self,
        name: str | ObjectRef | T,
        change: Callable[[T], T],
        *,
        namespace: str | None = None,
        subresource: Literal["status"] | None = None,
        tries: int = 5,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Read an object, change it, and replace it; start over after a conflict.

        For example::

            def add_one(counter: ConfigMap) -> ConfigMap:
                return attrs.evolve(counter, data={**counter.data, "n": str(int(counter.data["n"]) + 1)})


            await config_maps.update_with_retry("counter", add_one)

        No change by another program is lost: the object is replaced only if it has not changed since it was read.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            change: Takes the object as it was read, and returns the changed one.  It is called once per try.
                If it returns an equal object, nothing is sent.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            subresource: ``status`` replaces only the status.
            tries: The maximum number of tries; see :func:`retry_on_conflict`.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Returns:
            The object as the server has stored it.

        Raises:
            ConflictError: In each try, the object changed between reading and replacing.
            NotFoundError: The object does not exist.
            InvalidError: The changed object is not valid.
            TypeError: ``change`` is async, or does not return an object of this kind.
            ValueError: ``change`` returns an object with another name or namespace.
        """
        check_sync(change, "change", _CHANGE)
        replace = self.replace if subresource is None else self.replace_status

        async def read_and_replace() -> T:
            old = await self.get(name, namespace=namespace)
            new = change(old)
            if not isinstance(new, self.kind):
                raise TypeError(f"change must return the changed {self.kind.__name__}, not {describe(new)}; {_CHANGE}")
            if (new.name, new.namespace) != (old.name, old.namespace):
                raise ValueError(f"change must return a changed {key_of(old)}, not {key_of(new)}")
            if new == old:
                return old
            if not new.resource_version:  # a new object: without a version it would overwrite any stored object
                metadata = attrs.evolve(new.metadata, resource_version=old.resource_version)
                new = attrs.evolve(new, metadata=metadata)
            return await replace(new, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)

        return await retry_on_conflict(read_and_replace, tries=tries)
