"""Private: the embedded API server's HTTP side.

- ``_app.py``: the ASGI application
- ``_requests.py``: paths and query parameters → what is asked for
- ``_resources.py``, ``_subresources.py``, ``_discovery.py``: what is done about it
- ``_listing.py``, ``_watching.py``: lists, pages and watches
- ``_rendering.py``, ``_tables.py``, ``_responses.py``: objects → bodies
- ``_faults.py``: failures that a test has asked for
"""
