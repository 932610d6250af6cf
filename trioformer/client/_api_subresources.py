"""The methods of an :class:`Api` for subresources with their own kind of object, and for whole collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from ..errors import ExpiredError
from ..models import FieldSelector, KubernetesObject, LabelSelector, Model, PartialObjectMetadata, encode, metadata_kind
from ..models._internal import dumps, encode_request, scan_whole
from ._api_requests import ApiRequests
from ._object_ref import ObjectRef
from ._options import (
    FieldSelectorLike,
    FieldValidation,
    LabelSelectorLike,
    ListOptions,
    PropagationPolicy,
    list_params,
)
from ._patch import APPLY
from ._subresources import body_in, with_name
from .bodies._lists import PAGE_SIZE, ObjectList, read_list
from .bodies._responses import streamed_status_error
from .bodies._wire_format import JSON, WireFormat

if TYPE_CHECKING:
    from ..models.authentication_v1 import TokenRequest
    from ..models.autoscaling_v1 import Scale
    from ..models.core_v1 import Pod, ServiceAccount

M = TypeVar("M", bound=Model)
T = TypeVar("T", bound=KubernetesObject)

MERGE: Final = "application/merge-patch+json"
_ALL_NAMESPACES: Final = "a collection is deleted in one namespace; pass one to Client.api()"


class ApiSubresources(ApiRequests[T]):
    """The methods for subresources and collections; a base of :class:`Api`, which describes their errors."""

    __slots__ = ()

    # --- any subresource ---

    async def create_subresource(
        self,
        name: str | ObjectRef | T,
        subresource: str,
        body: M,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> M:
        """Send an object to a subresource that acts on the named object, and return the response.

        ``await pods.create_subresource("web-0", "binding", Binding(target=…))`` binds a pod to a node.
        :meth:`evict` and :meth:`create_token` send an Eviction and a TokenRequest.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            subresource: The name of the subresource.
            body: The object to send; if it is unnamed, ``name`` is added.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            dry_run: Validate the request on the server without changing anything.
            field_manager: The manager of the changed fields in ``managedFields``; None derives it from the user agent.
            field_validation: How the server treats unknown fields of the body; None for its default.

        Returns:
            The object in the response, of the same class; ``body`` if the response is a Status.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: A precondition does not hold, or the pod is already bound.
            TooManyRequestsError: A disruption budget does not allow the eviction now.
        """
        params = self._params(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        return await self._send_body("POST", "create", name, subresource, body, namespace, params)

    async def replace_subresource(
        self,
        name: str | ObjectRef | T,
        subresource: str,
        body: M,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> M:
        """Replace the object of a subresource, and return it as the server has stored it.

        ``scale`` takes a Scale.  ``status``, ``resize``, ``ephemeralcontainers`` and ``approval`` take an object of the
        kind itself; the server replaces only the part that the subresource covers.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            subresource: The name of the subresource.
            body: The object to send; if it is unnamed, ``name`` is added.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            dry_run: Validate the request on the server without changing anything.
            field_manager: The manager of the changed fields in ``managedFields``; None derives it from the user agent.
            field_validation: How the server treats unknown fields of the body; None for its default.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: The body has a resourceVersion that differs from the stored one.
            InvalidError: The body is not valid, or changes an immutable field.
        """
        params = self._params(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        return await self._send_body("PUT", "replace", name, subresource, body, namespace, params)

    async def apply_subresource(
        self,
        name: str | ObjectRef | T,
        subresource: str,
        body: M,
        *,
        namespace: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> M:
        """Apply the object of a subresource by server-side apply, and return it as the server has stored it.

        ``apply_subresource("web", "scale", Scale(spec=ScaleSpec(replicas=3)))`` applies the replicas of a Deployment.
        For subresources with objects of the kind itself, such as ``status``, call :meth:`apply`.

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            subresource: The name of the subresource.
            body: The fields to apply; if it is unnamed, ``name`` is added.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            force: Take over fields that other managers own with other values.
            dry_run: Validate the request on the server without changing anything.
            field_manager: The field manager; None for the client's own.
            field_validation: How the server treats unknown fields of the body; None for its default.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: Other managers own some of the fields, and ``force`` is false.
            ValueError: Neither this call nor the client has a field manager.
        """
        if not (field_manager or self._field_manager):
            hint = "pass field_manager, or open the client with one: open_client(field_manager='deployer')"
            raise ValueError(f"to apply needs the name of who applies; {hint}")
        params = self._params(
            field_manager=field_manager, dry_run=dry_run, field_validation=field_validation, force=force
        )
        return await self._send_body("PATCH", "apply", name, subresource, body, namespace, params, APPLY)

    async def _send_body(
        self,
        method: str,
        verb: str,
        target: str | ObjectRef | T,
        subresource: str,
        body: M,
        namespace: str | None,
        params: Mapping[str, str],
        content_type: str = JSON,
    ) -> M:
        name, namespace = self._locate(target, namespace)
        where = self._paths.operation(verb, name=name, namespace=namespace, subresource=subresource)
        path = self._paths.object(name, namespace=namespace, subresource=subresource)
        body = with_name(body, name)
        if isinstance(body, KubernetesObject):
            content = encode_request(body, is_applied=content_type == APPLY)
        else:
            content = encode(body)  # it has its kind as a field
        sent = await self._send(method, path, where, content, content_type, params, accept=JSON)
        return body_in(sent, body, method=method, where=where)

    # --- common subresources ---

    async def scale(
        self,
        name: str | ObjectRef | T,
        replicas: int,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> Scale:
        """Set the number of replicas of an object with a ``scale``, and return its Scale (``kubectl scale``).

        Args:
            name: The name of the object; an :class:`ObjectRef`, such as a controller's request; or the object itself.
            replicas: The desired number.
            namespace: The namespace of the object; None for the namespace of ``name`` or of this API.
            resource_version: Scale it only if it has this resourceVersion.
            dry_run: Validate the request on the server without changing anything.
            field_manager: The manager of the changed fields in ``managedFields``; None derives it from the user agent.

        Raises:
            NotFoundError: The object does not exist, or its kind cannot be scaled.
            ConflictError: It has another ``resource_version``.
            InvalidError: The number is negative.
        """
        # Imported on first use: most programs do not need a Scale.
        from ..models.autoscaling_v1 import Scale  # noqa: PLC0415

        name, namespace = self._locate(name, namespace)
        where = self._paths.operation("scale", name=name, namespace=namespace)
        path = self._paths.object(name, namespace=namespace, subresource="scale")
        patch: dict[str, object] = {"spec": {"replicas": replicas}}
        if resource_version is not None:
            patch["metadata"] = {"resourceVersion": resource_version}
        params = self._params(field_manager=field_manager, dry_run=dry_run)
        response = await self._send("PATCH", path, where, dumps(patch), MERGE, params, accept=JSON)
        return body_in(response, Scale(), method="PATCH", where=where)

    async def evict(
        self: ApiSubresources[Pod],
        name: str | ObjectRef | Pod,
        *,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Evict a pod as ``kubectl drain`` does: delete it if its disruption budgets allow that.

        Args:
            name: The name of the pod; an :class:`ObjectRef`, such as a controller's request; or the pod itself.
            namespace: The namespace of the pod; None for the namespace of ``name`` or of this API.
            grace_period_seconds: The time for a graceful stop; None for the pod's own.
            uid: Evict it only if it has this uid.
            resource_version: Evict it only if it has this resourceVersion.
            dry_run: Check on the server whether the pod may be evicted, without evicting it.

        Raises:
            NotFoundError: The pod does not exist.
            TooManyRequestsError: A disruption budget does not allow the eviction now; try again later.
            ConflictError: It has another ``uid`` or ``resource_version``.
        """
        from ..models.meta_v1 import DeleteOptions, Preconditions  # noqa: PLC0415  # most programs do not evict pods
        from ..models.policy_v1 import Eviction  # noqa: PLC0415  # the same

        self._check_kind("evict", "pods")
        preconditions = Preconditions(uid=uid, resource_version=resource_version) if uid or resource_version else None
        options = DeleteOptions(grace_period_seconds=grace_period_seconds, preconditions=preconditions)
        await self.create_subresource(
            name, "eviction", Eviction(delete_options=options), namespace=namespace, dry_run=dry_run
        )

    async def create_token(
        self: ApiSubresources[ServiceAccount],
        name: str | ObjectRef | ServiceAccount,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expiration_seconds: int | None = None,
        bound_to: KubernetesObject | None = None,
    ) -> TokenRequest:
        """Create a token of a service account (``kubectl create token``); it is ``.status.token`` of the result.

        Args:
            name: The name of the account; an :class:`ObjectRef`, such as a controller's request; or the account itself.
            namespace: The namespace of the account; None for the namespace of ``name`` or of this API.
            audiences: The audiences of the token; empty for the API server.
            expiration_seconds: The requested lifetime, at least 600; None for an hour.  The server may choose another
                one; see ``.status.expiration_timestamp``.
            bound_to: A Pod, Secret or Node; the token becomes invalid when it is deleted.

        Raises:
            NotFoundError: The account, or the object to bind the token to, does not exist.
            InvalidError: The lifetime is too short or too long.
            BadRequestError: A token cannot be bound to such an object.
        """
        from ..models.authentication_v1 import (  # noqa: PLC0415  # most programs do not need tokens
            BoundObjectReference,
            TokenRequest,
            TokenRequestSpec,
        )

        self._check_kind("create_token", "serviceaccounts")
        if isinstance(audiences, str):
            raise TypeError(f"audiences must be a sequence of texts, not a text; write audiences=[{audiences!r}]")
        bound = None
        if bound_to is not None:
            bound = BoundObjectReference(
                api_version=bound_to.api_version, kind=bound_to.kind, name=bound_to.name, uid=bound_to.uid
            )
        spec = TokenRequestSpec(
            audiences=tuple(audiences), expiration_seconds=expiration_seconds, bound_object_ref=bound
        )
        return await self.create_subresource(name, "token", TokenRequest(spec=spec), namespace=namespace)

    # --- collections ---

    async def delete_collection(
        self,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        everything: bool = False,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        dry_run: bool = False,
        page_size: int | None = PAGE_SIZE,
    ) -> ObjectList[PartialObjectMetadata]:
        """Delete all selected objects in this API's namespace, and return their metadata.

        The server lists the objects and deletes them one by one.  Other objects may be created meanwhile; objects with
        finalizers or a grace period stay for a while.
        If this fails, some objects may be deleted already; call it again to delete the rest.

        Args:
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.
            everything: Delete all objects of the namespace, or of the cluster for a cluster-scoped kind.  Without it, a
                selector is required.
            grace_period_seconds: The time for a graceful stop; 0 to delete immediately, None for the kind's default.
            propagation_policy: Whether to delete the objects that they own; None for the kind's default.
            dry_run: Validate the request on the server without deleting anything.
            page_size: The number of objects to delete with one request; None for all.

        Returns:
            The metadata of the objects before their deletion.  An object with finalizers or a grace period may still
            exist.

        Raises:
            MethodNotAllowedError: The server cannot delete collections of the kind, such as namespaces.
            ValueError: The call has neither a selector nor ``everything``, or has both; or the API is for all
                namespaces.
            SelectorError: A selector does not parse.
        """
        labels, fields = LabelSelector.of(label_selector), FieldSelector.of(field_selector)
        if everything != (labels.is_empty and fields.is_empty):
            if everything:
                raise ValueError("everything=True is without selectors; omit one or the other")
            raise ValueError("an empty selector selects every object; to delete them all, write everything=True")
        if self.namespace is None and self.resource.namespaced:
            raise ValueError(f"{self.resource} are namespaced, but this API has no namespace; {_ALL_NAMESPACES}")
        given: dict[str, object] = {
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
            "dryRun": ["All"] if dry_run else None,
        }
        body = {key: value for key, value in given.items() if value is not None}
        content = dumps({"kind": "DeleteOptions", "apiVersion": "v1", **body}) if body else None
        options = ListOptions(label_selector=str(labels), field_selector=str(fields), limit=page_size)
        found: dict[str, PartialObjectMetadata] = {}
        version = ""
        pages = 0
        while True:
            pages += 1
            try:
                page = await self._delete_page(list_params(options), content)
            except ExpiredError:
                if not options.continue_token:
                    raise
                # Start over: deleted objects are not listed again.
                options = attrs.evolve(options, continue_token=None)
                continue
            found |= {one.uid: one for one in page}
            version = version or page.resource_version
            if not page.continue_token:
                return ObjectList(items=tuple(found.values()), resource_version=version, pages=pages)
            options = attrs.evolve(options, continue_token=page.continue_token)

    async def _delete_page(self, params: Mapping[str, str], content: bytes | None) -> ObjectList[PartialObjectMetadata]:
        """Delete the objects of one page, and return their metadata."""
        where = self._paths.operation("delete collection")
        wire_format: WireFormat[Any] = WireFormat(metadata_kind(self.kind), scan_whole)
        async with self._transport.stream(
            self._paths.collection(),
            method="DELETE",
            params=params,
            content=content,
            content_type=None if content is None else JSON,
            accept=wire_format.accept_list,
            for_watch=False,
            retries=self._retries,
            where=where,
        ) as body:
            if body.code != 200:
                raise await streamed_status_error(body, method="DELETE", where=where)
            listed: ObjectList[PartialObjectMetadata] = await read_list(body, wire_format, where)
            return listed
