"""Connections through proxies: which one, and how it is asked for a connection to the server.

The connections themselves are made by :mod:`.._network`.
"""

from __future__ import annotations

from ._failure import ProxyFailedError as ProxyFailedError
from ._failure import failed as failed
from ._failure import failure_of as failure_of
from ._forward import ForwardedRequests as ForwardedRequests
from ._proxy import Proxy as Proxy
from ._proxy import Route as Route
from ._proxy import find_route as find_route
