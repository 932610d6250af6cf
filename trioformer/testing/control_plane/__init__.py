"""A real control plane for tests: etcd, kube-apiserver and optional programs, as child processes.

- ``_control_plane.py``: :class:`ControlPlane`
- ``_cluster.py``: kube-controller-manager, and nodes that kwok simulates
- ``_process.py``: a single program of the control plane
- ``_watchdog.py``: kills a program when the test process dies
- ``_certificates.py``: the certificates of a control plane
"""

from __future__ import annotations

from ._control_plane import ControlPlane as ControlPlane
from ._control_plane import ControlPlaneError as ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError"]
