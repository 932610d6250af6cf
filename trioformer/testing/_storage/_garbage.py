"""The garbage collector, which deletes dependents, and completes foreground and orphaning deletions.

The garbage collector follows the rules of kube-controller-manager.  It runs in its own task of the server, or together
with the other controllers.

- Background deletion: the owner is removed immediately.  Then the dependents without any remaining owner are deleted.
- Foreground deletion: the owner remains, with the finalizer ``foregroundDeletion``, until all dependents with
  ``blockOwnerDeletion`` are deleted.
- Orphaning deletion: the owner remains, with the finalizer ``orphan``, until no dependent refers to it.

If a dependent has another owner, only its references to missing owners are removed.
An owner is identified by its uid, its kind, its name, and the namespace of the dependent.  So an owner in another
namespace counts as missing.
If the kind of an owner is not served, the dependent is kept, because the server may serve the kind later.

The collector keeps a node for each object, and records each change of the storage until it reads the change.  After a
restore, the collector reads all objects again.
The nodes only show which objects to check.
Each decision is based on the stored objects, and is carried out without a checkpoint.

Source: kubernetes ``pkg/controller/garbagecollector``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, final

import attrs
import trio

from ...models._internal import Raw, decode, level_decoder
from ._custom import DEFINITIONS
from ._deletion import FOREGROUND, ORPHAN, DeleteOptions, Policy
from ._kinds import ServedKind
from ._registry import Registry
from ._status import APIStatusError
from ._storage import Change, JSONObject, Stored

logger = logging.getLogger("trioformer.testing")

_metadata_of: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("metadata",))

OwnerState: TypeAlias = Literal["exists", "is gone", "waits for dependents", "unknown"]
"""The state of an owner.  It is ``unknown`` if the kind of the owner is not served or cannot own the dependent."""

_MAX_STEPS: Final = 100
"""The maximum number of decisions without a checkpoint."""


@final
@attrs.frozen(eq=False)
class _Node:
    """The data that the collector keeps about one object."""

    resource: str
    """The object's resource, as ``plural.group``."""
    key: str
    """The object's key in the storage."""
    uid: str
    owners: tuple[Mapping[str, Any], ...]
    """The object's ownerReferences."""
    is_deleted: bool
    """Whether the object has a deletionTimestamp."""
    finalizers: frozenset[str]

    @property
    def waits_for_dependents(self) -> bool:
        """Whether a foreground deletion of the object has begun."""
        return self.is_deleted and FOREGROUND in self.finalizers

    @property
    def orphans(self) -> bool:
        """Whether the object is being deleted in a way that orphans its dependents."""
        return self.is_deleted and ORPHAN in self.finalizers

    def refers_to(self, uid: str) -> bool:
        """Return whether the object has an owner with this uid."""
        return any(owner.get("uid") == uid for owner in self.owners)

    def blocks(self, uid: str) -> bool:
        """Return whether the deletion of the owner with this uid waits for this object."""
        return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") is True for owner in self.owners)


def _node_of(resource: str, stored: Stored) -> _Node:
    metadata: JSONObject = decode(_metadata_of(b"{" + stored.body)[0])
    owners, finalizers = tuple(metadata.get("ownerReferences") or ()), frozenset(metadata.get("finalizers") or ())
    is_deleted = bool(metadata.get("deletionTimestamp"))
    return _Node(resource, stored.key, metadata["uid"], owners, is_deleted, finalizers)


@final
@attrs.define(eq=False)
class GarbageCollector:
    """The garbage collector of a server.  The method :meth:`run` may be called again after it has ended."""

    _registry: Registry
    _nodes: dict[str, _Node] = attrs.field(init=False, factory=dict)
    """The nodes by uid."""
    _dependents: dict[str, dict[str, None]] = attrs.field(init=False, factory=dict)
    """The uids of the objects that refer to a uid, in the order of their creation."""
    _changes: deque[tuple[str, Change | None]] = attrs.field(init=False, factory=deque)
    """The resources and their unread changes.  If the change is None, all objects of the resource are read."""
    _doubtful: dict[str, None] = attrs.field(init=False, factory=dict)
    """The uids of the objects to check."""
    _unresolved: dict[str, None] = attrs.field(init=False, factory=dict)
    """The uids of objects that have an owner of a kind that is not served."""
    _has_changes: trio.Event = attrs.field(init=False, factory=trio.Event)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Collect garbage until cancelled.

        Cancellation:
            Cancellation takes effect between two decisions.
        """
        self.start()
        try:
            task_status.started()
            while True:
                steps = 0
                while self.step():
                    steps += 1
                    if steps % _MAX_STEPS == 0:
                        await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
                await self._has_changes.wait()
                self._has_changes = trio.Event()
        finally:
            self._registry.storage.observers.remove(self._record)
            self._nodes.clear()
            self._dependents.clear()
            self._changes.clear()

    def start(self) -> None:
        """Observe the storage.  All objects are read in the first :meth:`step`."""
        storage = self._registry.storage
        storage.observers.append(self._record)
        for resource in storage.resources():
            self._record(resource)

    def _record(self, resource: str, change: Change | None = None) -> None:
        """Record a change of a resource."""
        self._changes.append((resource, change))
        self._has_changes.set()

    def step(self) -> bool:
        """Read all changes and process one affected object; returns False if there was nothing to do."""
        if not self._changes and not self._doubtful:
            return False
        while self._changes:
            self._read(*self._changes.popleft())
        if self._doubtful:
            uid = next(iter(self._doubtful))
            del self._doubtful[uid]
            if (node := self._nodes.get(uid)) is not None:
                self._decide(node)
        return True

    # --- the graph ----------------------------------------------------------------------------------------------------

    def _read(self, resource: str, change: Change | None) -> None:
        """Read a change, or all objects of a resource."""
        if change is None:
            found = [_node_of(resource, stored) for stored in self._registry.storage.snapshot(resource)]
            uids = {node.uid for node in found}
            for gone in [node for node in self._nodes.values() if node.resource == resource and node.uid not in uids]:
                self._remove(gone)
            for node in found:
                self._put(node)
        elif change.type == "DELETED":
            self._remove(_node_of(resource, change.object))
        else:
            self._put(_node_of(resource, change.object))
        if resource == DEFINITIONS:
            self._doubtful |= self._unresolved
            self._unresolved.clear()

    def _put(self, node: _Node) -> None:
        before = self._nodes.get(node.uid)
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(str(owner.get("uid")), {})[node.uid] = None
        for owner in before.owners if before is not None else ():
            uid = str(owner.get("uid"))
            if not node.refers_to(uid):
                self._drop_dependent(uid, node.uid)
            if before is not None and before.blocks(uid) and not node.blocks(uid):
                self._doubt(uid)
        if node.waits_for_dependents and (before is None or not before.waits_for_dependents):
            for dependent in self._dependents.get(node.uid, ()):
                self._doubt(dependent)
        if (
            node.waits_for_dependents
            or node.orphans
            or any(not self._knows(owner, node) for owner in node.owners)
            or (before is not None and before.owners != node.owners)
        ):
            self._doubt(node.uid)

    def _knows(self, owner: Mapping[str, Any], node: _Node) -> bool:
        """Return whether the state of an owner is known."""
        found = self._nodes.get(str(owner.get("uid")))
        return found is not None and not found.waits_for_dependents and self._state_of(owner, node) == "exists"

    def _remove(self, node: _Node) -> None:
        self._nodes.pop(node.uid, None)
        self._unresolved.pop(node.uid, None)
        for owner in node.owners:
            uid = str(owner.get("uid"))
            self._drop_dependent(uid, node.uid)
            self._doubt(uid)  # the owner may wait for this object
        for dependent in self._dependents.get(node.uid, ()):
            self._doubt(dependent)

    def _drop_dependent(self, uid: str, dependent: str) -> None:
        dependents = self._dependents.get(uid, {})
        dependents.pop(dependent, None)
        if not dependents:
            self._dependents.pop(uid, None)

    def _doubt(self, uid: str) -> None:
        self._doubtful[uid] = None

    def _dependents_of(self, node: _Node) -> list[_Node]:
        return [self._nodes[uid] for uid in self._dependents.get(node.uid, ()) if uid in self._nodes]

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self, node: _Node) -> None:
        """Delete or update an object as its owners, its dependents and its deletion require.

        The decision is based on the stored objects, which may be newer than the node.
        """
        try:
            if node.orphans:
                self._orphan(node)
            elif node.waits_for_dependents:
                self._end_foreground(node)
            elif not node.is_deleted:
                self._check_owners(node)
        except APIStatusError as exc:
            # The next change of the object, or of the one that rejects this, triggers another attempt.
            logger.warning("the garbage collector cannot change %s %s: %s", node.resource, node.key, exc)

    def _orphan(self, node: _Node) -> None:
        for dependent in self._dependents_of(node):
            self._drop_owners(dependent, {node.uid})
        self._drop_finalizer(node, ORPHAN)

    def _end_foreground(self, node: _Node) -> None:
        blocking = [dependent for dependent in self._dependents_of(node) if dependent.blocks(node.uid)]
        if not blocking:
            self._drop_finalizer(node, FOREGROUND)
            return
        for dependent in blocking:
            if not dependent.is_deleted:
                self._doubt(dependent.uid)

    def _check_owners(self, node: _Node) -> None:
        if not node.owners:
            return
        states = [(owner, self._state_of(owner, node)) for owner in node.owners]
        if any(state == "unknown" for _, state in states):
            self._unresolved[node.uid] = None
            return
        if any(state == "exists" for _, state in states):
            gone = {str(owner.get("uid")) for owner, state in states if state != "exists"}
            if gone:
                self._drop_owners(node, gone)
            return
        dependents = self._dependents_of(node)
        if any(state == "waits for dependents" for _, state in states) and dependents:
            # Otherwise two objects that own each other would wait for each other.
            if any(dependent.waits_for_dependents for dependent in dependents):
                self._unblock_owners(node)
            self._delete(node, "Foreground")
            return
        policy: Policy = "Background"
        if ORPHAN in node.finalizers:
            policy = "Orphan"
        elif FOREGROUND in node.finalizers:
            policy = "Foreground"
        self._delete(node, policy)

    def _state_of(self, owner: Mapping[str, Any], node: _Node) -> OwnerState:
        """Return the state of an owner in the storage."""
        kinds, storage = self._registry.kinds, self._registry.storage
        served = kinds.find_kind(str(owner.get("apiVersion")), str(owner.get("kind")))
        namespace = node.key.rpartition("/")[0]
        if served is None or (served.info.namespaced and not namespace):
            return "unknown"
        found = storage.get(served.resource, self._registry.key(served, namespace, str(owner.get("name"))))
        if found is None:
            return "is gone"
        stored = _node_of(served.resource, found)
        if stored.uid != owner.get("uid"):
            return "is gone"
        return "waits for dependents" if stored.waits_for_dependents else "exists"

    # --- writes -------------------------------------------------------------------------------------------------------

    def _found(self, node: _Node) -> tuple[ServedKind, str, str] | None:
        """Return the kind, the namespace and the name of an object, or None if it is no longer stored."""
        registry = self._registry
        served, found = registry.kinds.find_resource(node.resource), registry.storage.get(node.resource, node.key)
        if served is None or found is None or found.decoded()["metadata"]["uid"] != node.uid:
            return None
        return served, found.namespace, found.name

    def _change(self, node: _Node, field: str, change: Callable[[list[Any]], list[Any]]) -> None:
        """Change a list in the metadata of an object if it is still stored."""

        def changed(obj: JSONObject) -> JSONObject:
            obj["metadata"][field] = change(obj["metadata"].get(field) or [])
            return obj

        if (found := self._found(node)) is not None:
            self._registry.update(*found, changed)

    def _drop_owners(self, node: _Node, uids: Iterable[str]) -> None:
        self._change(node, "ownerReferences", lambda owners: [one for one in owners if str(one.get("uid")) not in uids])

    def _unblock_owners(self, node: _Node) -> None:
        self._change(node, "ownerReferences", lambda owners: [{**one, "blockOwnerDeletion": False} for one in owners])

    def _drop_finalizer(self, node: _Node, finalizer: str) -> None:
        self._change(node, "finalizers", lambda finalizers: [one for one in finalizers if one != finalizer])

    def _delete(self, node: _Node, policy: Policy) -> None:
        if (found := self._found(node)) is not None:
            self._registry.delete(*found, DeleteOptions(uid=node.uid, policy=policy))
