"""A real control plane for tests: etcd, kube-apiserver and optionally more, as child processes.

- ``_control_plane.py``: :class:`ControlPlane`
- ``_cluster.py``: kube-controller-manager, and nodes by kwok
- ``_process.py``: one program: start, readiness, stop
- ``_watchdog.py``: kills a program when the test process dies
- ``_certificates.py``: the certificates of a control plane
"""

from __future__ import annotations

from ._control_plane import ControlPlane as ControlPlane
from ._control_plane import ControlPlaneError as ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError"]
