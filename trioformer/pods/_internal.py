"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._port_forward import PortForward as PortForward
