"""The statistics and snapshots of an embedded API server, and the loading of objects from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import final

import attrs

from ..manifests import load_manifests
from ..manifests._internal import rank_of
from ..models import KubernetesObject, resource_of
from ._convert import as_status_errors, namespace_and_name, read_object
from ._storage._kinds import Kinds
from ._storage._registry import Registry
from ._storage._storage import Stored


@final
@attrs.frozen
class APIServerStatistics:
    """A snapshot of an embedded API server's statistics."""

    is_running: bool
    """Whether :meth:`APIServer.run` is running."""
    open_watches: int
    """The number of open watches."""
    followed_logs: int
    """The number of open requests that follow a log."""
    requests_served: int
    """The number of received requests, including discovery and failed requests."""
    pending_faults: int
    """The number of further requests that faults from :meth:`APIServer.fail_next` will affect."""
    objects: int
    """The number of stored objects."""
    revision: int
    """The revision of the last write."""
    compacted_revision: int
    """The revision of the last compaction.  Earlier changes can no longer be read."""


@final
@attrs.frozen(eq=False)
class APIServerSnapshot:
    """A snapshot of the objects and kinds of an embedded API server, for :meth:`APIServer.restore`."""

    revision: int
    """The revision of the last write."""
    _objects: Mapping[str, Mapping[str, Stored]] = attrs.field(repr=False)  # Secrets are among them
    _kinds: Kinds = attrs.field(repr=False)


def load_objects(registry: Registry, paths: Iterable[str | PathLike[str]]) -> None:
    """Create the objects in files for :meth:`APIServer.load`, with namespaces and CustomResourceDefinitions first.

    Owners are created before the objects that they own, whose references then have the new uids.
    """
    manifests = load_manifests(*paths)
    owners = {one.object.uid: one.object for one in manifests if one.object.uid}
    uids: dict[str, str] = {}

    def depth(obj: KubernetesObject, seen: frozenset[str] = frozenset()) -> int:
        known = [owners[each.uid] for each in obj.metadata.owner_references if each.uid in owners.keys() - seen]
        return max((1 + depth(owner, seen | {obj.uid}) for owner in known), default=0)

    def load() -> None:
        for manifest in sorted(manifests, key=lambda one: (depth(one.object), rank_of(resource_of(type(one.object))))):
            with as_status_errors(f"load {manifest}"):
                served, given = read_object(registry.kinds, manifest.object)
                metadata = given["metadata"]
                metadata.pop("resourceVersion", None)  # of the cluster that the file is from
                for owner in metadata.get("ownerReferences") or ():
                    owner["uid"] = uids.get(owner["uid"], owner["uid"])
                stored = registry.create(served, namespace_and_name(served, given)[0], given, part="whole")
                uids[manifest.object.uid] = stored.decoded()["metadata"]["uid"]

    registry.write_all(load)
