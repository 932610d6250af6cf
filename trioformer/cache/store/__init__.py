"""The store: the queue of pending changes, and the indexed cache to which they are applied.

- ``_delta_fifo.py``: ``DeltaFIFO``, the queue between the reflector and the process loop
- ``_division.py``: ``Division``, the part to which each object of a divided cache belongs
- ``_indexer.py``: ``Indexer``, objects by key and by the values of index functions
- ``_lister.py``: :class:`Lister`, the read-only view of an indexer
- ``_quarantine.py``: the keys of bad objects, with the reasons
- ``_resource_versions.py``: the newest resourceVersion of a cache, and waiting for a newer one
"""
