"""Caches of Kubernetes objects: list and watch a kind, keep its objects in an indexed cache, and notify handlers.

::

    list, watch ─▶ Reflector ─▶ delta FIFO ─▶ process loop ─▶ indexer ─▶ Lister
                                                  └─▶ processor ─▶ one buffer and task for each handler

- ``reflector``: :class:`Reflector`, which lists and watches, and ``Sink``, the protocol that it writes to
- ``store``: the delta FIFO, the indexer, and :class:`Lister`, the read-only view of the indexer
- ``processor``: the distribution of notifications to handlers and subscriptions
- ``informer``: :class:`SharedInformer`, which connects and runs these stages
- ``factory``: :class:`SharedInformerFactory`, which shares informers

Each stage uses only the protocol of the next stage.  The informer connects the stages.
A bad object is an object that the cache cannot store.  Its key passes through the same stages, and is put into the
quarantine in ``store``.

- ``_bad_objects.py``: the values that describe bad objects
"""

from __future__ import annotations

from .._retry import BackoffPolicy as BackoffPolicy
from .factory._factory import SharedInformerFactory as SharedInformerFactory
from .informer._shared_informer import SharedInformer as SharedInformer
from .processor._notifications import Added as Added
from .processor._notifications import Deleted as Deleted
from .processor._notifications import FilteringHandler as FilteringHandler
from .processor._notifications import Notification as Notification
from .processor._notifications import Released as Released
from .processor._notifications import ResourceEventHandler as ResourceEventHandler
from .processor._notifications import Updated as Updated
from .processor._processor import HandlerRegistration as HandlerRegistration
from .processor._processor import Subscription as Subscription
from .reflector._list_watch import ApiListWatch as ApiListWatch
from .reflector._options import ReflectorOptions as ReflectorOptions
from .reflector._reflector import Reflector as Reflector
from .reflector._status import InformerPhase as InformerPhase
from .reflector._status import InformerState as InformerState
from .store._indexer import annotation_index as annotation_index
from .store._indexer import field_index as field_index
from .store._indexer import label_index as label_index
from .store._lister import Lister as Lister

__all__ = [
    "Added",
    "ApiListWatch",
    "BackoffPolicy",
    "Deleted",
    "FilteringHandler",
    "HandlerRegistration",
    "InformerPhase",
    "InformerState",
    "Lister",
    "Notification",
    "Reflector",
    "ReflectorOptions",
    "Released",
    "ResourceEventHandler",
    "SharedInformer",
    "SharedInformerFactory",
    "Subscription",
    "Updated",
    "annotation_index",
    "field_index",
    "label_index",
]
