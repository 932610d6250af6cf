"""Which objects to check after each write, the delays, and what the controllers read and write."""

from __future__ import annotations

import heapq
import itertools
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
from ...models._internal import Raw, decode, level_decoder
from .._storage._clock import timestamp
from .._storage._garbage import GarbageCollector
from .._storage._kinds import ServedKind
from .._storage._parts import Part
from .._storage._registry import Registry, decoded
from .._storage._status import APIStatusError
from .._storage._storage import Change, JSONObject, Stored
from .._storage._tracking import Writer

logger = logging.getLogger("trioformer.testing")

_VERSIONS: Final = ("v1", "apps/v1", "batch/v1", "discovery.k8s.io/v1", "policy/v1")
"""The API versions of the kinds that the controllers use."""
_ADOPTERS: Final = {"Pod": ("ReplicaSet", "StatefulSet", "Job"), "ReplicaSet": ("Deployment",)}
"""The kinds whose objects are checked after a change of an object without a controller."""
_MAX_CHECKS: Final = 3_000
"""How often an object may be checked after one write.  If this is exceeded, the writes would never end."""
_MANAGER: Final = Writer("kube-controller-manager", writes_all=True)
_metadata_of: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("metadata",))

Key: TypeAlias = tuple[str, str, str]
"""The kind, namespace and name of an object."""
Reconcile: TypeAlias = Callable[["Cluster", str, str], None]


@final
@attrs.define(eq=False)
class Cluster:
    """The controllers of a server, and the storage as they see it."""

    registry: Registry
    _reconcilers: Mapping[str, Reconcile]
    """The controllers by kind.  Those of kinds that are not served do not run."""
    _queue: dict[Key, None] = attrs.field(init=False, factory=dict)
    _delayed: list[tuple[datetime, int, Callable[[], None]]] = attrs.field(init=False, factory=list)
    _numbers: itertools.count[int] = attrs.field(init=False, factory=itertools.count)
    _has_delayed: trio.Event = attrs.field(init=False, factory=trio.Event)
    _kinds: dict[str, ServedKind] = attrs.field(init=False, factory=dict)
    _collector: GarbageCollector = attrs.field(init=False)
    _is_settling: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        served = [one for one in self.registry.kinds if one.is_builtin and one.info.api_version in _VERSIONS]
        self._kinds = {one.info.kind: one for one in served}
        self._reconcilers = {kind: call for kind, call in self._reconcilers.items() if kind in self._kinds}
        self._collector = GarbageCollector(self.registry)
        self._collector.start()
        self.registry.storage.observers.append(self._observe)
        self.registry.after_write = self.settle

    def _observe(self, resource: str, change: Change | None) -> None:
        """Note which objects a change concerns."""
        kind = next((kind for kind, served in self._kinds.items() if served.resource == resource), None)
        states = self.registry.storage.snapshot(resource) if change is None else [change.before, change.object]
        for stored in states if kind is not None else ():
            if stored is not None:
                self._note(str(kind), stored)

    def _note(self, kind: str, stored: Stored) -> None:
        self.check(kind, stored.namespace, stored.name)
        metadata: JSONObject = decode(_metadata_of(b"{" + stored.body)[0])
        controllers = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
        for owner in controllers:
            self.check(owner["kind"], stored.namespace, owner["name"])
        others = {"Pod": ["Service", "PodDisruptionBudget"], "Node": ["Pod"]}.get(kind, [])
        for other in (*others, *(() if controllers else _ADOPTERS.get(kind, ()))):
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
        if self._is_settling:
            return
        self._is_settling = True
        checks: Counter[Key] = Counter()
        try:
            while self._queue or self._collector.step():
                for key in tuple(self._queue)[:1]:
                    del self._queue[key]
                    checks[key] += 1
                    if checks[key] > _MAX_CHECKS:
                        problem = "another writer, such as run_pod, undoes the writes of its controller"
                        raise RuntimeError(f"{' '.join(key)} does not settle after {_MAX_CHECKS} checks: {problem}")
                    self._reconcile(*key)
        finally:
            self._queue.clear()
            self._is_settling = False

    def _reconcile(self, kind: str, namespace: str, name: str) -> None:
        try:
            self._reconcilers[kind](self, namespace, name)
        except (APIStatusError, SelectorError) as exc:
            # The next change that concerns the object triggers another attempt.
            logger.warning("a controller cannot reconcile %s %s/%s: %s", kind, namespace, name, exc)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after a delay, while :meth:`run` is running."""
        heapq.heappush(self._delayed, (self.now + timedelta(seconds=seconds), next(self._numbers), call))
        self._has_delayed.set()

    def check_later(self, seconds: float, kind: str, obj: JSONObject) -> None:
        """Check an object after a delay."""
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        self.later(seconds, lambda: self.check(kind, namespace, name))

    async def run(self) -> None:
        """Call the functions whose delay has passed, until cancelled."""
        while True:
            self._has_delayed = trio.Event()
            wait = (self._delayed[0][0] - self.now).total_seconds() if self._delayed else math.inf
            if wait > 0:
                with trio.move_on_after(wait):
                    await self._has_delayed.wait()
            else:
                heapq.heappop(self._delayed)[2]()
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
        return (datetime.fromisoformat(start) + timedelta(seconds=seconds) - self.now).total_seconds()

    def controls(self, kind: str | None) -> bool:
        """Return whether the controllers know a kind."""
        return kind in self._kinds

    def get(self, kind: str, namespace: str, name: str) -> JSONObject | None:
        """Return a copy of an object, or None."""
        stored = self.registry.storage.get(self._kinds[kind].resource, f"{namespace}/{name}" if namespace else name)
        return None if stored is None else self._decoded(kind, stored)

    def _decoded(self, kind: str, stored: Stored) -> JSONObject:
        return {**({"spec": {}, "status": {}} if self._kinds[kind].has_status else {}), **decoded(stored)}

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

    def write(self, kind: str, obj: JSONObject, *, part: Part = "whole", **changes: object) -> None:
        """Write a changed copy of an object.  Nothing is written if the object has not changed."""
        given = {"apiVersion": self._kinds[kind].info.api_version, "kind": kind, **obj, **changes}
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]

        def changed(current: JSONObject) -> JSONObject:
            version = current["metadata"]["resourceVersion"]
            return {**given, "metadata": {**given["metadata"], "resourceVersion": version}}

        self.registry.update(self._kinds[kind], namespace, name, changed, part=part, writer=_MANAGER)

    def delete(self, kind: str, obj: JSONObject) -> None:
        """Delete an object, unless it is already being deleted."""
        metadata = obj["metadata"]
        if "deletionTimestamp" not in metadata:
            self.registry.delete(
                self._kinds[kind], metadata.get("namespace", ""), metadata["name"], policy="Background"
            )

    def owner_reference(self, kind: str, owner: JSONObject) -> JSONObject:
        """Return the owner reference of an object that ``owner`` controls."""
        names = {"apiVersion": self._kinds[kind].info.api_version, "kind": kind, "name": owner["metadata"]["name"]}
        return {**names, "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
