"""HTTP to the API server of one cluster: connections, TLS, credentials, and bodies that are split while they arrive.

- ``_open.py``: checks the configuration, and puts the parts together
- ``_connection.py``: sends requests, and opens streamed responses
- ``_outgoing.py``: a request that is to be sent, and its body
- ``_generations.py``: the connections for requests and for watches
- ``_byte_stream.py``: the body of a response
- ``_gzip.py``: decompresses a body in slices
- ``_response.py``: a complete response
- ``_network.py``: sockets and TLS under httpcore
- ``_chunks.py``: checks the framing of responses, and merges the chunks that have arrived together
- ``_limits.py``: :class:`Limits` of what a server may send
- ``_health.py``: what the requests have shown about the server, and probes when a watch is silent
- ``_probe_connection.py``: the connection for probes
- ``_retries.py``: when a request is sent again
- ``_retry_line.py``: the order and the rate of retries
- ``_request_headers.py``: the headers of each request: the client's name, compression, impersonation
- ``_throttle.py``: limits the rate of requests: :class:`RequestRateLimiter`, the interface, and a token bucket
- ``_warnings.py``: warnings of the server: :class:`ServerWarning`
- ``_observer.py``: :class:`RequestObserver`, the interface that metrics implement
- ``_credentials.py``: what requests are authenticated with, and the interface of its sources
- ``_auth.py``: tokens and passwords of the configuration
- ``_exec``: credential plugins, and the :class:`PluginPolicy`
- ``_tls.py``: certificates
- ``_errors.py``: maps httpx's errors to :class:`~trioformer.errors.ConnectionFailedError`
- ``_describe.py``: what unexpected bytes are, in words
- ``_frames.py``: splits the body of a watch into events
- ``_list_splitter.py``: splits the body of a list into items
- ``_internal.py``: what other packages of trioformer need

No module here knows a Kubernetes kind, and no type of httpx is part of the interface.
"""

from __future__ import annotations

from ._exec import PluginPolicy as PluginPolicy
from ._frames import EventType as EventType
from ._limits import Limits as Limits
from ._observer import RequestObserver as RequestObserver
from ._retries import MAX_RETRIES as MAX_RETRIES
from ._throttle import BURST as BURST
from ._throttle import RequestRateLimiter as RequestRateLimiter
from ._throttle import TokenBucketRateLimiter as TokenBucketRateLimiter
from ._warnings import ServerWarning as ServerWarning
from ._warnings import WarningHandler as WarningHandler

__all__ = [
    "BURST",
    "MAX_RETRIES",
    "EventType",
    "Limits",
    "PluginPolicy",
    "RequestObserver",
    "RequestRateLimiter",
    "ServerWarning",
    "TokenBucketRateLimiter",
    "WarningHandler",
]
