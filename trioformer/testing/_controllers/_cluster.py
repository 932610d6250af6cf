"""Which objects to check after each write, the delays, and what the controllers read and write."""

from __future__ import annotations

import bisect
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias, final

import attrs
import trio

from ...errors import SelectorError
from .._storage._clock import timestamp
from .._storage._deletion import BACKGROUND
from .._storage._garbage import GarbageCollector
from .._storage._kinds import ServedKind
from .._storage._parts import Part
from .._storage._registry import Registry
from .._storage._status import APIStatusError
from .._storage._storage import Change, JSONObject, Stored
from .._storage._tracking import Writer

logger = logging.getLogger("trioformer.testing")

_VERSIONS: Final = ("v1", "apps/v1", "batch/v1", "discovery.k8s.io/v1", "policy/v1")
"""The API versions of the kinds that the controllers use."""
_SELECTING: Final = {"Pod": ("Service", "PodDisruptionBudget"), "Node": ("Pod",)}
"""The kinds whose objects are checked after a change of an object."""
_ADOPTING: Final = {"Pod": ("ReplicaSet", "StatefulSet", "Job"), "ReplicaSet": ("Deployment",)}
"""The kinds whose objects are also checked if the object has no controller."""
_MAX_CHECKS: Final = 3_000
"""How often an object may be checked after one write.  If this is exceeded, the writes would never end."""
_LONGEST: Final = 10**9
"""The longest delay in seconds, which a datetime can represent."""
_MANAGER: Final = Writer("kube-controller-manager", writes_all=True)

Key: TypeAlias = tuple[str, str, str]
"""The kind, namespace and name of an object."""
Reconcile: TypeAlias = Callable[["Cluster", JSONObject], None]
RunPod: TypeAlias = Callable[[JSONObject], None]
"""Runs a pod that has been scheduled."""


def controller_of(obj: JSONObject) -> JSONObject:
    """Return the owner reference of an object's controller, or an empty dict."""
    return next((owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("controller")), {})


def owner_reference(owner: JSONObject) -> JSONObject:
    """Return the owner reference of an object that ``owner`` controls."""
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {**names, "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


@final
@attrs.define(eq=False)
class Cluster:
    """The controllers of a server, and the storage as they see it."""

    registry: Registry
    run_pod: RunPod
    _begin: Callable[[Cluster], None]
    """Called at the start and after each restore, before objects are checked."""
    _reconcilers: Mapping[str, Reconcile]
    """The controllers by kind."""
    started: set[str] = attrs.field(init=False, factory=set)
    """The uids of the pods that have been run."""
    scheduled: int = attrs.field(init=False, default=0)
    """The number of pods that have been assigned to nodes."""
    is_settling: bool = attrs.field(init=False, default=False)
    """Whether the controllers are writing."""
    _is_begun: bool = attrs.field(init=False, default=False)
    _queue: dict[Key, None] = attrs.field(init=False, factory=dict)
    _delayed: list[tuple[datetime, Callable[[], None]]] = attrs.field(init=False, factory=list)
    """The functions to call later and their times, in the order of the times."""
    _has_delayed: trio.Event = attrs.field(init=False, factory=trio.Event)
    _kinds: dict[str, ServedKind] = attrs.field(init=False)
    _collector: GarbageCollector = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        served = [one for one in self.registry.kinds if one.is_builtin and one.info.api_version in _VERSIONS]
        self._kinds = {one.info.kind: one for one in served}
        self._collector = GarbageCollector(self.registry)
        self._collector.start()
        self.registry.storage.observers.append(self._observe)
        self.registry.after_write = self.settle
        for resource in self.registry.storage.resources():
            self._observe(resource, None)

    def _observe(self, resource: str, change: Change | None) -> None:
        """Note which objects a change concerns."""
        if change is None:  # a restore, after which pods run again
            self._is_begun = False
            self.started.clear()
            self._delayed.clear()
        states = self.registry.storage.snapshot(resource) if change is None else [change.before, change.object]
        for kind in [kind for kind, served in self._kinds.items() if served.resource == resource]:
            for stored in filter(None, states):
                self._note(kind, stored)

    def _note(self, kind: str, stored: Stored) -> None:
        self.check(kind, stored.namespace, stored.name)
        owner = controller_of(stored.decoded())
        if owner:
            self.check(owner["kind"], stored.namespace, owner["name"])
        for other in (*_SELECTING.get(kind, ()), *(() if owner else _ADOPTING.get(kind, ()))):
            for each in self._stored(other, stored.namespace):
                self.check(other, each.namespace, each.name)

    def check(self, kind: str, namespace: str, name: str) -> None:
        """Check an object before the current write ends."""
        if kind in self._reconcilers:
            self._queue[kind, namespace, name] = None

    def settle(self) -> None:
        """Check objects until nothing changes any more.

        Raises:
            RuntimeError: The controllers would write for ever.
        """
        if self.is_settling:
            return
        self.is_settling = True
        checks: Counter[Key] = Counter()
        try:
            if not self._is_begun:
                self._is_begun = True
                self._begin(self)
            while self._queue or self._collector.step():
                if self._queue:
                    key = next(iter(self._queue))
                    del self._queue[key]
                    checks[key] += 1
                    if checks[key] > _MAX_CHECKS:
                        problem = "another writer, such as run_pod, undoes the writes of its controller"
                        raise RuntimeError(f"{' '.join(key)} does not settle after {_MAX_CHECKS} checks: {problem}")
                    self._reconcile(*key)
        finally:
            self._queue.clear()
            self.is_settling = False

    def _reconcile(self, kind: str, namespace: str, name: str) -> None:
        try:
            obj = self.get(kind, namespace, name)
            if obj is not None and "deletionTimestamp" not in obj["metadata"]:
                self._reconcilers[kind](self, obj)
        except (APIStatusError, SelectorError) as exc:
            # The next change that concerns the object triggers another attempt.
            logger.warning("a controller cannot reconcile %s %s/%s: %s", kind, namespace, name, exc)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after a delay, while :meth:`run` is running."""
        due = self.now + timedelta(seconds=seconds)
        bisect.insort(self._delayed, (due, call), key=lambda each: each[0])
        self._has_delayed.set()

    def check_later(self, seconds: float, obj: JSONObject) -> None:
        """Check an object after a delay."""
        key = (obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])
        self.later(seconds, lambda: self.check(*key))

    async def run(self) -> None:
        """Call the functions whose delay has passed, until cancelled."""
        while True:
            self._has_delayed = trio.Event()
            wait = (self._delayed[0][0] - self.now).total_seconds() if self._delayed else math.inf
            if wait > 0:
                with trio.move_on_after(wait):
                    await self._has_delayed.wait()
            else:
                self._delayed.pop(0)[1]()
                self.settle()
                await trio.lowlevel.checkpoint()

    # --- reading and writing ------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The time of the server."""
        return self.registry.clock().astimezone(UTC)

    @property
    def timestamp(self) -> str:
        """The time of the server, for objects."""
        return timestamp(self.registry.clock)

    def seconds_until(self, start: str, seconds: float) -> float:
        """Return how long it is until some seconds after a timestamp."""
        return (datetime.fromisoformat(start) + timedelta(seconds=min(seconds, _LONGEST)) - self.now).total_seconds()

    def get(self, kind: str, namespace: str, name: str) -> JSONObject | None:
        """Return a copy of an object, or None."""
        served = self._kinds[kind]
        stored = self.registry.storage.get(served.resource, self.registry.key(served, namespace, name))
        return None if stored is None else self._decoded(kind, stored)

    def _decoded(self, kind: str, stored: Stored) -> JSONObject:
        """Return a copy of an object with its kind, a spec and a status."""
        version = self._kinds[kind].info.api_version
        return {"apiVersion": version, "kind": kind, "spec": {}, "status": {}, **stored.decoded()}

    def _stored(self, kind: str, namespace: str) -> list[Stored]:
        return self.registry.storage.snapshot(self._kinds[kind].resource, f"{namespace}/" if namespace else "")

    def list(self, kind: str, namespace: str = "") -> list[JSONObject]:
        """Return copies of the objects of a kind, the oldest first."""
        found = [self._decoded(kind, stored) for stored in self._stored(kind, namespace)]
        return sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"]))

    def create(self, kind: str, namespace: str, obj: JSONObject) -> JSONObject:
        """Create an object."""
        # A copy, because defaults are set in place, and a template is also part of its owner.
        given = deepcopy({"apiVersion": self._kinds[kind].info.api_version, "kind": kind, **obj})
        stored = self.registry.create(self._kinds[kind], namespace, given, part="whole", writer=_MANAGER)
        return self._decoded(kind, stored)

    def create_owned(self, kind: str, owner: JSONObject, metadata: JSONObject, **content: object) -> JSONObject:
        """Create an object that another object in the namespace controls."""
        owned = {"generateName": f"{owner['metadata']['name']}-", "ownerReferences": [owner_reference(owner)]}
        return self.create(kind, owner["metadata"]["namespace"], {"metadata": {**owned, **metadata}, **content})

    def write(self, obj: JSONObject, *, part: Part = "whole", **changes: object) -> None:
        """Change an object and write it.  Nothing is written if the stored object is the same."""
        obj |= changes
        metadata, served = obj["metadata"], self._kinds[obj["kind"]]
        stored = self.registry.update(
            served, metadata.get("namespace", ""), metadata["name"], lambda _: {**obj}, part=part, writer=_MANAGER
        )
        metadata["resourceVersion"] = str(stored.revision)

    def delete(self, obj: JSONObject) -> None:
        """Delete an object, unless it is already being deleted."""
        metadata, served = obj["metadata"], self._kinds[obj["kind"]]
        if "deletionTimestamp" not in metadata:
            self.registry.delete(served, metadata.get("namespace", ""), metadata["name"], BACKGROUND)
