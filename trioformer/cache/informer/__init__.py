"""The shared informer: one reflector, one store and one processor, connected and run together.

- ``_shared_informer.py``: :class:`SharedInformer`
- ``_mistakes.py``: errors of a transform or an index function that fails on every object of the first list
- ``_process_loop.py``: applies changes to the indexer and distributes notifications; resync
- ``_statistics.py``: :class:`InformerStatistics`
"""
