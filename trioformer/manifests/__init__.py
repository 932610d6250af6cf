"""Load manifests from YAML files, apply them to a cluster, wait until their objects are ready, and delete them.

- ``_load.py``: the function :func:`load_manifests`, which reads files or a string
- ``_yaml.py``: parses YAML and JSON, and finds lines and columns
- ``_manifest.py``: the class :class:`Manifest`, an object with its location, and :class:`ManifestResult`
- ``_targets.py``: finds the API for each manifest and the order in which to apply them
- ``_apply.py``: the function :func:`apply_manifests`
- ``_apply_set.py``: the class :class:`ApplySet`, a set of objects that are applied and pruned together
- ``_prune.py``: deletes objects whose manifests were removed
- ``_delete.py``: the function :func:`delete_manifests`
- ``_wait.py``: the function :func:`wait_for_manifests`
- ``_readiness.py``: the function :func:`readiness_of`, which decides whether an object is ready
- ``_dump.py``: the function :func:`dump_manifests`, which writes objects as YAML
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
