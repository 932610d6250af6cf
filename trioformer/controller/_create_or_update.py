"""Objects that a controller keeps as it wants them: created if they are missing, changed if they differ.

What is compared: the fields that the wanted object has.  A server fills in others, and other controllers set some, so
all that the wanted object does not mention is left alone:

- A mapping is compared member by member.  A null, which only an object made by ``from_dict`` can have, removes one.
- A list is as wanted, item by item; but an item may have members that the wanted one does not mention.  Items with a
  ``name``, such as containers, are found by it, all others by their place.  What is not wanted is removed.
- A selector is compared as a whole.
- Of members that exclude each other, such as the sources of a volume, a wanted one removes the others.
- An empty mapping is a value, so it differs from an absent one; in one that is there it asks for nothing.
- An empty list equals an absent one, and a quantity the same amount in another form.
- Labels and annotations are members of mappings.  Finalizers and owner references of others stay.
- All other metadata, and the status of a kind with a status subresource, are not compared and not sent.

Source: controller-runtime ``pkg/controller/controllerutil`` (``CreateOrPatch``, ``SetControllerReference``), where a
function changes the stored object; apimachinery ``third_party/forked/golang/reflect`` (``DeepDerivative``).
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
    "volumes": frozenset(
        {
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cephfs",
            "cinder",
            "configMap",
            "csi",
            "downwardAPI",
            "emptyDir",
            "ephemeral",
            "fc",
            "flexVolume",
            "flocker",
            "gcePersistentDisk",
            "gitRepo",
            "glusterfs",
            "hostPath",
            "image",
            "iscsi",
            "nfs",
            "persistentVolumeClaim",
            "photonPersistentDisk",
            "portworxVolume",
            "projected",
            "quobyte",
            "rbd",
            "scaleIO",
            "secret",
            "storageos",
            "vsphereVolume",
        }
    ),
}
"""Members of which a wanted one excludes those that are not wanted, by the member that they, or a list of them, are in.

Most are the unions of the built-in kinds.  A client has no schemas; the names are those of pod templates, too, which
kinds of one's own contain.
"""
_WHOLE: Final = frozenset({"env"})
"""Where none of the members is a statement as well: a variable without a value is empty."""
_BY_TYPE: Final = frozenset({"appArmorProfile", "limitResponse", "seccompProfile", "strategy", "updateStrategy"})
"""Mappings of which the other members belong to their ``type``."""

Operation: TypeAlias = Literal["created", "updated", "unchanged"]
"""What was done to an object."""


@final
@attrs.frozen
class Written(Generic[T]):
    """The result of :func:`create_or_update`."""

    object: T
    """The object as the server has stored it; if nothing had to be sent, as it was read."""
    operation: Operation
    """What was done; ``unchanged`` also if the server says that what was sent changes nothing."""


async def create_or_update(
    api: Api[T] | Client, wanted: T, *, owner: KubernetesObject | None = None, lister: Lister[T] | None = None
) -> Written[T]:
    """Create an object if it does not exist, and change it if a field of it is not as wanted.

    ::

        wanted = ConfigMap(metadata=ObjectMeta(name=website.name), data={"index.html": website.spec.page})
        written = await create_or_update(client, wanted, owner=website)

    Only the fields that ``wanted`` has are compared and sent; a field that an earlier version of it had is left alone,
    so it stays.  Server-side apply also removes those: see :func:`apply_owned`.
    Items of lists are compared likewise: what the server has filled in is no difference.
    A selector is compared as a whole.  Of members of built-in kinds that exclude each other, such as the ``value`` and
    ``valueFrom`` of a variable, a wanted one removes the others; those of other kinds stay, unless wanted as null.
    An empty mapping is sent if there is no such member.

    A change is a merge patch with the resourceVersion of the state that was compared.
    A quantity equals the same amount in another form, such as ``0.5`` and ``500m``, and the ``stringData`` of a Secret
    the ``data`` that the server makes of it.
    Another value that the server stores in a form of its own is sent each time: write it as the server does.

    Args:
        api: The client, or the API of the object's kind, in its namespace or in all.
        wanted: The object, with the fields that matter.  Without a namespace it is in that of the owner or of the API.
        owner: The object becomes its controller, as with :func:`set_controller_reference`.
        lister: Where the present state is read; after a conflict, it is read from the server once.  None reads it from
            the server each time.

    Returns:
        The object, and what was done.

    Raises:
        AlreadyOwnedError: Another object controls it already.
        ConflictError: It was changed between reading and writing, or was created by somebody else.
        InvalidError: The server does not accept it, for example because a field cannot be changed.
        TypeError: The object is not of the API's kind.
        ValueError: It has no name, or is not in the owner's namespace.

    Cancellation: the server may have stored the object; the next call finds it.
    """
    api = api_of(api, wanted)
    if not wanted.name:
        raise ValueError(f"the wanted {wanted.kind} has no name, by which it would be found")
    wanted = _in_namespace(wanted, api, owner)
    if lister is not None:
        try:
            return await _write(api, wanted, owner, lister.get(wanted))
        except (ConflictError, NotFoundError):
            pass  # the cache is late, or somebody has just written
    return await _write(api, wanted, owner, await _read(api, wanted))


async def apply_owned(
    api: Api[T] | Client, wanted: T, *, owner: KubernetesObject, field_manager: str | None = None, force: bool = True
) -> T:
    """Apply an object that another object controls, by server-side apply; see :meth:`Api.apply`.

    In comparison with :func:`create_or_update`, the server also removes the fields that this manager has applied
    before, and does not apply any more; nothing is read; and a request is sent each time, which changes nothing if all
    is as wanted.

    Args:
        api: The client, or the API of the object's kind, in its namespace or in all.
        wanted: The object, with all fields that the manager wants to have, and no others.  Without a namespace it is in
            that of the owner.
        owner: The object becomes its controller, as with :func:`set_controller_reference`.
        field_manager: Who applies, such as the name of the controller; None for that of the client.
        force: Whether to take fields that another manager has set to another value.  A controller should: it owns the
            object, and would otherwise fail for ever.

    Returns:
        The object as the server has stored it.

    Raises:
        InvalidError: The server does not accept it, for example because another object controls it already.
        ApplyConflictError: Without ``force``, another manager has set a field to another value.
        ValueError: It has no name, or is not in the owner's namespace; or there is no field manager.
        TypeError: The object is not of the API's kind.

    Cancellation: the server may have stored the object; the next call applies the same.
    """
    owned = set_controller_reference(wanted, owner)
    return await api_of(api, wanted).apply(owned, field_manager=field_manager, force=force)


def api_of(api: Api[T] | Client, obj: T) -> Api[T]:
    """Return the API of an object's kind.

    Raises:
        TypeError: It is the API of another kind, or neither an API nor a client.
    """
    if isinstance(api, Client):
        return api.api(type(obj))
    if not isinstance(api, Api):
        raise TypeError(f"pass a client, or an API such as client.api(Pod), not {describe(api)}")
    if not isinstance(obj, api.kind):
        raise TypeError(f"this is the API of {api.kind.__name__}, and the object is {describe(obj)}")
    return api


def _in_namespace(wanted: T, api: Api[T], owner: KubernetesObject | None) -> T:
    """Put an object that has no namespace into that of its owner, or else that of the API."""
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
        if b"null" in encode(made):  # a server may make an empty text of it
            made = from_dict(api.kind, _merged(None, to_dict(made), ""))
        return Written(await api.create(made), "created")
    owned = now if owner is None else set_controller_reference(now, owner)
    have, want = to_dict(now), _wanted_members(api, wanted, owned, now)
    changes = _changes_of(have, want)
    # Quantities are compared as amounts only if there is a difference: hardly ever.
    if not changes or not _changes_of(with_amounts(api.kind, have), with_amounts(api.kind, want)):
        return Written(now, "unchanged")
    changes.setdefault("metadata", {})["resourceVersion"] = now.resource_version
    written = await api.patch(now, changes)
    return Written(written, "unchanged" if written.resource_version == now.resource_version else "updated")


def _wanted_members(api: Api[T], wanted: T, owned: T, now: T) -> dict[str, Any]:
    """Return the members that are compared, with the lists in the metadata as they shall be."""
    members = to_dict(wanted)
    for name in ("apiVersion", "kind", *(["status"] if "status" in api.resource.subresources else [])):
        members.pop(name, None)
    if (api.resource.group, api.resource.kind) == ("", "Secret") and "stringData" in members:
        # The server stores it in data, and returns only that.
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
    """Return the merge patch that makes the members as wanted, and leaves all others alone.

    Args:
        now: The stored object, or a mapping in it.
        wanted: What it shall be.
        parent: The name of the member that the mapping is; empty for the object.
    """
    changes: dict[str, Any] = dict.fromkeys(_excluded(now, wanted, parent))
    for name, value in wanted.items():
        old = now.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            inside = _changes_of_selector if _is_selector(name) else _changes_of
            if inner := inside(cast("dict[str, Any]", old), cast("dict[str, Any]", value), name):
                changes[name] = inner
        elif old in (None, []) and value in (None, []):
            continue  # both say nothing
        else:
            new = _merged(old, value, name)
            if old is None and value and new == {}:
                continue  # nothing but nulls, of what is not there
            if not json_equal(old, new) and not json_equal(_said(old), _said(new)):
                changes[name] = new
    return changes


def _changes_of_selector(now: Mapping[str, Any], wanted: Mapping[str, Any], _parent: str) -> dict[str, Any]:
    return merge_patch(_said(now), _said(wanted))


def _merged(now: Any, wanted: Any, parent: str) -> Any:
    """Return a value that is as wanted, with what is left alone."""
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
    # What an unnamed item has beyond the wanted one belongs to it only if they are otherwise equal.
    merged = [_merged(a, b, parent) for a, b in zip(now, wanted, strict=False)]
    same = [a if json_equal(_said(a), _said(b)) else None for a, b in zip(now, merged, strict=False)]
    alone = [_merged(None, item, parent) for item in wanted]
    return [item if a is None else a for a, item in zip_longest(same, alone)]


def _excluded(now: Mapping[str, Any], wanted: Mapping[str, Any], parent: str) -> AbstractSet[str]:
    """Return the stored members that cannot stay beside what is wanted, or that its silence denies."""
    if parent in _BY_TYPE and wanted.get("type") not in (None, now.get("type")):
        return now.keys() - wanted.keys()
    one_of = _ONE_OF.get(parent, frozenset())
    if parent in _WHOLE or any(wanted.get(name) is not None for name in one_of):
        return (one_of & now.keys()) - wanted.keys()
    return frozenset()


def _is_selector(name: str) -> bool:
    return name == "selector" or name.endswith("Selector")


def _said(value: Any) -> Any:
    """Return a value without nulls and empty lists as members, which a server may omit."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {name: _said(each) for name, each in members if each is not None and each != []}
    return [_said(each) for each in value] if isinstance(value, list) else value


def _names_in(items: Sequence[Any]) -> list[str] | None:
    """Return the names of the items; None if one has no name, or two have the same."""
    names = [cast("dict[str, Any]", each).get("name") if isinstance(each, dict) else None for each in items]
    found = [name for name in names if isinstance(name, str)]
    return found if len(set(found)) == len(items) else None
