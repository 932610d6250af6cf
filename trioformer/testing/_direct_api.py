"""The direct API of the embedded server: the methods with which a test changes objects and waits for changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, overload

import trio

from .._suggestions import describe
from ..models import KubernetesObject, ResourceInfo
from ..models._internal import decode, dumps, find_model, plain
from ._convert import K, Kind, as_status_errors, convert_like, find_kind, namespace_and_name, read_object
from ._history import describe_history
from ._storage._deletion import BACKGROUND
from ._storage._kinds import Kinds, ServedKind
from ._storage._patching import merge
from ._storage._registry import Registry
from ._storage._selection import Selection
from ._storage._storage import JSONObject, Storage
from ._storage._tracking import Writer

_DIRECT = Writer("APIServer", writes_all=True)
"""The manager of changes that are made through the direct API."""


class DirectAPI:
    """A base class of :class:`APIServer`, with the methods that create, change, delete and read objects."""

    __slots__ = ()

    _storage: Storage
    _kinds: Kinds
    _registry: Registry

    @overload
    def create(self, obj: K) -> K: ...
    @overload
    def create(self, obj: Mapping[str, object]) -> dict[str, object]: ...

    def create(self, obj: K | Mapping[str, object]) -> K | dict[str, object]:
        """Create an object, including its status.

        Raises:
            StatusError: The server rejects the request, with the same error as for a client.
        """
        with as_status_errors("create"):
            served, given = read_object(self._kinds, obj)
            stored = self._registry.create(served, namespace_and_name(served, given)[0], given, part="whole")
            return convert_like(obj, served, stored)

    @overload
    def replace(self, obj: K) -> K: ...
    @overload
    def replace(self, obj: Mapping[str, object]) -> dict[str, object]: ...

    def replace(self, obj: K | Mapping[str, object]) -> K | dict[str, object]:
        """Replace an object, including its status.  Its ``resourceVersion``, if any, must be the current one.

        Raises:
            StatusError: The server rejects the request, with the same error as for a client.
        """
        with as_status_errors("replace"):
            served, given = read_object(self._kinds, obj)
            stored = self._registry.update(
                served, *namespace_and_name(served, given), lambda _: given, part="whole", writer=_DIRECT
            )
            return convert_like(obj, served, stored)

    @overload
    def patch(
        self,
        kind: type[K],
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = ...,
        subresource: Literal["status"] | None = ...,
    ) -> K: ...
    @overload
    def patch(
        self,
        kind: ResourceInfo | str,
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = ...,
        subresource: Literal["status"] | None = ...,
    ) -> dict[str, object]: ...

    def patch(
        self,
        kind: type[K] | ResourceInfo | str,
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = "default",
        subresource: Literal["status"] | None = None,
    ) -> K | dict[str, object]:
        """Apply a JSON merge patch to an object, or to its status subresource with ``subresource="status"``.

        Raises:
            StatusError: The server rejects the request, with the same error as for a client.
            TypeError: The patch contains a model object, whose unset fields cannot be merged.
        """
        if (found := find_model(patch)) is not None:
            problem = f"{found[0] or 'the patch'} must be a mapping, not {describe(found[1])}"
            raise TypeError(f"patch {name}: {problem}; call replace() with the object, or pass a mapping with None")
        with as_status_errors(f"patch {name}"):
            served = find_kind(self._kinds, kind)
            change: JSONObject = decode(dumps(plain(patch)))
            stored = self._registry.update(
                served,
                namespace,
                name,
                lambda old: merge(old, change),
                part="whole" if subresource is None else subresource,
                writer=_DIRECT,
            )
            return convert_like(kind, served, stored)

    @overload
    def get(self, kind: type[K], name: str, *, namespace: str = ...) -> K: ...
    @overload
    def get(self, kind: ResourceInfo | str, name: str, *, namespace: str = ...) -> dict[str, object]: ...

    def get(
        self, kind: type[K] | ResourceInfo | str, name: str, *, namespace: str = "default"
    ) -> K | dict[str, object]:
        """Return an object as it is stored.

        Raises:
            NotFoundError: The object does not exist, or the kind is not served.
        """
        with as_status_errors(f"get {name}"):
            served = find_kind(self._kinds, kind)
            return convert_like(kind, served, self._registry.get(served, namespace, name))

    @overload
    def list(
        self,
        kind: type[K],
        *,
        namespace: str | None = ...,
        label_selector: str | None = ...,
        field_selector: str | None = ...,
    ) -> Sequence[K]: ...
    @overload
    def list(
        self,
        kind: ResourceInfo | str,
        *,
        namespace: str | None = ...,
        label_selector: str | None = ...,
        field_selector: str | None = ...,
    ) -> Sequence[dict[str, object]]: ...

    def list(
        self,
        kind: type[K] | ResourceInfo | str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Sequence[K | dict[str, object]]:
        """Return the stored objects of a kind in one namespace or in all namespaces, ordered by namespace and name.

        Raises:
            BadRequestError: A selector is not valid, or the kind does not support a field selector for this field.
            NotFoundError: The kind is not served.
        """
        with as_status_errors("list"):
            served = find_kind(self._kinds, kind)
            selection = Selection.parse(served, label_selector or "", field_selector or "")
            prefix = f"{namespace}/" if namespace is not None and served.info.namespaced else ""
            found = self._storage.snapshot(served.resource, prefix)
            return [convert_like(kind, served, stored) for stored in found if selection.matches(stored)]

    async def expect(
        self,
        kind: type[K],
        name: str,
        condition: Callable[[K], object] | None = None,
        *,
        namespace: str = "default",
        within: float = 60.0,
    ) -> K:
        """Wait until an object meets a condition, and return the object.

        ::

            await api_server.expect(Deployment, "web", lambda found: found.status.ready_replicas == 3)

        With ``trio.testing.MockClock(autojump_threshold=0)``, waiting takes no real time.  The condition is checked
        once for each state of the object that this method sees, and several changes without a checkpoint in between
        are seen as one.

        Args:
            kind: The class of the object.
            name: The name of the object.
            condition: A function that returns whether the object meets the condition.  None means that it exists.
            namespace: The namespace of the object.
            within: How long to wait, in seconds.

        Raises:
            AssertionError: The object did not meet the condition in time.  The message contains the history of the
                object, without the values in Secrets.
            Exception: The condition raised this error, which then has a note with the object.
            NotFoundError: The kind is not served.
        """
        served, key = self._find(kind, name, namespace)
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(within):
            while True:
                stored = self._storage.get(served.resource, key)
                if stored is not None:
                    found = convert_like(kind, served, stored)
                    try:
                        if condition is None or condition(found):
                            return found
                    except Exception as exc:
                        state = f"{served.info.kind} {key} at resourceVersion {stored.revision}"
                        exc.add_note(f"raised by the condition {condition!r} of expect() for {state}")
                        raise
                await self._storage.wait(served.resource)
        what = "exist" if condition is None else "meet the condition"
        raise self._unmet(served, key, f"did not {what} within {within:g} s")

    async def expect_absent(self, kind: Kind, name: str, *, namespace: str = "default", within: float = 60.0) -> None:
        """Wait until an object does not exist.

        Args:
            kind: The kind of the object.
            name: The name of the object.
            namespace: The namespace of the object.
            within: How long to wait, in seconds.

        Raises:
            AssertionError: The object still existed after this time.  The message is as for :meth:`expect`.
            NotFoundError: The kind is not served.
        """
        served, key = self._find(kind, name, namespace)
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(within):
            while self._storage.get(served.resource, key) is not None:
                await self._storage.wait(served.resource)
            return
        raise self._unmet(served, key, f"still existed after {within:g} s")

    def _find(self, kind: Kind, name: str, namespace: str) -> tuple[ServedKind, str]:
        with as_status_errors(f"expect {name}"):
            served = find_kind(self._kinds, kind)
        return served, f"{namespace}/{name}" if served.info.namespaced else name

    def _unmet(self, served: ServedKind, key: str, problem: str) -> AssertionError:
        history = "\n".join(describe_history(self._storage, served, key))
        return AssertionError(f"{served.info.kind} {key} {problem}; its history:\n{history}")

    @overload
    def delete(self, kind: Kind, name: str, *, namespace: str = ...) -> None: ...
    @overload
    def delete(self, kind: KubernetesObject) -> None: ...

    def delete(self, kind: Kind | KubernetesObject, name: str = "", *, namespace: str = "default") -> None:
        """Delete an object with the policy ``Background``.  Its finalizers must be removed before it is removed.

        Args:
            kind: The object, or its class.
            name: The name of the object, if ``kind`` is a class.
            namespace: The namespace of the object, if ``kind`` is a class.

        Raises:
            StatusError: The server rejects the request, with the same error as for a client.
        """
        if isinstance(kind, KubernetesObject):
            namespace, name = kind.namespace or "default", kind.name
            kind = type(kind)
        with as_status_errors(f"delete {name}"):
            self._registry.delete(find_kind(self._kinds, kind), namespace, name, BACKGROUND)
