"""The HTTP side of the embedded API server (private).

- ``_app.py``: the ASGI application
- ``_access.py``: the users of requests
- ``_roles.py``: the rules of roles
- ``_requests.py``: the parsing of paths and query parameters
- ``_resources.py``: requests for kinds
- ``_subresources.py``: requests for ``scale``, ``binding`` and ``eviction``
- ``_discovery.py``: requests for discovery, health, version and OpenAPI
- ``_listing.py``: lists and their pages
- ``_watching.py``: watches
- ``_logs.py``: requests for logs
- ``_pod_scripts.py``: the scripts and logs of containers
- ``_rendering.py``: the encoding of stored states as objects, Tables or PartialObjectMetadata
- ``_tables.py``: the columns of Tables
- ``_responses.py``: responses that are not streams
- ``_faults.py``: injected failures
- ``_webhook_client.py``: the calls of webhooks

The other modules of ``trioformer.testing`` import these modules directly.
"""

from __future__ import annotations

__all__: list[str] = []
