"""When a request is sent, and sent again; and whether the server is there.

- ``_throttle.py``: limits the rate of requests: :class:`~trioformer.transport.RequestRateLimiter` and a token bucket
- ``_retries.py``: whether a request is sent again, when, and in which order after an outage
- ``_liveness.py``: what the requests have shown about the server, and probes when a watch is silent
"""
