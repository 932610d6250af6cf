"""The shared informer, which connects and runs the reflectors, the store and the processor.

- ``_shared_informer.py``: :class:`SharedInformer`
- ``_mistakes.py``: detects a transform or an index function that fails on every object of the first list
- ``_sharing.py``: caches that other threads read
- ``_process_loop.py``: applies changes to the indexer and distributes notifications; resync
- ``_shown_writes.py``: the writes of the client that the cache does not show yet
- ``_reflectors.py``: the reflectors of an informer, and its state and statistics
- ``_divided_source.py``: the source of a divided cache, whose parts begin and end while the cache runs
- ``_parts.py``: one of these parts
"""
