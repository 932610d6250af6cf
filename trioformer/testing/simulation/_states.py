"""The state in which a story ends, without what may differ between two runs of an operator that does its work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ._network import RIVAL
from ._paths import flatten
from ._record import Record, stored_objects

State: TypeAlias = Mapping[str, Mapping[str, object]]
"""The paths and values of each object, by its identity."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_DROPPED: Final = re.compile(
    r"metadata\.(uid|resourceVersion|generation|creationTimestamp|managedFields|ownerReferences\[.*\.uid)"
    r"|metadata\.(labels|annotations)\.(pod-template-hash|controller-revision-hash|deployment\.kubernetes\.io/revision)"
    r"|spec\.(clusterIPs?|nodeName|healthCheckNodePort)|spec\.ports\[.*\.nodePort|.*observedGeneration$"
)
"""What the server, the cluster or a fault decides."""
_CLUSTER: Final = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "Job", "Pod", "Service", "Namespace", "Node", "PodDisruptionBudget"}
)
"""The kinds whose status the cluster writes."""
_POSITION: Final = re.compile(r"#\d+|\[[^]]*\]")


def describe(record: Record) -> State:
    """Return the objects that the user and the operator have created."""
    known = {stored.decoded()["metadata"]["uid"]: (resource, stored) for resource, stored in stored_objects(record)}
    state: dict[str, Mapping[str, object]] = {}
    groups: dict[str, list[tuple[str, str, Mapping[str, object]]]] = {}
    revisions = record.server._storage.revision
    for uid, (resource, stored) in known.items():
        if record.created_by.get(uid, "the cluster") != "the cluster":
            obj = stored.decoded()
            content: Mapping[str, object] = dict(_normal(obj, record, revisions))
            group = _group(obj["metadata"], record.kind_of(resource), known, record)
            groups.setdefault(group, []).append((json.dumps(content, sort_keys=True), uid, content))
    for group, found in groups.items():
        for index, (_, _uid, content) in enumerate(sorted(found, key=lambda one: one[:2])):
            state[f"{group}#{index}" if len(found) > 1 else group] = content
    return state


def _group(metadata: dict[str, Any], kind: str, known: Mapping[str, Any], record: Record) -> str:
    """Return the identity of an object, which objects with the same owner and kind or generated names share."""
    owner = next((one["uid"] for one in metadata.get("ownerReferences") or () if one["uid"] in known), "")
    if owner:
        return f"{record.identities[owner]} / {kind}"
    name = metadata.get("generateName") or metadata["name"]
    return f"{kind} {metadata.get('namespace', '')}/{name}"


def _normal(obj: dict[str, Any], record: Record, revisions: int) -> Iterator[tuple[str, object]]:
    """Yield the paths and values of an object, without what may differ."""
    generation = obj["metadata"].get("generation", 0)
    kind = record.identities[obj["metadata"]["uid"]].partition(" ")[0]
    for path, value in flatten(obj):
        if path.endswith("observedGeneration") and isinstance(value, int):
            yield f"{path} (behind)", generation - value
        if RIVAL in path or _DROPPED.match(path) or (kind in _CLUSTER and path.startswith("status")):
            continue
        if path == "metadata.name" and obj["metadata"].get("generateName"):
            continue
        yield path, _plain(value, record, revisions)


def _plain(value: object, record: Record, revisions: int) -> object:
    """Replace times, uids and versions."""
    if not isinstance(value, str):
        return value
    if value.isdecimal() and 1_000_000 <= int(value) <= revisions:
        return "<version>"
    named = _UID.sub(lambda found: f"<uid of {record.identities.get(found.group(), 'nothing')}>", value)
    return _TIME.sub("<time>", named)


def differences(expected: State, found: State) -> Iterator[tuple[str, str]]:
    """Yield the path of each difference without names, and a description."""
    for name in sorted({*expected, *found}):
        kind = _kind_of(name)
        if name not in found:
            yield kind, f"{name} is missing"
        elif name not in expected:
            yield kind, f"{name} should not exist"
        else:
            wanted, actual = expected[name], found[name]
            for path in sorted({*wanted, *actual}):
                if wanted.get(path) != actual.get(path):
                    yield f"{kind} {_POSITION.sub('[]', path)}", f"{name}: {_difference(path, wanted, actual)}"


def _difference(path: str, wanted: Mapping[str, object], actual: Mapping[str, object]) -> str:
    """Describe a difference, with the outermost part that is missing on one side."""
    for side, what in ((actual, "is missing"), (wanted, "should not exist")):
        if path not in side:
            parents = [path[: found.start()] for found in re.finditer(r"[.\[]", path)]
            return f"{next((one for one in parents if not any(p.startswith(one) for p in side)), path)} {what}"
    return f"{path} is {actual[path]!r} instead of {wanted[path]!r}"


def _kind_of(name: str) -> str:
    return name.rpartition(" / ")[2].partition(" ")[0].partition("#")[0]
