"""Manifests: load YAML files, apply them to a cluster, wait for their objects, and delete them.

- ``_load.py``: :func:`load_manifests`, from files and texts
- ``_yaml.py``: YAML and JSON with lines and columns
- ``_manifest.py``: :class:`Manifest`, an object and its place, and the result of applying it
- ``_targets.py``: the API of each manifest, and the order in which they are applied
- ``_apply.py``: :func:`apply_manifests`
- ``_apply_set.py``: :class:`ApplySet`, a set of objects that are applied together
- ``_prune.py``: deletes objects that are no longer among the manifests
- ``_delete.py``: :func:`delete_manifests`
- ``_wait.py``: :func:`wait_for_manifests`
- ``_readiness.py``: :func:`readiness_of`, whether an object is ready
- ``_dump.py``: :func:`dump_manifests`, objects as YAML
"""

from __future__ import annotations

from ._apply import apply_manifests as apply_manifests
from ._apply_set import ApplySet as ApplySet
from ._delete import delete_manifests as delete_manifests
from ._dump import dump_manifests as dump_manifests
from ._load import load_manifests as load_manifests
from ._manifest import Manifest as Manifest
from ._readiness import Readiness as Readiness
from ._readiness import readiness_of as readiness_of
from ._wait import wait_for_manifests as wait_for_manifests

__all__ = [
    "ApplySet",
    "Manifest",
    "Readiness",
    "apply_manifests",
    "delete_manifests",
    "dump_manifests",
    "load_manifests",
    "readiness_of",
    "wait_for_manifests",
]
