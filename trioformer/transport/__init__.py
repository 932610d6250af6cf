"""HTTP connections to the API server of one cluster.

Its packages and modules:

- ``http``: sockets and TLS, heads and bodies, connections, their pools and generations, transports of httpx
- ``auth``: tokens, certificates and credential plugins
- ``policy``: the rate of requests, retries, and probes of a silent server
- ``_proxy``: finds the proxy for a server
- ``_open.py``: checks the configuration, and combines the parts
- ``_connection.py``: sends requests, opens streamed responses, and reports each :class:`ObservedRequest` to a
  :class:`RequestObserver`
- ``_raw_requests.py``: the httpx client for programs
- ``_options.py``: :class:`~trioformer.client.ClientOptions`
- ``_limits.py``: :class:`Limits` of responses
- ``_failures.py``: the failures of connections, with the names of httpx
- ``_warnings.py``: warnings of the server: :class:`ServerWarning`
- ``_errors.py``: translates all connection errors to :class:`~trioformer.errors.ConnectionFailedError`
- ``_internal.py``: names for other packages of trioformer

These modules do not depend on Kubernetes kinds, and no httpx types appear in their interface.
"""

from __future__ import annotations

from ._connection import ObservedRequest as ObservedRequest
from ._connection import RequestObserver as RequestObserver
from ._limits import Limits as Limits
from ._warnings import ServerWarning as ServerWarning
from .auth._exec_policy import PluginPolicy as PluginPolicy
from .policy._throttle import RequestRateLimiter as RequestRateLimiter
from .policy._throttle import TokenBucketRateLimiter as TokenBucketRateLimiter

__all__ = [
    "Limits",
    "ObservedRequest",
    "PluginPolicy",
    "RequestObserver",
    "RequestRateLimiter",
    "ServerWarning",
    "TokenBucketRateLimiter",
]
