"""The methods of a :class:`Client` that write one object: its class and its metadata say which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .._suggestions import describe
from ..models import KubernetesObject, Unstructured, builtin_kind, from_dict
from ._options import FieldValidation, PropagationPolicy
from ._patch import PatchType
from ._subresources import OwnSubresource

if TYPE_CHECKING:
    from ._api import Api

T = TypeVar("T", bound=KubernetesObject)


class ClientWrites:
    """The methods that write one object; the base of :class:`Client`.

    Each is the method of the same name of ``client.api(type(obj))``, which describes results and errors.
    An object of a namespaced kind must have a namespace.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _applied_kinds: dict[tuple[str, str], type[KubernetesObject]]

        def _api_of(self, obj: T) -> Api[T]: ...

        async def discover(self, api_version: str, kind: str) -> type[Unstructured]: ...

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Create an object; see :meth:`Api.create`.

        Args:
            obj: The object.
            dry_run: Whether the server only does as if.
            field_validation: What it does about unknown fields; None is its default, ``Warn``.
            field_manager: The manager in ``managedFields``; None for that of the client.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: The object is not valid.
            TypeError: It is not an object.
        """
        api = self._api_of(_checked(obj))
        return await api.create(obj, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)

    async def replace(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace an object; see :meth:`Api.replace`.

        Args:
            obj: The object.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: The object has a resourceVersion, and the stored object has another one.
            NotFoundError: There is no object of this name.
            TypeError: It is not an object.
        """
        api = self._api_of(_checked(obj))
        return await api.replace(obj, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)

    async def replace_status(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the status of an object; see :meth:`Api.replace_status`.

        Args:
            obj: The object.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: The object has a resourceVersion, and the stored object has another one.
            NotFoundError: There is no object of this name, or the kind has no status subresource.
            TypeError: It is not an object.
        """
        api = self._api_of(_checked(obj))
        return await api.replace_status(
            obj, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager
        )

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
        """Send what differs between two states of an object; see :meth:`Api.update`.

        Args:
            old: The object as it was read.
            new: The object as it shall be.
            optimistic_lock: Whether the object must not have changed since ``old`` was read.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: With ``optimistic_lock``: the object has changed since ``old`` was read.
            NotFoundError: There is no object of this name.
            TypeError: They are not objects of one kind.
        """
        api = self._api_of(_checked(old))
        return await api.update(
            old,
            new,
            optimistic_lock=optimistic_lock,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

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
        """Send what differs between the statuses of two states of an object; see :meth:`Api.update_status`.

        Args:
            old: As for :meth:`update`.
            new: As for :meth:`update`.
            optimistic_lock: As for :meth:`update`.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: As for :meth:`update`.
            NotFoundError: There is no object of this name, or the kind has no status subresource.
            TypeError: They are not objects of one kind.
        """
        api = self._api_of(_checked(old))
        return await api.update_status(
            old,
            new,
            optimistic_lock=optimistic_lock,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

    @overload
    async def patch(
        self,
        obj: T,
        patch: Mapping[str, object],
        *,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        obj: T,
        patch: Sequence[Mapping[str, object]],
        *,
        patch_type: Literal["json"],
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...

    async def patch(
        self,
        obj: T,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        patch_type: PatchType = "merge",
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Patch an object; see :meth:`Api.patch`.

        Args:
            obj: The object; only its kind, name and namespace are used.
            patch: The changes.
            patch_type: The type of the patch.
            subresource: Such as ``status``.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            NotFoundError: There is no object of this name.
            InvalidError: The result is not valid, or an operation of a JSON patch cannot be applied.
            TypeError: It is not an object, or the patch is not of its type.
        """
        api: Any = self._api_of(_checked(obj))  # whose overloads are more than those of this method
        patched: T = await api.patch(
            obj,
            patch,
            patch_type=patch_type,
            subresource=subresource,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )
        return patched

    @overload
    async def apply(
        self,
        obj: T,
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def apply(
        self,
        obj: Mapping[str, object],
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> KubernetesObject: ...

    async def apply(
        self,
        obj: KubernetesObject | Mapping[str, object],
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> KubernetesObject:
        """Apply an object by server-side apply; see :meth:`Api.apply`.

        Args:
            obj: The fields that the manager wants to have.  A mapping may be of a custom kind, which is looked
                up on the server once.
            subresource: Such as ``status``.
            force: Whether to take fields that other managers have set to another value.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: Who applies; None for that of the client.

        Raises:
            ApplyConflictError: Other managers have set some of the fields to another value.
            InvalidError: The result is not valid.
            NotFoundError: The server does not serve the kind of a mapping.
            ValueError: There is no field manager; or a mapping has no apiVersion or kind.
            TypeError: It is neither an object nor a mapping.
        """
        made = await self._from_mapping(obj) if isinstance(obj, Mapping) else _checked(obj)
        return await self._api_of(made).apply(
            made,
            subresource=subresource,
            force=force,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
        )

    async def _from_mapping(self, mapping: Mapping[str, object]) -> KubernetesObject:
        api_version, kind = str(mapping.get("apiVersion", "")), str(mapping.get("kind", ""))
        if not (api_version and kind):
            raise ValueError("a mapping must have apiVersion and kind")
        made = self._applied_kinds.get((api_version, kind))
        if made is None:
            try:
                made = builtin_kind(api_version, kind)
            except LookupError:
                made = await self.discover(api_version, kind)
            self._applied_kinds[api_version, kind] = made
        return from_dict(made, mapping)

    async def delete(
        self,
        obj: T,
        *,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T | None:
        """Delete an object, also one that has been made again under its name; see :meth:`Api.delete`.

        Args:
            obj: The object; only its kind, name and namespace are used.
            grace_period_seconds: The time for a graceful stop; 0 deletes immediately, None is the kind's default.
            propagation_policy: Whether the objects that it owns are deleted; None is the kind's default.
            uid: Delete it only if it has this uid, such as ``obj.uid``.
            resource_version: Delete it only if it has this resourceVersion.
            dry_run: As for :meth:`create`.

        Raises:
            NotFoundError: There is no object of this name.
            ConflictError: It has another ``uid`` or ``resource_version``.
            TypeError: It is not an object.
        """
        return await self._api_of(_checked(obj)).delete(
            obj,
            grace_period_seconds=grace_period_seconds,
            propagation_policy=propagation_policy,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
        )


def _checked(obj: T) -> T:
    given: object = obj
    if isinstance(given, KubernetesObject):
        return obj
    hint = "by name: client.api(Pod, namespace=...) has the methods" if isinstance(given, str) else "pass an object"
    raise TypeError(f"this takes an object that says its kind and name, not {describe(given)}; {hint}")
