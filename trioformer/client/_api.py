"""The class :class:`Api`, which adds methods such as ``scale`` and ``evict`` to the verbs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

import attrs

from .._suggestions import check_sync, describe
from ..models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    Model,
    PartialObjectMetadata,
    evolve,
    key_of,
    merge_patch,
)
from ..models._internal import EMPTY_MAP, dumps
from ._api_requests import ApiRequests, LocatedObject, check_kind, delete_options
from ._api_verbs import ApiVerbs
from ._object_ref import ObjectRef
from ._options import FieldSelectorLike, FieldValidation, LabelSelectorLike, ListOptions, PropagationPolicy
from ._patch import MERGE
from ._subresources import body_in
from .bodies._lists import PAGE_SIZE, ObjectList
from .bodies._wire_format import JSON

if TYPE_CHECKING:
    from ..models.authentication_v1 import TokenRequest
    from ..models.autoscaling_v1 import Scale
    from ..models.core_v1 import Pod, ServiceAccount

M = TypeVar("M", bound=Model)
T = TypeVar("T", bound=KubernetesObject)
A = TypeVar("A", bound="ApiVerbs[Any]")

_CHANGE = "def change(obj): return obj.evolve(...)"


@final
class Api(ApiVerbs[T]):
    """The API of one kind, in one namespace or in all namespaces.

    Call :meth:`Client.api` to get an API.

    A request is retried if the server responds with ``Retry-After``, or if the connection fails during a read or before
    anything was sent.  To disable retries, set ``ClientOptions(retries=0)``. "Retries" in docs/howto/connect.rst
    describes the rules. If a request is cancelled or raises :class:`~trioformer.errors.ConnectionFailedError`, the
    server may still have executed it.

    Every method that sends a request can raise these exceptions:

    - :class:`~trioformer.errors.StatusError`: the server rejected the request; the subclass corresponds to the reason
    - :class:`~trioformer.errors.UnexpectedResponseError`: the response cannot be from an API server
    - :class:`~trioformer.errors.DecodeError`: the object in the response cannot be decoded or is too deeply nested
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete response arrived
    - :class:`~trioformer.errors.LimitExceededError`: the response exceeds a limit of the client
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing, is not valid, or differs from the object's own

    Attributes:
        kind: The class of the objects.
        resource: The resource of the kind, with its group, version and names.
        namespace: The namespace, or None for all namespaces.
    """

    __slots__ = ()

    # --- changes from one state to another ---

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
        """Send the difference between two versions of an object as a merge patch, and return the stored object.

        For example, change only the labels, and keep all other fields, including changes that other programs made after
        ``site`` was read::

            await websites.update(site, site.evolve(metadata=site.metadata.evolve(labels=labels)))

        Fields that are in ``old`` but not in ``new`` are removed.
        Lists are replaced as a whole.

        If the kind has a status subresource, the status is not sent.  To change the status, call :meth:`update_status`.

        Args:
            old: The object as it was read, for example from a cache.
            new: The desired object, usually the result of ``old.evolve(…)``.
            optimistic_lock: Whether to raise a ConflictError if the object has changed since ``old`` was read.
            dry_run: Whether to validate the request on the server without storing the result.
            field_validation: How the server treats unknown and duplicate fields.  If None, the server's default,
                ``Warn``, is used.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.

        Returns:
            The stored object.  If the objects do not differ, no request is sent and ``old`` is returned.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: The argument ``optimistic_lock`` is true, and the object has changed since ``old`` was read.
            InvalidError: The changed object is not valid.
            TypeError: The objects are not objects of this API's kind.
            ValueError: The objects have different names, or ``optimistic_lock`` is true and ``old`` has no
                resourceVersion.
        """
        patch = merge_patch(old, new)
        if "status" in self.resource.subresources:
            patch.pop("status", None)
        self._requests.check_object(old)
        from ._changes import send_changes  # noqa: PLC0415  # not needed for reading

        options = (dry_run, field_validation, field_manager)
        return await send_changes(self, old, patch, None, optimistic_lock, *options)

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
        """Send the difference between the statuses of two versions of an object, and return the stored object.

        For example::

            await websites.update_status(site, site.evolve(status=status))

        Fields that are missing from the new status, such as a message, are removed.
        Differences outside the status are not sent.

        If the object was deleted and created anew since ``old`` was read, a ConflictError is raised, and the new object
        is not changed.  If the object has only changed, it is read, and the differences are sent again, up to nine
        times.  If somebody else has changed the same fields in another way, a ConflictError is raised.  A list such
        as the conditions is one field.

        The arguments, the result and the exceptions are otherwise the same as for :meth:`update`.
        """
        found = merge_patch(old, new)
        patch = {"status": found["status"]} if "status" in found else {}
        self._requests.check_object(old)
        from ._changes import send_changes  # noqa: PLC0415  # not needed for reading

        options = (dry_run, field_validation, field_manager)
        return await send_changes(self, old, patch, "status", optimistic_lock, *options)

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
        """Read an object, change it and replace it. After a conflict, start again.

        For example::

            def add_one(counter: ConfigMap) -> ConfigMap:
                return counter.evolve(data={**counter.data, "n": str(int(counter.data["n"]) + 1)})


            await config_maps.update_with_retry("counter", add_one)

        The object is replaced only if it has not changed since it was read, so changes by other programs are never
        lost.

        Args:
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            change: A function that takes the object as it was read, and returns the changed object.  The function is
                called once for each try.  If the function returns an equal object, no request is sent.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.
            subresource: The subresource to replace.  The default, None, replaces the whole object. ``status`` replaces
                only the status.
            tries: The maximum number of tries.  See :func:`retry_on_conflict`.
            dry_run: Whether to validate the request on the server without storing the result.
            field_validation: How the server treats unknown and duplicate fields.  If None, the server's default,
                ``Warn``, is used.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.

        Returns:
            The stored object.

        Raises:
            ConflictError: On each try, another program changed the object between the read and the write.
            NotFoundError: The object does not exist.
            InvalidError: The changed object is not valid.
            TypeError: The function ``change`` is async, or does not return an object of this kind.
            ValueError: The function ``change`` returns an object with another name or namespace.
        """
        check_sync(change, "change", _CHANGE)
        replace = self.replace if subresource is None else self.replace_status

        async def read_and_replace() -> T:
            old = await self.get(name, namespace=namespace)
            new = change(old)
            if not isinstance(new, self.kind):
                raise TypeError(f"change must return the changed {self.kind.__name__}, not {describe(new)}; {_CHANGE}")
            if (new.name, new.namespace) != (old.name, old.namespace):
                raise ValueError(f"change must return the object it was called with, {key_of(old)}, not {key_of(new)}")
            if new == old:
                return old
            if not new.resource_version:  # a new object: without a version it would overwrite any stored object
                metadata = new.metadata.evolve(resource_version=old.resource_version)
                new = evolve(new, metadata=metadata)
            return await replace(new, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)

        from ._retry_on_conflict import retry_on_conflict  # noqa: PLC0415  # not needed for reading

        return await retry_on_conflict(read_and_replace, tries=tries)

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
        """Send an object to a subresource of the named object, and return the object in the response.

        For example, bind a pod to a node::

            await pods.create_subresource("web-0", "binding", Binding(target=…))

        To evict a pod or to create a token, call :meth:`evict` or :meth:`create_token`.

        Args:
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            subresource: The name of the subresource.
            body: The object to send.  If the object has no name, ``name`` is set as its name.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.
            dry_run: Whether to validate the request on the server without changing anything.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.
            field_validation: How the server treats unknown and duplicate fields of the body.  If None, the server's
                default, ``Warn``, is used.

        Returns:
            The object in the response, or ``body`` if the response is a Status.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: A precondition is not met, or the pod is already bound.
            TooManyRequestsError: A disruption budget does not currently allow the eviction.
        """
        params = self._requests.write_params(dry_run, field_validation, field_manager)
        at = self._requests.locate(name, namespace)
        return await self._requests.send_body("POST", at, subresource, body, params)

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
        """Replace the object of a subresource, and return the stored object.

        The subresource ``scale`` requires a Scale.  The subresources ``status``, ``resize``, ``ephemeralcontainers``
        and ``approval`` require an object of the API's kind, and the server replaces only the subresource's part of the
        object.

        The arguments are the same as for :meth:`create_subresource`.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: The resourceVersion of the body differs from the stored one.
            InvalidError: The body is not valid, or changes an immutable field.
        """
        params = self._requests.write_params(dry_run, field_validation, field_manager)
        at = self._requests.locate(name, namespace)
        return await self._requests.send_body("PUT", at, subresource, body, params)

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
        """Apply the object of a subresource with server-side apply, and return the stored object.

        For example, apply the number of replicas of a Deployment::

            await deployments.apply_subresource("web", "scale", Scale(spec=ScaleSpec(replicas=3)))

        For subresources with objects of the API's kind, such as ``status``, call :meth:`apply`.

        If ``force`` is true, the manager takes over fields that other managers have set to a different value.  The
        other arguments are the same as for :meth:`create_subresource`.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: Other managers have set some of the fields to different values, and ``force`` is false.
            ValueError: Neither this call nor the client has a field manager.
        """
        self._requests.check_applier(field_manager)
        params = self._requests.write_params(dry_run, field_validation, field_manager, force=force)
        at = self._requests.locate(name, namespace)
        return await self._requests.send_body("PATCH", at, subresource, body, params)

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
        """Set the number of replicas of an object as ``kubectl scale`` does, and return the new Scale.

        Args:
            name: The name of the object, an :class:`ObjectRef` such as a controller's request, or the object itself.
            replicas: The desired number of replicas.
            namespace: The namespace of the object.  The default is the namespace of the :class:`ObjectRef` or object,
                or otherwise the namespace of this API.
            resource_version: The required resourceVersion of the object.  An object with another resourceVersion is not
                scaled.
            dry_run: Whether to validate the request on the server without changing anything.
            field_manager: The name of the field manager in ``managedFields``.  The default, None, uses the client's
                field manager, or the beginning of the user agent if the client has no field manager.

        Raises:
            NotFoundError: The object does not exist, or its kind cannot be scaled.
            ConflictError: The resourceVersion of the object differs from the given one.
            InvalidError: The number of replicas is negative.
        """
        # Imported on first use: most programs do not need a Scale.
        from ..models.autoscaling_v1 import Scale  # noqa: PLC0415

        at = self._requests.locate(name, namespace)
        where = at.operation("scale")
        patch: dict[str, object] = {"spec": {"replicas": replicas}}
        if resource_version is not None:
            patch["metadata"] = {"resourceVersion": resource_version}
        params = self._requests.write_params(dry_run, None, field_manager)
        response = await self._requests.send("PATCH", at.path("scale"), where, dumps(patch), MERGE, params, accept=JSON)
        return body_in(response, Scale(), method="PATCH", where=where)

    async def evict(
        self: Api[Pod],
        name: str | ObjectRef | Pod,
        *,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Evict a pod, as ``kubectl drain`` does: delete the pod if its disruption budgets allow the deletion.

        Args:
            name: The name of the pod, an :class:`ObjectRef` such as a controller's request, or the pod itself.
            namespace: The namespace of the pod.  The default is the namespace of the :class:`ObjectRef` or pod, or
                otherwise the namespace of this API.
            grace_period_seconds: The grace period, in seconds.  If None, the grace period of the pod is used.
            uid: The required uid of the pod.  A pod with another uid is not evicted.
            resource_version: The required resourceVersion of the pod.  A pod with another resourceVersion is not
                evicted.
            dry_run: Whether to check on the server that the eviction is possible, without evicting the pod.

        Raises:
            NotFoundError: The pod does not exist.
            TooManyRequestsError: A disruption budget does not currently allow the eviction.  Try again later.
            ConflictError: The uid or the resourceVersion of the pod differs from the given one.
        """
        from ..models.meta_v1 import DeleteOptions, Preconditions  # noqa: PLC0415  # most programs do not evict pods
        from ..models.policy_v1 import Eviction  # noqa: PLC0415  # as above

        check_kind(self.resource, "evict")
        preconditions = Preconditions(uid=uid, resource_version=resource_version) if uid or resource_version else None
        options = DeleteOptions(grace_period_seconds=grace_period_seconds, preconditions=preconditions)
        await self.create_subresource(
            name, "eviction", Eviction(delete_options=options), namespace=namespace, dry_run=dry_run
        )

    async def create_token(
        self: Api[ServiceAccount],
        name: str | ObjectRef | ServiceAccount,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expiration_seconds: int | None = None,
        bound_to: KubernetesObject | None = None,
    ) -> TokenRequest:
        """Create a token for a service account, as ``kubectl create token`` does.

        The token is in ``.status.token`` of the result.

        Args:
            name: The name of the account, an :class:`ObjectRef` such as a controller's request, or the account itself.
            namespace: The namespace of the account.  The default is the namespace of the :class:`ObjectRef` or account,
                or otherwise the namespace of this API.
            audiences: The audiences of the token.  By default, the token is for the API server.
            expiration_seconds: The requested lifetime, in seconds, which must be at least 600.  If None, a lifetime of
                an hour is requested.  The server may choose another lifetime. The actual expiry time is in
                ``.status.expiration_timestamp`` of the result.
            bound_to: A Pod, Secret or Node.  The token becomes invalid when this object is deleted.

        Raises:
            NotFoundError: The account or the object in ``bound_to`` does not exist.
            InvalidError: The requested lifetime is too short or too long.
            BadRequestError: A token cannot be bound to an object of this kind.
        """
        from ..models.authentication_v1 import (  # noqa: PLC0415  # most programs do not need tokens
            BoundObjectReference,
            TokenRequest,
            TokenRequestSpec,
        )

        check_kind(self.resource, "create_token", "serviceaccounts")
        if isinstance(audiences, str):
            raise TypeError(f"audiences must be a list of strings, not a string; write audiences=[{audiences!r}]")
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

        The server lists the objects and deletes them one by one.  Other clients may create new objects during the call.
        Objects with finalizers or a grace period continue to exist for a while. Some objects may already have been
        deleted when the call raises an error.  Call the method again to delete the remaining objects.

        Args:
            label_selector: A label selector.  The default, None, selects all objects.
            field_selector: A field selector.  The default, None, selects all objects.
            everything: Whether to delete all objects of the namespace, or of the cluster for a cluster-scoped kind.  If
                false, a selector is required.
            grace_period_seconds: The grace period, in seconds.  0 deletes the objects immediately.  If None, the kind's
                default grace period is used.
            propagation_policy: How to delete the objects that the deleted objects own.  If None, the kind's default
                policy is used.
            dry_run: Whether to validate the request on the server without deleting anything.
            page_size: The maximum number of objects to delete with one request, or None for no limit.

        Returns:
            The metadata of the objects before their deletion.  An object with finalizers or a grace period may still
            exist.

        Raises:
            MethodNotAllowedError: The server does not support the deletion of collections of this kind, such as
                namespaces.
            ValueError: Neither a selector nor ``everything`` is given, both are given, or the API of a namespaced kind
                has no namespace.
            SelectorError: A selector is not valid.
        """
        labels, fields = LabelSelector.of(label_selector), FieldSelector.of(field_selector)
        if everything != (labels.is_empty and fields.is_empty):
            if everything:
                raise ValueError("pass either everything=True or selectors, not both")
            raise ValueError("delete_collection() requires a selector; pass everything=True to delete all objects")
        if self.namespace is None and self.resource.namespaced:
            raise ValueError(
                f"delete_collection() deletes the {self.resource} of one namespace; pass a namespace to Client.api()"
            )
        content = delete_options(
            grace_period_seconds=grace_period_seconds, propagation_policy=propagation_policy, dry_run=dry_run
        )
        options = ListOptions(label_selector=str(labels), field_selector=str(fields), limit=page_size)
        return await self._requests.delete_collection(options, content)

    # --- waiting ---

    async def wait_to_retry(self, until: float) -> None:
        """Wait until a request may be retried after a :class:`~trioformer.errors.ConnectionFailedError`.

        The wait ends at the given time, or when a response to a request of this client arrives, whichever comes first.
        Waiting tasks then continue one at a time: five per second while connections fail, and otherwise 46 per
        second.

        Args:
            until: The time to stop waiting, on trio's clock.
        """
        await self._requests.transport.health.wait_to_retry(until)


def pods_beside(api: Api[T], namespace: str | None) -> Api[Pod]:
    """Return an API for the pods of a namespace, with the same client as another API."""
    from ..models.core_v1 import Pod  # noqa: PLC0415  # most programs do not need it

    return Api[Pod]._create(ApiRequests.of(api._requests.transport, Pod, namespace))


def check_api(given: object, argument: str) -> None:
    """Check that an argument is an API.

    Passing a client or a pod's name is a common mistake.

    Raises:
        TypeError: The value is not an API.
    """
    if not isinstance(given, Api):
        raise TypeError(f"{argument} must be an Api, such as client.api(Pod, namespace=...), not {describe(given)}")


def located(
    api: ApiVerbs[T],
    caller: str,
    name: str | ObjectRef | T,
    namespace: str | None,
    what: str = "pods",
    resources: Collection[str] = (),
) -> LocatedObject:
    """Return the location of an object on the server.

    Args:
        api: The API of the object.
        caller: The function name to show in error messages.
        name: The name of the object, a reference or the object itself.
        namespace: The namespace of the object. If None, the namespace of ``name`` or of the API is used.
        what: The supported resource, or a description of several resources for the error message.
        resources: The supported resources. By default, only ``what`` is supported.

    Raises:
        TypeError: The function does not support the resource of the API, or ``name`` has the wrong type.
        ValueError: The namespace of the object differs from the namespace of the API or from ``namespace``.
    """
    check_kind(api.resource, caller, what, resources)
    return api._requests.locate(name, namespace)


def without_retries(api: A, query: Mapping[str, str] = EMPTY_MAP, keep: Callable[[Any], Any] | None = None) -> A:
    """Return a copy of an API that does not retry requests, and adds query parameters to each list and watch.

    The copy is for callers that retry on their own. After a 401, the request is still sent again with a new credential.
    If ``keep`` is not None, its lists contain what it returns for each object, without None.
    """
    found = copy(api)
    found._requests = attrs.evolve(api._requests, retries=False, query=query, keep=keep)
    return found


async def obtain_credential(api: ApiVerbs[Any]) -> None:
    """Run the credential plugin if necessary, so that a later request with a short deadline does not wait for it.

    If the client has no plugin, the function returns without a checkpoint.

    Raises:
        ExecPluginError: The plugin did not return a credential.
        trio.ClosedResourceError: The client is closed.

    Cancellation:
        The plugin is killed if no other request waits for it.
    """
    await api._requests.transport.obtain_credential()


def plugin_of(api: ApiVerbs[Any]) -> str:
    """Return the command of the credential plugin, or an empty string if the client has no plugin."""
    return api._requests.transport.plugin
