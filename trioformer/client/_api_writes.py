"""The methods of an :class:`Api` that write: create, replace, patch, apply and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, overload

from ..models import KubernetesObject, Unstructured
from ..models._internal import dumps, encode_for_server
from ._api_requests import ApiRequests, suggests_arguments
from ._options import write_params
from ._patch import APPLY, PatchType, patch_content, translate_patch_errors
from ._paths import ObjectName
from ._responses import Asked, check, object_in
from ._subresources import OwnSubresource, created_in, is_success
from ._wire_format import JSON

if TYPE_CHECKING:
    from ..models.autoscaling_v1 import Scale

T = TypeVar("T", bound=KubernetesObject)

PropagationPolicy: TypeAlias = Literal["Orphan", "Background", "Foreground"]
"""Whether the objects that a deleted object owns are deleted: not at all, after it, or before it."""


class ApiWrites(ApiRequests[T]):
    """The methods that write; a base of :class:`Api`, which describes their errors."""

    __slots__ = ()

    async def create(self, obj: T) -> T:
        """Create an object, and return it as the server has stored it.

        A Binding is not stored: the server binds the pod of its name and responds with a Status; then this returns
        ``obj``.  If a custom kind makes an object of another kind, as OpenShift's ProjectRequest makes a Project, this
        returns the made object for a kind from :func:`unstructured_kind`, and ``obj`` for a class.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: The object is not valid; the details name the fields.
        """
        namespace = self._namespace_for(obj)
        where = self._paths.operation("create", name=obj.name, namespace=namespace)
        path = self._paths.collection(namespace=namespace)
        response = await self._send("POST", path, where, encode_for_server(obj))
        return created_in(response, self._wire_format, obj, namespace, where=where)

    async def replace(self, obj: T) -> T:
        """Replace the object of the same name, and return it as the server has stored it.

        Raises:
            ConflictError: The object has a resourceVersion, and the stored object has another one.
            NotFoundError: There is no object of this name.
        """
        return await self._replace(obj, None)

    async def replace_status(self, obj: T) -> T:
        """Replace the status of the object of the same name; the server ignores the rest of the object.

        Raises:
            ConflictError: The object has a resourceVersion, and the stored object has another one.
            NotFoundError: There is no object of this name, or the kind has no status subresource.
        """
        return await self._replace(obj, "status")

    async def _replace(self, obj: T, subresource: str | None) -> T:
        namespace = self._namespace_for(obj)
        where = self._paths.operation("replace", name=obj.name, namespace=namespace, subresource=subresource)
        path = self._paths.object(obj.name, namespace=namespace, subresource=subresource)
        asked = Asked(obj.name, namespace)
        return await self._request("PUT", path, where, asked=asked, content=encode_for_server(obj))

    @overload
    async def patch(
        self,
        name: str | ObjectName,
        patch: Mapping[str, object],
        *,
        namespace: str | None = None,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: OwnSubresource | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str | ObjectName,
        patch: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: Literal["json"],
        subresource: OwnSubresource | None = None,
        field_manager: str | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        name: str | ObjectName,
        patch: Mapping[str, object],
        *,
        namespace: str | None = None,
        patch_type: Literal["merge", "strategic"] = "merge",
        subresource: Literal["scale"],
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str | ObjectName,
        patch: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: Literal["json"],
        subresource: Literal["scale"],
        field_manager: str | None = None,
    ) -> Scale: ...
    @overload
    async def patch(
        self,
        name: str | ObjectName,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured: ...

    async def patch(
        self,
        name: str | ObjectName,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> T | Scale | Unstructured:
        """Patch an object, and return it as the server has stored it.

        - ``"merge"`` (RFC 7386): ``{"metadata": {"labels": {"seen": "yes", "old": None}}}`` sets one label and removes
          the other; lists are replaced.
        - ``"strategic"``: the same, but lists of named items, such as a pod's containers, are merged by name.
          Built-in kinds support it, custom kinds do not.
        - ``"json"`` (RFC 6902): a sequence of operations that are applied in order, all or none;
          ``[{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/metadata/labels/old"}]``.

        A merge patch or strategic merge patch with ``{"metadata": {"resourceVersion": …}}`` applies only to that
        version of the object.

        A model cannot be merged, such as the status in ``{"status": web.status}``: it cannot say that a field is
        removed.  Pass a mapping with None for such a field, or call :meth:`replace` or :meth:`replace_status`.
        In a strategic merge patch this is also true of the items of lists, such as containers.
        A model as an item of a list of a merge patch, or as the value of a JSON patch's operation, is sent as its JSON.

        Args:
            name: The name of the object; or what has one: a request of a controller, or the object itself.
            patch: The changes: a mapping, or a sequence of mappings for a JSON patch.
            namespace: The namespace of the object; None for that of ``name``, or of this API.
            patch_type: The type of the patch.
            subresource: Such as ``status``; the result is of the kind that the server sends, a Scale for ``scale``.
            field_manager: The manager of the changed fields in ``managedFields``; None derives it from the user agent.

        Raises:
            NotFoundError: There is no object of this name.
            ConflictError: The patch has a resourceVersion, and the stored object has another one.
            InvalidError: The result is not valid, or an operation of a JSON patch cannot be applied.
            UnsupportedMediaTypeError: The kind does not support this type of patch.
            TypeError: The patch is not of its type, or contains a model that would be merged.
        """
        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("patch", name=name, namespace=namespace, subresource=subresource)
        content, content_type = patch_content(patch, patch_type)
        params = write_params(field_manager=field_manager)
        with translate_patch_errors(patch_type, where):
            return await self._request_any("PATCH", where, name, namespace, subresource, content, content_type, params)

    async def apply(self, obj: T, *, field_manager: str, force: bool = False) -> T:
        """Apply an object by server-side apply, and return it as the server has stored it.

        The object is created if it does not exist.

        Args:
            obj: The fields that the manager wants to have; it gives up all others.
            field_manager: Who applies, such as the name of the controller.
            force: Whether to take fields that another manager has set to another value.

        Raises:
            ConflictError: Another manager has set one of the fields.
            InvalidError: The result is not valid.
        """
        namespace = self._namespace_for(obj)
        where = self._paths.operation("apply", name=obj.name, namespace=namespace)
        path = self._paths.object(obj.name, namespace=namespace)
        asked = Asked(obj.name, namespace)
        content, params = encode_for_server(obj), write_params(field_manager=field_manager, force=force)
        return await self._request(
            "PATCH", path, where, asked=asked, content=content, content_type=APPLY, params=params
        )

    @suggests_arguments
    async def delete(
        self,
        name: str | ObjectName,
        *,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> T | None:
        """Delete an object.

        Args:
            name: The name of the object; or what has one: a request of a controller, or the object itself.
            namespace: The namespace of the object; None for that of ``name``, or of this API.
            grace_period_seconds: The time for a graceful stop; 0 deletes immediately, None is the kind's default.
            propagation_policy: Whether the objects that it owns are deleted; None is the kind's default.
            uid: Delete it only if it has this uid.
            resource_version: Delete it only if it has this resourceVersion.

        Returns:
            The object while finalizers or a grace period keep it; None if the server responds with a Status.

        Raises:
            NotFoundError: There is no object of this name.
            ConflictError: It has another ``uid`` or ``resource_version``.
        """
        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("delete", name=name, namespace=namespace)
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        content = dumps({"kind": "DeleteOptions", "apiVersion": "v1", **given}) if given else None
        response = await self._send("DELETE", self._paths.object(name, namespace=namespace), where, content, JSON)
        with self._wire_format.translate_errors():
            check(response, method="DELETE", where=where)
        if is_success(response, where):
            return None
        asked = Asked(name, namespace)
        return object_in(response, self._wire_format, method="DELETE", where=where, asked=asked)
