"""The methods of :class:`Client` that create, apply and delete an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, overload

from .._suggestions import describe
from ..models import KubernetesObject, Unstructured, from_dict
from ..models._internal import builtin_kind
from ._options import FieldValidation, PropagationPolicy
from ._subresources import OwnSubresource

if TYPE_CHECKING:
    from ._api import Api

T = TypeVar("T", bound=KubernetesObject)


class ClientWrites:
    """A base class of :class:`Client`, with the methods that write one object.

    Each method calls the method of :class:`Api` with the same name, which describes the arguments, the results and the
    exceptions.
    For other writes, call the methods of :class:`Api`.
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
        """Create an object, as :meth:`Api.create` does."""
        api = self._api_of(_checked(obj))
        return await api.create(obj, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)

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
        """Apply an object with server-side apply, as :meth:`Api.apply` does.

        If a mapping is an object of a custom kind, the kind is looked up on the server once.
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
            raise ValueError("a mapping must contain apiVersion and kind")
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
        """Delete an object by its name, as :meth:`Api.delete` does.

        If the object was recreated with the same name, the new object is deleted, unless ``uid`` or
        ``resource_version`` is given.
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
    hint = "; for a name, call the methods of client.api(Pod, namespace=...)" if isinstance(given, str) else ""
    raise TypeError(f"expected an object, not {describe(given)}{hint}")
