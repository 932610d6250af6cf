"""The factory: one shared informer for each combination of kind, namespaces and selectors.

- ``_factory.py``: :class:`SharedInformerFactory`
- ``_requests.py``: the arguments of a request for an informer, and :class:`InformerKey`, which identifies an informer
- ``_entry.py``: one informer of a factory, its users and its task
- ``_cache_sync.py``: waiting for caches and handlers to sync
"""
