"""The store: the queue of pending changes, and the indexed cache to which they are applied.

- ``_delta_fifo.py``: ``DeltaFIFO``, the queue between the reflector and the process loop
- ``_indexer.py``: ``Indexer``, objects by key and by the values of index functions
- ``_lister.py``: :class:`Lister`, the read-only view of an indexer
- ``_quarantine.py``: the keys of the objects whose newest state the cache cannot take, and why
- ``_resource_versions.py``: the newest resourceVersion that a cache holds, and waiting for a newer one
"""
