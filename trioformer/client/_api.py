"""The API of one kind, and the methods that combine its verbs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, final

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
from ..models._internal import dumps
from ._api_requests import ApiRequests, LocatedObject, check_kind, delete_options
from ._api_verbs import ApiVerbs
from ._object_ref import ObjectRef
from ._options import FieldSelectorLike, FieldValidation, LabelSelectorLike, ListOptions, PropagationPolicy
from ._patch import MERGE
from ._retry_on_conflict import retry_on_conflict
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
    """The API of one kind, in one namespace or in all; made by :meth:`Client.api`.

    A request is retried where that is safe: if the server asks for it with ``Retry-After``, and if the connection fails
    during a read or before anything was sent.  ``ClientOptions(retries=0)`` turns this off.
    "Retries" in docs/howto/connect.rst has the table.
    The server may have executed a request that was cancelled, or that raised
    :class:`~trioformer.errors.ConnectionFailedError`.

    Every method that sends a request raises:

    - :class:`~trioformer.errors.StatusError`: the server rejected the request; the subclass is the reason
    - :class:`~trioformer.errors.UnexpectedResponseError`: the response cannot be from an API server
    - :class:`~trioformer.errors.DecodeError`: the object in the response cannot be decoded, or has too many levels
    - :class:`~trioformer.errors.ConnectionFailedError`: no complete response arrived
    - :class:`~trioformer.errors.LimitExceededError`: the response exceeds a limit of the client
    - ``trio.ClosedResourceError``: the client is closed
    - ``ValueError``: a name or namespace is missing or not valid, or differs from the object's

    Attributes:
        kind: The model.
        resource: The resource of the kind.
        namespace: The namespace; None for all namespaces.
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
        """Send the difference between two states of an object as a merge patch, and return the stored object.

        ``await websites.update(site, site.evolve(metadata=site.metadata.evolve(labels=labels)))`` changes
        the labels and keeps everything else, including changes by other programs since ``site`` was read.
        Fields that ``new`` no longer has are removed.
        Lists are replaced as a whole.

        If the kind has a status subresource, the status is not sent; call :meth:`update_status`.

        Args:
            old: The object as it was read, such as from a cache.
            new: The desired object, usually ``old.evolve(…)``.
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
        return await self._send_changes(old, patch, None, optimistic_lock, dry_run, field_validation, field_manager)

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

        ``await websites.update_status(site, site.evolve(status=status))`` also removes fields that the new
        status no longer has, such as a message.
        Other differences between the objects are not sent.

        The arguments, the result and the errors are the same as for :meth:`update`.
        """
        found = merge_patch(old, new)
        return await self._send_changes(
            old,
            {"status": found["status"]} if "status" in found else {},
            "status",
            optimistic_lock,
            dry_run,
            field_validation,
            field_manager,
        )

    async def _send_changes(
        self,
        old: T,
        patch: dict[str, object],
        subresource: Literal["status"] | None,
        optimistic_lock: bool,
        dry_run: bool,
        field_validation: FieldValidation | None,
        field_manager: str | None,
    ) -> T:
        self._requests.check_object(old)
        if optimistic_lock and not old.resource_version:
            raise ValueError(f"{old!r} has no resourceVersion; pass the object as it was read from the server")
        if not patch:
            return old
        if optimistic_lock:
            changes = cast("dict[str, object]", patch.get("metadata") or {})
            patch = {**patch, "metadata": {**changes, "resourceVersion": old.resource_version}}
        return await self.patch(
            old,
            patch,
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
                return counter.evolve(data={**counter.data, "n": str(int(counter.data["n"]) + 1)})


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
                raise ValueError(f"change must return the same object, {key_of(old)}, not {key_of(new)}")
            if new == old:
                return old
            if not new.resource_version:  # a new object: without a version it would overwrite any stored object
                metadata = new.metadata.evolve(resource_version=old.resource_version)
                new = evolve(new, metadata=metadata)
            return await replace(new, dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)

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
        """Replace the object of a subresource, and return it as the server has stored it.

        ``scale`` takes a Scale.  ``status``, ``resize``, ``ephemeralcontainers`` and ``approval`` take an object of the
        kind itself; the server replaces only the part that the subresource covers.

        The arguments are the same as for :meth:`create_subresource`.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: The body has a resourceVersion that differs from the stored one.
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
        """Apply the object of a subresource by server-side apply, and return it as the server has stored it.

        ``apply_subresource("web", "scale", Scale(spec=ScaleSpec(replicas=3)))`` applies the replicas of a Deployment.
        For subresources with objects of the kind itself, such as ``status``, call :meth:`apply`.

        ``force`` takes over fields that other managers own with other values.
        The other arguments are the same as for :meth:`create_subresource`.

        Raises:
            NotFoundError: The object or the subresource does not exist.
            ConflictError: Other managers own some of the fields, and ``force`` is false.
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

        The server lists the objects and deletes them one by one.  Other objects may be created during that time.
        Objects with finalizers or a grace period stay for a while.
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
                raise ValueError("everything=True does not allow selectors; omit one of them")
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
        """Wait until a request may be sent again after a :class:`~trioformer.errors.ConnectionFailedError`.

        Wait until the given time, or until a request of this client receives a response.  Then wait for a turn: the
        users of the client continue one after another, five a second while connections fail and 46 a second otherwise.

        Args:
            until: A time of trio's clock.
        """
        await self._requests.transport.health.wait_to_retry(until)


def pods_beside(api: Api[T], namespace: str | None) -> Api[Pod]:
    """Return the API of the pods in a namespace, with the client of another API."""
    from ..models.core_v1 import Pod  # noqa: PLC0415  # most programs do not need it

    return Api[Pod]._create(ApiRequests.of(api._requests.transport, Pod, namespace))


def check_api(given: object, argument: str) -> None:
    """Check that an argument is an API; a common mistake is to pass a client or the name of a pod.

    Raises:
        TypeError: It is not an API.
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
    """Return one object of an API, for functions that send requests about it.

    Raises:
        TypeError: The API is for another resource (see :func:`check_kind`), or ``name`` has another type.
        ValueError: The object's namespace differs from the API's, or from the given one.
    """
    check_kind(api.resource, caller, what, resources)
    return api._requests.locate(name, namespace)


def without_retries(api: A) -> A:
    """Return an API that sends each request once, for callers with their own retries.

    After a 401, the request is still sent again with a new credential.
    """
    found = copy(api)
    found._requests = attrs.evolve(api._requests, retries=False)
    return found


async def obtain_credential(api: ApiVerbs[Any]) -> None:
    """Run the credential plugin if needed, before a request with a deadline that is too short for it.

    Without a plugin, this does not even execute a checkpoint.

    Raises:
        ExecPluginError: The plugin did not return a credential.
        trio.ClosedResourceError: The client is closed.

    Cancellation:
        If no other request waits for the plugin, it is killed.
    """
    await api._requests.transport.obtain_credential()


def plugin_of(api: ApiVerbs[Any]) -> str:
    """Return the command of the credential plugin, or an empty string."""
    return api._requests.transport.plugin
