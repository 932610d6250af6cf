"""The factory: one shared informer for each kind, namespace and selection, however many ask for it.

- ``_factory.py``: :class:`SharedInformerFactory`
- ``_requests.py``: what is asked of a factory, and :class:`InformerKey`, what identifies an informer
- ``_entry.py``: one informer of a factory, its users and its task
- ``_cache_sync.py``: waiting until caches are filled and handlers have received them
"""

from __future__ import annotations

from ._cache_sync import SyncingHandler as SyncingHandler
from ._factory import FactoryStatistics as FactoryStatistics
from ._factory import SharedInformerFactory as SharedInformerFactory
from ._requests import FactoryTransform as FactoryTransform
from ._requests import FromFactory as FromFactory
from ._requests import InformerKey as InformerKey
from ._requests import Namespaces as Namespaces
