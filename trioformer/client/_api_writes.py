"""The methods of an :class:`Api` that write: create, replace, patch, apply and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from ..errors import UnsupportedMediaTypeError
from ..models import KubernetesObject, Unstructured, from_dict
from ..models._internal import dumps, encode_request
from ._api_requests import ApiRequests
from ._object_ref import ObjectRef
from ._options import FieldValidation, PropagationPolicy
from ._patch import APPLY, PatchType, patch_content, unsupported_strategic_patch
from ._subresources import OwnSubresource, is_success
from .bodies._responses import check, created_in, object_in
from .bodies._wire_format import JSON

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

T = TypeVar("T", bound=KubernetesObject)


class ApiWrites(ApiRequests[T]):
    """The methods that write; a base of :class:`Api`, which describes their errors and common arguments."""

    __slots__ = ()

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Create an object, and return it as the server has stored it.

        If the server responds with a Status, as for a Binding, return ``obj``.
        A custom kind may create an object of another kind: OpenShift's ProjectRequest creates a Project.  Then return
        the created object for a kind from :func:`unstructured_kind`, and ``obj`` for a class.

        Args:
            obj: The object; the server sets defaults for fields that were not given.
            dry_run: Validate and default the object on the server without storing it.
            field_validation: How the server treats unknown fields; None for its default, ``Warn``.
            field_manager: The manager in ``managedFields``; None for the client's own, or the user agent's name.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: The object is not valid; the details name the fields.
        """
        namespace = self._namespace_for(obj)
        where = self._paths.operation("create", name=obj.name, namespace=namespace)
        path = self._paths.collection(namespace=namespace)
        params = self._params(dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)
        response = await self._send("POST", path, where, encode_request(obj), params=params)
        return created_in(response, self._wire_format, obj, where=where)

    async def replace(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the object of the same name, and return it as the server has stored it.

        Args:
            obj: The object; absent fields are removed or get their defaults.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: The object has a resourceVersion that differs from the stored one.
            NotFoundError: The object does not exist.
            InvalidError: The object is not valid.
        """
        params = self._params(dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)
        return await self._replace(obj, None, params)

    async def replace_status(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the status of the object of the same name; the server ignores the rest of the object.

        Args:
            obj: The object.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            ConflictError: The object has a resourceVersion that differs from the stored one.
            NotFoundError: The object or its status subresource does not exist.
        """
        params = self._params(dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)
        return await self._replace(obj, "status", params)

    async def _replace(self, obj: T, subresource: str | None, params: Mapping[str, str]) -> T:
        namespace = self._namespace_for(obj)
        where = self._paths.operation("replace", name=obj.name, namespace=namespace, subresource=subresource)
        path = self._paths.object(obj.name, namespace=namespace, subresource=subresource)
        return await self._request("PUT", path, where, content=encode_request(obj), params=params)

    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object],
        *,
        namespace: str | None = None,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: Literal["json"],
        subresource: OwnSubresource | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object],
        *,
        namespace: str | None = None,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: Literal["scale"],
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: Literal["json"],
        subresource: Literal["scale"],
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured: ...

    async def patch(
        self,
        name: str | ObjectRef | T,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured:
        """Patch an object, and return it as the server has stored it.

        - ``"merge"`` (RFC 7386): ``{"metadata": {"labels": {"seen": "yes", "old": None}}}`` sets one label and removes
          the other; lists are replaced.
        - ``"strategic"``: the same, but lists of named items, such as a pod's containers, are merged by name.
          Only built-in kinds support it.
        - ``"json"`` (RFC 6902): a sequence of operations that are applied in order, all or none;
          ``[{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/metadata/labels/old"}]``.

        A merge patch or strategic merge patch with ``{"metadata": {"resourceVersion": …}}`` applies only to that
        version of the object.

        A model, such as the status in ``{"status": web.status}``, cannot be merged, because it cannot mark a field as
        removed.  Pass a mapping with None for such a field, or call :meth:`Api.update` or :meth:`Api.update_status` to
        make a patch from two models.
        In a strategic merge patch, list items such as containers cannot be models either.
        A model in a list of a merge patch, or as the value of a JSON patch operation, is sent as JSON.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            patch: The changes: a mapping, or a sequence of mappings for a JSON patch.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            patch_type: The type of the patch.
            subresource: Such as ``status``; the result has the kind that the server sends, a Scale for ``scale``.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: As for :meth:`create`.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: The patch has a resourceVersion that differs from the stored one.
            InvalidError: The result is not valid, or an operation of a JSON patch cannot be applied.
            UnsupportedMediaTypeError: The kind does not support this type of patch.
            TypeError: The patch does not match its type, or contains a model that would be merged.
        """
        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("patch", name=name, namespace=namespace, subresource=subresource)
        content, content_type = patch_content(patch, patch_type)
        params = self._params(dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)
        try:
            return await self._request_any("PATCH", where, name, namespace, subresource, content, content_type, params)
        except UnsupportedMediaTypeError as exc:
            if patch_type != "strategic":
                raise
            raise unsupported_strategic_patch(exc, where) from exc

    async def apply(
        self,
        obj: T | Mapping[str, object],
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Apply an object by server-side apply, and return it as the server has stored it.

        The object is created if it does not exist.
        The manager owns the fields that it applies.  Fields that it applied before and now omits are removed, unless
        another manager owns them too.
        So pass every field that the manager wants to have, and no others: a new object, a mapping, or a changed result
        of :func:`~trioformer.models.extract`.  Fields that were not given to a new object are not applied; given empty
        lists or maps are.

        Args:
            obj: The fields to apply.  A mapping has the API's field names and may omit ``apiVersion`` and ``kind``.
                With a uid or a resourceVersion, only that object or version is changed.
            subresource: Apply only this part, such as ``status``; the object must exist.
            force: Take over fields that other managers have set to another value.
            dry_run: As for :meth:`create`.
            field_validation: As for :meth:`create`.
            field_manager: The field manager, such as the name of the controller; None for the client's own.

        Raises:
            ApplyConflictError: Other managers have set some of the fields to another value; ``conflicts`` names them.
            ConflictError: The object has a resourceVersion that differs from the stored one.
            InvalidError: The result is not valid.
            ValueError: There is no field manager, neither here nor in ``open_client``; or the object was read from a
                server (it has ``managedFields``, or a uid and a creation time), so the manager would own all its
                fields.
        """
        if not (field_manager or self._field_manager):
            hint = "pass field_manager, or open the client with one: open_client(field_manager='deployer')"
            raise ValueError(f"to apply needs the name of who applies; {hint}")
        if isinstance(obj, Mapping):
            obj = self._from_mapping(obj)
        namespace = self._namespace_for(obj)
        metadata = obj.metadata
        # A cache may have dropped managedFields; only a server sets both of the others.
        if metadata.managed_fields or (metadata.uid and metadata.creation_timestamp is not None):
            hint = "apply a new object with the wanted fields, or what extract(obj, field_manager=...) returns"
            raise ValueError(f"{obj!r} was read from a server, and who applies it would own all of its fields; {hint}")
        where = self._paths.operation("apply", name=obj.name, namespace=namespace, subresource=subresource)
        path = self._paths.object(obj.name, namespace=namespace, subresource=subresource)
        params = self._params(
            dry_run=dry_run, field_validation=field_validation, field_manager=field_manager, force=force
        )
        content = encode_request(obj, is_applied=True)
        return await self._request(
            "PATCH",
            path,
            where,
            content=content,
            content_type=APPLY,
            params=params,
        )

    def _from_mapping(self, mapping: Mapping[str, object]) -> T:
        resource = self.resource
        expected = {"apiVersion": resource.api_version, "kind": resource.kind}
        for name, value in expected.items():
            if mapping.get(name, value) != value:
                raise TypeError(f"this is the API of {self.kind.__name__}, and the mapping has another {name}")
        return from_dict(self.kind, {**expected, **mapping})

    async def delete(
        self,
        name: str | ObjectRef | T,
        *,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T | None:
        """Delete an object.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            grace_period_seconds: The time for a graceful stop; 0 to delete immediately, None for the kind's default.
            propagation_policy: Whether to delete the objects that it owns; None for the kind's default.
            uid: Delete it only if it has this uid.
            resource_version: Delete it only if it has this resourceVersion.
            dry_run: Check on the server whether the object would be deleted, without deleting it.

        Returns:
            The object, if finalizers or a grace period keep it for now; None if the server responds with a Status.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: It has another ``uid`` or ``resource_version``.
        """
        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("delete", name=name, namespace=namespace)
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
            "dryRun": ("All",) if dry_run else None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        content = dumps({"kind": "DeleteOptions", "apiVersion": "v1", **given}) if given else None
        response = await self._send("DELETE", self._paths.object(name, namespace=namespace), where, content, JSON)
        check(response, method="DELETE", where=where)
        if is_success(response, where):
            return None
        return object_in(response, self._wire_format, method="DELETE", where=where)
