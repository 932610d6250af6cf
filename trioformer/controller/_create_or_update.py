"""Create an object if it does not exist, or change it if it differs from the desired object.

Only the fields of the desired object are compared, because the server and other controllers set additional fields.  The
rules are:

- Mappings are compared member by member.  A null value, which requires ``from_dict``, removes a member.
- Lists are compared item by item, and surplus items are removed.  List items with a ``name``, such as containers, are
  matched by name.  Other items are matched by position.
- Selectors are compared as a whole.
- If members exclude each other, such as the sources of a volume, a desired member removes the others.
- An empty desired mapping differs from an absent mapping, but not from a mapping with members.
- An empty list equals an absent list.  Quantities are compared by amount.
- Finalizers and owner references that other clients have set are kept.
- Of the remaining metadata, only labels and annotations are compared and sent.  The status of a kind with a status
  subresource is not compared or sent either.

Source: controller-runtime ``pkg/controller/controllerutil`` (``CreateOrPatch``, ``SetControllerReference``);
apimachinery ``third_party/forked/golang/reflect`` (``DeepDerivative``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import zip_longest
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, final

import attrs

from .._suggestions import describe
from ..cache import Lister
from ..client import Api, Client
from ..client._internal import check_same
from ..errors import ConflictError, NotFoundError, NotOwnedError
from ..models import KubernetesObject, encode, evolve, from_dict, json_equal, merge_patch, to_dict
from ..models._internal import newer_field, with_amounts
from ._adoption import set_controller_reference

T = TypeVar("T", bound=KubernetesObject)

_HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "sleep", "tcpSocket"})
_PEERS: Final = frozenset({"ipBlock", "namespaceSelector", "podSelector"})
_VOLUME_SOURCES: Final = """
    awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral
    fc flexVolume flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs
    persistentVolumeClaim photonPersistentDisk portworxVolume projected quobyte rbd scaleIO secret
    storageos vsphereVolume
"""
_ONE_OF: Final[Mapping[str, frozenset[str]]] = {
    "clientConfig": frozenset({"service", "url"}),
    "defaultBackend": frozenset({"resource", "service"}),
    "env": frozenset({"value", "valueFrom"}),
    "from": _PEERS,
    "livenessProbe": _HANDLERS,
    "paramRef": frozenset({"name", "selector"}),
    "port": frozenset({"name", "number"}),
    "postStart": _HANDLERS,
    "preStop": _HANDLERS,
    "readinessProbe": _HANDLERS,
    "spec": frozenset({"maxUnavailable", "minAvailable"}),
    "startupProbe": _HANDLERS,
    "to": _PEERS,
    "valueFrom": frozenset({"configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"}),
    "volumes": frozenset(_VOLUME_SOURCES.split()),
}
"""The members that exclude each other in built-in kinds, by the name of their parent.

The names also apply to custom kinds, because these may contain pod templates and their schemas are unknown.
"""
_WHOLE: Final = frozenset({"env"})
"""The parents whose exclusive members are removed if ``wanted`` contains none of them, such as an environment variable
without a value."""
_BY_TYPE: Final = frozenset({"appArmorProfile", "limitResponse", "seccompProfile", "strategy", "updateStrategy"})
"""The mappings in which the permitted members depend on the ``type``."""

Operation: TypeAlias = Literal["created", "updated", "unchanged"]
"""The operation that :func:`create_or_update` performed."""


@final
@attrs.frozen
class Written(Generic[T]):
    """The result of :func:`create_or_update`."""

    object: T
    """The object as the server stored it, or as it was read if no change was sent."""
    operation: Operation
    """The operation, which is also ``"unchanged"`` if a patch was sent but changed nothing on the server."""


async def create_or_update(
    api: Api[T] | Client, wanted: T, *, owner: KubernetesObject | None = None, lister: Lister[T] | None = None
) -> Written[T]:
    """Create an object if it does not exist, or change it if a field differs.

    ::

        wanted = ConfigMap(metadata=ObjectMeta(name=website.name), data={"index.html": website.spec.page})
        written = await create_or_update(client, wanted, owner=website)

    Only the fields of ``wanted`` are compared and sent, including the fields of list items.  So a field that you remove
    from ``wanted`` is kept on the server.  To remove such fields, use server-side apply with :func:`apply_owned`. A
    selector is compared as a whole.  If members of built-in kinds exclude each other, such as ``value`` and
    ``valueFrom`` of a variable, the member in ``wanted`` removes the others.  In other kinds, set a member to null to
    remove it. An empty mapping is sent if the object on the server does not have this member.

    A change is sent as a merge patch with the uid and the resourceVersion of the compared state. Quantities are
    compared by amount, so ``0.5`` equals ``500m``.  The ``stringData`` of a Secret is compared with its ``data``. All
    other values should be in the form in which the server stores them.  Otherwise, the value differs in every call, and
    is sent again each time.

    Args:
        api: The client, or an API for the object's kind.
        wanted: The object with the fields to set.  If the object has no namespace, the namespace of the owner or of
            the API is used.
        owner: The object that becomes the controller of ``wanted``, as with :func:`set_controller_reference`.
        lister: The lister from which to read the current state.  After a conflict, the state is read from the server
            once.  With the default, None, the state is always read from the server.

    Returns:
        A result with the ``object`` as the server stored it, and the ``operation``, which is ``"created"``,
        ``"updated"`` or ``"unchanged"``.

    Raises:
        AlreadyOwnedError: The object has another controller.
        ConflictError: Another client created or changed the object at the same time.  Or ``wanted`` or the object in
            the cache has another uid than the object on the server, which was created anew; it is not changed.
        InvalidError: The server rejected the object, for example because a changed field is immutable.
        TypeError: The object's kind is not the kind of the API.
        ValueError: The object has no name, or is not in the owner's namespace.

    Cancellation: the server may have stored the object.  The next call then finds the object.
    """
    api = api_of(api, wanted)
    if not wanted.name:
        raise ValueError(f"the wanted {wanted.kind} has no name")
    wanted = _in_namespace(wanted, api, owner)
    uid = wanted.uid
    if lister is not None:
        try:
            known = lister.get(wanted)
            uid = uid or ("" if known is None else known.uid)
            if known is not None and newer_field(known):  # JSON made of it would omit the field
                known = await _read(api, wanted)
            return await _write(api, wanted, owner, known, uid)
        except (ConflictError, NotFoundError, NotOwnedError):
            pass  # the cache is behind, or cannot know whether the object exists
    return await _write(api, wanted, owner, await _read(api, wanted), uid)


async def apply_owned(
    api: Api[T] | Client, wanted: T, *, owner: KubernetesObject, field_manager: str | None = None, force: bool = True
) -> T:
    """Set the controller of an object, and apply the object with server-side apply.

    In contrast to :func:`create_or_update`, the server also removes the fields that this field manager applied earlier
    but no longer applies.  The function always sends one request, without reading the current state.  See also
    :meth:`Api.apply`.

    Args:
        api: The client, or an API for the object's kind.
        wanted: The object with exactly the fields that the field manager sets.  If the object has no namespace, the
            namespace of the owner is used.
        owner: The object that becomes the controller of ``wanted``, as with :func:`set_controller_reference`.
        field_manager: The field manager, such as the name of the controller.  If None, the client's own field manager
            is used.
        force: Whether to take over fields that another manager has set to other values.  Controllers should set
            ``force``, because otherwise such a conflict would never be resolved.

    Returns:
        The object as the server stored it.

    Raises:
        InvalidError: The server rejected the object, for example because it has another controller.
        ApplyConflictError: Another manager has set a field to another value, and ``force`` is false.
        ValueError: The object has no name, the object is not in the owner's namespace, or there is no field manager.
        TypeError: The object's kind is not the kind of the API.

    Cancellation: the server may have stored the object.  The next call then changes nothing.
    """
    owned = set_controller_reference(wanted, owner)
    return await api_of(api, wanted).apply(owned, field_manager=field_manager, force=force)


def api_of(api: Api[T] | Client, obj: T) -> Api[T]:
    """Return the API for the kind of an object.

    Raises:
        TypeError: ``api`` is an API for another kind, or is neither an API nor a client.
    """
    if isinstance(api, Client):
        return api.api(type(obj))
    if not isinstance(api, Api):
        raise TypeError(f"pass a client, or an API such as client.api(Pod), not {describe(api)}")
    if not isinstance(obj, api.kind):
        raise TypeError(f"the API is for {api.kind.__name__}, but the object is {describe(obj)}")
    return api


def _in_namespace(wanted: T, api: Api[T], owner: KubernetesObject | None) -> T:
    """Return an object with the namespace of the owner or of the API, if the object has no namespace."""
    namespace = (owner.namespace if owner is not None else None) or api.namespace
    if wanted.namespace is not None or namespace is None or not api.resource.namespaced:
        return wanted
    return evolve(wanted, metadata=wanted.metadata.evolve(namespace=namespace))


async def _read(api: Api[T], wanted: T) -> T | None:
    try:
        return await api.get(wanted)
    except NotFoundError as error:
        if error.is_unexpected_server_error:  # a proxy's page
            raise
        return None


async def _write(api: Api[T], wanted: T, owner: KubernetesObject | None, now: T | None, uid: str) -> Written[T]:
    if now is None:
        made = wanted if owner is None else set_controller_reference(wanted, owner)
        if b"null" in encode(made):  # a server may store an empty string instead
            made = from_dict(api.kind, _merged(None, to_dict(made), ""))
        return Written(await api.create(made), "created")
    owned = now if owner is None else set_controller_reference(now, owner)
    have, want = to_dict(now), _wanted_members(api, wanted, owned, now)
    changes = _changes_of(have, want)
    # Quantities are converted to amounts only if there is a difference, because this is slow.
    if not changes or not _changes_of(with_amounts(api.kind, have), with_amounts(api.kind, want)):
        return Written(now, "unchanged")
    check_same(wanted, uid, now)
    changes.setdefault("metadata", {}).update(uid=now.uid, resourceVersion=now.resource_version)
    written = await api.patch(now, changes)
    return Written(written, "unchanged" if written.resource_version == now.resource_version else "updated")


def _wanted_members(api: Api[T], wanted: T, owned: T, now: T) -> dict[str, Any]:
    """Return the members to compare, including the desired finalizers and owner references."""
    members = to_dict(wanted)
    for name in ("apiVersion", "kind", *(["status"] if "status" in api.resource.subresources else [])):
        members.pop(name, None)
    if (api.resource.group, api.resource.kind) == ("", "Secret") and "stringData" in members:
        # The server stores it in data.
        encoded = {name: b64encode(text.encode()).decode() for name, text in members.pop("stringData").items()}
        members["data"] = {**(members.get("data") or {}), **encoded}
    given = members.pop("metadata", {})
    metadata: dict[str, Any] = {name: given[name] for name in ("labels", "annotations") if name in given}
    missing = [each for each in wanted.metadata.finalizers if each not in now.metadata.finalizers]
    if missing:
        metadata["finalizers"] = [*now.metadata.finalizers, *missing]
    known = {each.uid for each in owned.metadata.owner_references}
    others = [each for each in wanted.metadata.owner_references if each.uid not in known]
    owners = [*owned.metadata.owner_references, *others]
    if others or owned is not now:
        metadata["ownerReferences"] = [to_dict(each) for each in owners]
    return {**members, "metadata": metadata}


def _changes_of(now: Mapping[str, Any], wanted: Mapping[str, Any], parent: str = "") -> dict[str, Any]:
    """Return a merge patch that sets the wanted members.

    Args:
        now: The stored object, or a mapping inside it.
        wanted: The wanted members.
        parent: The name of the mapping, or an empty string for the object itself.
    """
    changes: dict[str, Any] = dict.fromkeys(_excluded(now, wanted, parent))
    for name, value in wanted.items():
        old = now.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            inside = _changes_of_selector if _is_selector(name) else _changes_of
            if inner := inside(cast("dict[str, Any]", old), cast("dict[str, Any]", value), name):
                changes[name] = inner
        elif old in (None, []) and value in (None, []):
            continue  # equivalent
        else:
            new = _merged(old, value, name)
            if old is None and value and new == {}:
                continue  # only nulls, and no member to remove
            if not json_equal(old, new) and not json_equal(_said(old), _said(new)):
                changes[name] = new
    return changes


def _changes_of_selector(now: Mapping[str, Any], wanted: Mapping[str, Any], _parent: str) -> dict[str, Any]:
    return merge_patch(_said(now), _said(wanted))


def _merged(now: Any, wanted: Any, parent: str) -> Any:
    """Return the wanted value, completed with the members that only the stored value contains."""
    if isinstance(wanted, dict):
        old = cast("dict[str, Any]", now) if isinstance(now, dict) and not _is_selector(parent) else {}
        excluded = _excluded(old, cast("dict[str, Any]", wanted), parent)
        members = {name: value for name, value in old.items() if name not in excluded}
        for name, value in cast("dict[str, Any]", wanted).items():
            if value is None:
                members.pop(name, None)
            else:
                members[name] = _merged(members.get(name), value, name)
        return members
    if isinstance(wanted, list):
        return _merged_items(now if isinstance(now, list) else [], wanted, parent)
    return wanted


def _merged_items(now: Sequence[Any], wanted: Sequence[Any], parent: str) -> list[Any]:
    old, new = _names_in(now), _names_in(wanted)
    if new is not None:
        by_name = dict(zip(old, now, strict=True)) if old is not None else {}
        return [_merged(by_name.get(name), item, parent) for name, item in zip(new, wanted, strict=True)]
    # An unnamed item keeps its other members only if it equals the wanted item in all wanted members.
    merged = [_merged(a, b, parent) for a, b in zip(now, wanted, strict=False)]
    same = [a if json_equal(_said(a), _said(b)) else None for a, b in zip(now, merged, strict=False)]
    alone = [_merged(None, item, parent) for item in wanted]
    return [item if a is None else a for a, item in zip_longest(same, alone)]


def _excluded(now: Mapping[str, Any], wanted: Mapping[str, Any], parent: str) -> AbstractSet[str]:
    """Return the names of the stored members that the wanted members exclude."""
    if parent in _BY_TYPE and wanted.get("type") not in (None, now.get("type")):
        return now.keys() - wanted.keys()
    one_of = _ONE_OF.get(parent, frozenset())
    if parent in _WHOLE or any(wanted.get(name) is not None for name in one_of):
        return (one_of & now.keys()) - wanted.keys()
    return frozenset()


def _is_selector(name: str) -> bool:
    return name == "selector" or name.endswith("Selector")


def _said(value: Any) -> Any:
    """Return a value without null members and empty lists, which a server may omit."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {name: _said(each) for name, each in members if each is not None and each != []}
    return [_said(each) for each in value] if isinstance(value, list) else value


def _names_in(items: Sequence[Any]) -> list[str] | None:
    """Return the names of the items, or None if a name is missing or not unique."""
    names = [cast("dict[str, Any]", each).get("name") if isinstance(each, dict) else None for each in items]
    found = [name for name in names if isinstance(name, str)]
    return found if len(set(found)) == len(items) else None
