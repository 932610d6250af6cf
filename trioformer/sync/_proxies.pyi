# GENERATED from trioformer/client, do not edit: python -m tests.typing.door_stubs

from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Concatenate, Generic, Literal, ParamSpec, TypeVar, final, overload

from trioformer import client as trio_client
from trioformer.client._api_resources import ApiResources
from trioformer.client._client import VersionInfo
from trioformer.client._object_ref import ObjectRef
from trioformer.client._options import (
    FieldSelectorLike,
    FieldValidation,
    LabelSelectorLike,
    ListOptions,
    PropagationPolicy,
)
from trioformer.client._patch import PatchType
from trioformer.client._raw import Health, QueryParams, RawResponse, RequestBody
from trioformer.client._subresources import OwnSubresource
from trioformer.client._watch import WatchEvent
from trioformer.client.bodies._lists import PAGE_SIZE, ObjectList
from trioformer.client.bodies._undecodable import UndecodableHandler
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, Model, PartialObjectMetadata, ResourceInfo, Unstructured
from trioformer.models.authentication_v1 import TokenRequest
from trioformer.models.autoscaling_v1 import Scale
from trioformer.models.core_v1 import Pod, ServiceAccount
from trioformer.sync._portal import Portal

M = TypeVar("M", bound=Model)
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=KubernetesObject)

@final
class Door:
    def __init__(self, portal: Portal) -> None: ...
    @property
    def portal(self) -> Portal: ...

@final
class RawLines:
    def __iter__(self) -> RawLines: ...
    def __next__(self) -> str: ...

@final
class RawStream:
    @property
    def code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def receive_some(self) -> bytes:
        """Return the next bytes of the body, or ``b""`` at the end of the body."""

    def __iter__(self) -> RawStream: ...
    def __next__(self) -> bytes: ...
    def lines(self) -> RawLines:
        """Return an iterator over the lines of the body as strings without line endings."""

@final
class WatchStream(Generic[T]):
    def __iter__(self) -> WatchStream[T]: ...
    def __next__(self) -> WatchEvent[T]: ...
    def receive_batch(self) -> list[WatchEvent[T]]:
        """Wait for events, and return all received events up to the next undecodable event."""

@final
class Api(Generic[T]):
    @property
    def kind(self) -> type[T]: ...
    @property
    def resource(self) -> ResourceInfo: ...
    @property
    def namespace(self) -> str | None: ...
    @overload
    def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: OwnSubresource | None = None
    ) -> T:
        """Read one object."""

    @overload
    def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: Literal["scale"]
    ) -> Scale: ...
    @overload
    def get(
        self, name: str | ObjectRef | T, *, namespace: str | None = None, subresource: str
    ) -> T | Scale | Unstructured: ...
    def get_or_none(self, name: str | ObjectRef | T, *, namespace: str | None = None) -> T | None:
        """Read one object, or return None if the object does not exist."""

    def exists(self, name: str | ObjectRef | T, *, namespace: str | None = None) -> bool:
        """Return whether an object exists."""

    def list(
        self,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        page_size: int | None = PAGE_SIZE,
        on_undecodable: UndecodableHandler | None = None,
    ) -> ObjectList[T]:
        """Return a single list of all objects that match the selectors."""

    def list_page(
        self, options: ListOptions | None = None, *, on_undecodable: UndecodableHandler | None = None
    ) -> ObjectList[T]:
        """List one page of objects."""

    def pages(self, options: ListOptions | None = None) -> Iterator[ObjectList[T]]:
        """Iterate over the pages of a list: ``for page in api.pages(ListOptions(limit=500)):``."""

    def check_resource_version(
        self,
        resource_version: str,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
    ) -> None:
        """Send a cheap request to check that the server has reached a resourceVersion."""

    def watch(
        self,
        *,
        resource_version: str | None = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        timeout_seconds: int | None = None,
        allow_bookmarks: bool = False,
        send_initial_events: bool | None = None,
        resumable: bool = False,
        on_undecodable: UndecodableHandler | None = None,
    ) -> AbstractContextManager[WatchStream[T]]:
        """Watch objects for changes."""

    def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Create an object, and return the stored object."""

    def replace(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the object with the same name, and return the stored object."""

    def replace_status(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Replace the status of the object with the same name."""

    @overload
    def patch(
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
    ) -> T:
        """Patch an object, and return the stored object."""

    @overload
    def patch(
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
    def patch(
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
    def patch(
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
    def patch(
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
    def apply(
        self,
        obj: T | Mapping[str, object],
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Apply an object with server-side apply, and return the stored object."""

    def delete(
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
        """Delete an object."""

    def update(
        self,
        old: T,
        new: T,
        *,
        optimistic_lock: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Send the difference between two versions of an object as a merge patch, and return the stored object."""

    def update_status(
        self,
        old: T,
        new: T,
        *,
        optimistic_lock: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Send the difference between the statuses of two versions of an object, and return the stored object."""

    def update_with_retry(
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
        """Read an object, change it and replace it. After a conflict, start again."""

    def create_subresource(
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
        """Send an object to a subresource of the named object, and return the object in the response."""

    def replace_subresource(
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
        """Replace the object of a subresource, and return the stored object."""

    def apply_subresource(
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
        """Apply the object of a subresource with server-side apply, and return the stored object."""

    def scale(
        self,
        name: str | ObjectRef | T,
        replicas: int,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> Scale:
        """Set the number of replicas of an object as ``kubectl scale`` does, and return the new Scale."""

    def evict(
        self: Api[Pod],
        name: str | ObjectRef | Pod,
        *,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Evict a pod, as ``kubectl drain`` does: delete the pod if its disruption budgets allow the deletion."""

    def create_token(
        self: Api[ServiceAccount],
        name: str | ObjectRef | ServiceAccount,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expiration_seconds: int | None = None,
        bound_to: KubernetesObject | None = None,
    ) -> TokenRequest:
        """Create a token for a service account, as ``kubectl create token`` does."""

    def delete_collection(
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
        """Delete all selected objects in this API's namespace, and return their metadata."""

    def __init__(self, door: Door, target: trio_client.Api[T]) -> None: ...
    @property
    def _door(self) -> Door: ...
    @property
    def _target(self) -> trio_client.Api[T]: ...
    def run(
        self, function: Callable[Concatenate[trio_client.Api[T], P], Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Call an async function in trio, with the object of trioformer behind this one as its first argument."""

    @overload
    def open(
        self,
        function: Callable[Concatenate[trio_client.Api[T], P], AbstractAsyncContextManager[AsyncIterable[R]]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AbstractContextManager[Iterator[R]]:
        """Enter the async context manager of a function of trio, which is called as by :meth:`run`."""

    @overload
    def open(
        self,
        function: Callable[Concatenate[trio_client.Api[T], P], AbstractAsyncContextManager[R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AbstractContextManager[R]: ...

@final
class Client:
    @property
    def config(self) -> ClusterConfig: ...
    @overload
    def api(self, kind: type[T], namespace: str | None = None, *, drop_managed_fields: bool = False) -> Api[T]:
        """Return the API of one kind, without sending a request."""

    @overload
    def api(
        self, kind: str, namespace: str | None = None, *, drop_managed_fields: bool = False
    ) -> Api[KubernetesObject]: ...
    def impersonating(
        self,
        user: str,
        *,
        groups: Collection[str] = (),
        uid: str | None = None,
        extra: Mapping[str, Collection[str]] | None = None,
    ) -> Client:
        """Return a client that acts as another user, without sending a request."""

    @overload
    def discover(self, kind: str, /) -> type[KubernetesObject]:
        """Look up a kind on the server, and return a class for objects of this kind."""

    @overload
    def discover(self, kind: type[T], /) -> type[T]: ...
    @overload
    def discover(self, api_version: str, kind: str) -> type[Unstructured]: ...
    def api_resources(self) -> ApiResources:
        """Return all resources that the server serves, as ``kubectl api-resources`` does."""

    def version(self) -> VersionInfo:
        """Return the version of the server (``GET /version``)."""

    def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Create an object, as :meth:`Api.create` does."""

    @overload
    def apply(
        self,
        obj: T,
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Apply an object with server-side apply, as :meth:`Api.apply` does."""

    @overload
    def apply(
        self,
        obj: Mapping[str, object],
        *,
        subresource: OwnSubresource | None = None,
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
    ) -> KubernetesObject: ...
    def delete(
        self,
        obj: T,
        *,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T | None:
        """Delete an object by its name, as :meth:`Api.delete` does."""

    def request(
        self,
        method: str,
        path: str,
        *,
        params: QueryParams | None = None,
        body: RequestBody | None = None,
        content_type: str | None = None,
        accept: str | None = None,
    ) -> RawResponse:
        """Send a request to any path of the server, and return the successful response."""

    def stream(
        self,
        method: str,
        path: str,
        *,
        params: QueryParams | None = None,
        body: RequestBody | None = None,
        content_type: str | None = None,
        accept: str | None = None,
        endless: bool = False,
    ) -> AbstractContextManager[RawStream]:
        """Send a request to any path of the server, and open the body of the response as a stream."""

    def health(self, endpoint: str = "readyz", *, exclude: Collection[str] = ()) -> Health:
        """Check the health of the server."""

    def __init__(self, door: Door, target: trio_client.Client) -> None: ...
    @property
    def _door(self) -> Door: ...
    @property
    def _target(self) -> trio_client.Client: ...
    def run(
        self, function: Callable[Concatenate[trio_client.Client, P], Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Call an async function in trio, with the object of trioformer behind this one as its first argument."""

    @overload
    def open(
        self,
        function: Callable[Concatenate[trio_client.Client, P], AbstractAsyncContextManager[AsyncIterable[R]]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AbstractContextManager[Iterator[R]]:
        """Enter the async context manager of a function of trio, which is called as by :meth:`run`."""

    @overload
    def open(
        self,
        function: Callable[Concatenate[trio_client.Client, P], AbstractAsyncContextManager[R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AbstractContextManager[R]: ...
