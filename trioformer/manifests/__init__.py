"""Manifests: load YAML files, apply them to a cluster, wait for what they make, and delete it.

- ``_load.py``: :func:`load_manifests`, from files and texts
- ``_yaml.py``: YAML and JSON with lines and columns
- ``_manifest.py``: :class:`Manifest`, an object and its place
"""

from __future__ import annotations

from ._load import load_manifests as load_manifests
from ._manifest import Manifest as Manifest

__all__ = ["Manifest", "load_manifests"]
