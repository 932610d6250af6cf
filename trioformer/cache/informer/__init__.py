"""The shared informer: one reflector, one store and one processor, connected and run together.

- ``_shared_informer.py``: :class:`SharedInformer`
- ``_process_loop.py``: applies changes to the indexer and distributes notifications; resync
"""

from __future__ import annotations

from ._shared_informer import InformerStatistics as InformerStatistics
from ._shared_informer import SharedInformer as SharedInformer

__all__ = ["InformerStatistics", "SharedInformer"]
