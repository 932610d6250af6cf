"""A real control plane for tests: etcd, kube-apiserver and what else a cluster needs, as processes.

- ``_control_plane.py``: :class:`ControlPlane`
- ``_cluster.py``: nodes and the built-in controllers
- ``_process.py``: one program, from its start to its end
- ``_watchdog.py``: ends the programs when the test process has died
- ``_certificates.py``: the certificates of a control plane
"""

from __future__ import annotations

from ._control_plane import ControlPlane as ControlPlane
from ._control_plane import ControlPlaneError as ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError"]
