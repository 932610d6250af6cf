"""The factory: one shared informer for each kind, namespace and pair of selectors.

- ``_factory.py``: :class:`SharedInformerFactory`
- ``_requests.py``: the arguments of a request for an informer, and :class:`InformerKey`, which identifies an informer
- ``_entry.py``: one informer of a factory, its users and its task
- ``_cache_sync.py``: waiting until caches have synced and handlers have processed them
"""
