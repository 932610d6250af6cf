"""Decide when requests are sent and when they are retried, and track the health of the server.

- ``_throttle.py``: limits the rate of requests: :class:`~trioformer.transport.RequestRateLimiter` and a token bucket
- ``_retries.py``: decides whether and when to retry a request, and the order of retries after an outage
- ``_liveness.py``: the known health of the server, and probes for silent watches
"""
