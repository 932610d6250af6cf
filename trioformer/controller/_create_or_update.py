"""Create an object if it does not exist, and change it if it differs from the desired object.

Only the fields of the desired object are compared, because the server and other controllers set further fields:

- Mappings are compared member by member.  A null, which requires ``from_dict``, removes a member.
- Lists are compared item by item; further items are removed.  Items with a ``name``, such as containers, are matched by
  name, others by position.
- Selectors are compared as a whole.
- If members exclude each other, such as the sources of a volume, the desired one removes the others.
- If the desired mapping is empty, an absent mapping differs from it, but a mapping with members does not.
- An empty list equals an absent one.  Quantities are compared as amounts.
- Finalizers and owner references of others stay.
- Other metadata except labels and annotations, and the status of a kind with a status subresource, are not compared and
  not sent.

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
from ..errors import ConflictError, NotFoundError
from ..models import KubernetesObject, encode, evolve, from_dict, json_equal, merge_patch, to_dict
from ..models._internal import with_amounts
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
"""Members that exclude each other, by the name of their parent: the unions of the built-in kinds.

A client has no schemas, so the names also apply to custom kinds, which may contain pod templates.
"""
_WHOLE: Final = frozenset({"env"})
"""Parents whose stored members are removed if none is wanted: a variable without a value is empty."""
_BY_TYPE: Final = frozenset({"appArmorProfile", "limitResponse", "seccompProfile", "strategy", "updateStrategy"})
"""Mappings whose other members depend on their ``type``."""

Operation: TypeAlias = Literal["created", "updated", "unchanged"]
"""The operation on an object."""


@final
@attrs.frozen
class Written(Generic[T]):
    """The result of :func:`create_or_update`."""

    object: T
    """The object as the server stored it, or as it was read if nothing was sent."""
    operation: Operation
    """The operation; ``unchanged`` also if the patch changed nothing on the server."""


async def create_or_update(
    api: Api[T] | Client, wanted: T, *, owner: KubernetesObject | None = None, lister: Lister[T] | None = None
) -> Written[T]:
    """Create an object if it does not exist, and change it if a field differs.

    ::

        wanted = ConfigMap(metadata=ObjectMeta(name=website.name), data={"index.html": website.spec.page})
        written = await create_or_update(client, wanted, owner=website)

    Only the fields of ``wanted`` are compared and sent.  A field that you remove from ``wanted`` stays on the server;
    to remove it, use server-side apply: see :func:`apply_owned`.
    The same holds for items of lists: fields that the server has set are not a difference.
    A selector is compared as a whole.  Of members of built-in kinds that exclude each other, such as ``value`` and
    ``valueFrom`` of a variable, the wanted one removes the others.  In other kinds, set a member to null to remove it.
    An empty mapping is sent if the server's object does not have this member.

    A change is a merge patch with the resourceVersion of the compared state.
    Quantities are compared as amounts, so ``0.5`` equals ``500m``.  The ``stringData`` of a Secret is compared with its
    ``data``.
    Another value that the server normalizes is sent each time; write it in the server's form.

    Args:
        api: The client, or an API of the object's kind.
        wanted: The object with the fields to set.  Its default namespace is the owner's or the API's.
        owner: The object that becomes its controller, as with :func:`set_controller_reference`.
        lister: Reads the current state; after a conflict, it is read from the server once.  None always reads it from
            the server.

    Returns:
        The result, with the ``object`` as the server stored it, and an ``operation``, which is ``created``, ``updated``
        or ``unchanged``.

    Raises:
        AlreadyOwnedError: The object has another controller.
        ConflictError: Another client changed or created the object at the same time.
        InvalidError: The server rejected it, for example because a field is immutable.
        TypeError: The object is not of the API's kind.
        ValueError: The object has no name, or is not in the owner's namespace.

    Cancellation: the server may have stored the object; the next call finds it.
    """
    api = api_of(api, wanted)
    if not wanted.name:
        raise ValueError(f"the wanted {wanted.kind} has no name")
    wanted = _in_namespace(wanted, api, owner)
    if lister is not None:
        try:
            return await _write(api, wanted, owner, lister.get(wanted))
        except (ConflictError, NotFoundError):
            pass  # the cache is behind
    return await _write(api, wanted, owner, await _read(api, wanted))


async def apply_owned(
    api: Api[T] | Client, wanted: T, *, owner: KubernetesObject, field_manager: str | None = None, force: bool = True
) -> T:
    """Apply an object and set its controller, with server-side apply; see :meth:`Api.apply`.

    Unlike :func:`create_or_update`, the server also removes fields that this manager applied before and no longer
    applies.  Nothing is read, and a request is always sent.

    Args:
        api: The client, or an API of the object's kind.
        wanted: The object with all fields that the manager sets, and no others.  Its default namespace is the owner's.
        owner: The object that becomes its controller, as with :func:`set_controller_reference`.
        field_manager: The field manager, such as the controller's name; None for the client's own.
        force: Take over fields that another manager has set to another value.  Controllers should do this; otherwise
            they would fail forever.

    Returns:
        The object as the server stored it.

    Raises:
        InvalidError: The server rejected it, for example because it has another controller.
        ApplyConflictError: Without ``force``, another manager has set a field to another value.
        ValueError: The object has no name, or is not in the owner's namespace; or there is no field manager.
        TypeError: The object is not of the API's kind.

    Cancellation: the server may have stored the object; the next call applies the same.
    """
    owned = set_controller_reference(wanted, owner)
    return await api_of(api, wanted).apply(owned, field_manager=field_manager, force=force)


def api_of(api: Api[T] | Client, obj: T) -> Api[T]:
    """Return the API of an object's kind.

    Raises:
        TypeError: ``api`` is an API of another kind, or not an API or a client.
    """
    if isinstance(api, Client):
        return api.api(type(obj))
    if not isinstance(api, Api):
        raise TypeError(f"pass a client, or an API such as client.api(Pod), not {describe(api)}")
    if not isinstance(obj, api.kind):
        raise TypeError(f"the API is for {api.kind.__name__}, but the object is {describe(obj)}")
    return api


def _in_namespace(wanted: T, api: Api[T], owner: KubernetesObject | None) -> T:
    """Set the namespace of an object that has none: the owner's, or else the API's."""
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


async def _write(api: Api[T], wanted: T, owner: KubernetesObject | None, now: T | None) -> Written[T]:
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
    changes.setdefault("metadata", {})["resourceVersion"] = now.resource_version
    written = await api.patch(now, changes)
    return Written(written, "unchanged" if written.resource_version == now.resource_version else "updated")


def _wanted_members(api: Api[T], wanted: T, owned: T, now: T) -> dict[str, Any]:
    """Return the members to compare, with the desired lists in the metadata."""
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
    """Return the merge patch that sets the wanted members.

    Args:
        now: The stored object, or a mapping in it.
        wanted: The wanted members.
        parent: The name of the mapping; empty for the object.
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
    """Return the wanted value, with the members of the stored one that it does not mention."""
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
    # An unnamed item keeps further members only if it is otherwise equal to the wanted one.
    merged = [_merged(a, b, parent) for a, b in zip(now, wanted, strict=False)]
    same = [a if json_equal(_said(a), _said(b)) else None for a, b in zip(now, merged, strict=False)]
    alone = [_merged(None, item, parent) for item in wanted]
    return [item if a is None else a for a, item in zip_longest(same, alone)]


def _excluded(now: Mapping[str, Any], wanted: Mapping[str, Any], parent: str) -> AbstractSet[str]:
    """Return the stored members that the wanted ones exclude."""
    if parent in _BY_TYPE and wanted.get("type") not in (None, now.get("type")):
        return now.keys() - wanted.keys()
    one_of = _ONE_OF.get(parent, frozenset())
    if parent in _WHOLE or any(wanted.get(name) is not None for name in one_of):
        return (one_of & now.keys()) - wanted.keys()
    return frozenset()


def _is_selector(name: str) -> bool:
    return name == "selector" or name.endswith("Selector")


def _said(value: Any) -> Any:
    """Return a value without members that are null or empty lists, which a server may omit."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {name: _said(each) for name, each in members if each is not None and each != []}
    return [_said(each) for each in value] if isinstance(value, list) else value


def _names_in(items: Sequence[Any]) -> list[str] | None:
    """Return the names of the items; None if a name is missing or not unique."""
    names = [cast("dict[str, Any]", each).get("name") if isinstance(each, dict) else None for each in items]
    found = [name for name in names if isinstance(name, str)]
    return found if len(set(found)) == len(items) else None
