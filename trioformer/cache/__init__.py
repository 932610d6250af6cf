"""The cache: from the API server's list and watch to an indexed cache, listers and event handlers.

::

    list, watch ─▶ Reflector ─▶ delta FIFO ─▶ process loop ─▶ indexer ─▶ Lister
                                                  └─▶ processor ─▶ one buffer and task for each handler

- ``reflector``: :class:`Reflector`, which lists and watches, and :class:`Sink`, the protocol that it writes to
- ``store``: the delta FIFO, the indexer, and :class:`Lister`, the read-only view of the indexer
- ``processor``: the distribution of notifications to handlers and subscriptions
- ``informer``: :class:`SharedInformer`, which connects and runs these stages
- ``factory``: :class:`SharedInformerFactory`, which shares informers

A stage knows only the protocol of the next; the informer knows all of them.
Objects that cannot be taken pass through the stages by their keys, to the quarantine in ``store``.

- ``_bad_objects.py``: why they cannot be taken
"""

from __future__ import annotations

from .._retry import BackoffPolicy as BackoffPolicy
from .factory._factory import SharedInformerFactory as SharedInformerFactory
from .informer._shared_informer import SharedInformer as SharedInformer
from .processor._notifications import Added as Added
from .processor._notifications import Deleted as Deleted
from .processor._notifications import FilteringHandler as FilteringHandler
from .processor._notifications import Notification as Notification
from .processor._notifications import ResourceEventHandler as ResourceEventHandler
from .processor._notifications import Updated as Updated
from .processor._processor import HandlerRegistration as HandlerRegistration
from .processor._processor import Subscription as Subscription
from .reflector._list_watch import ApiListWatch as ApiListWatch
from .reflector._options import ReflectorOptions as ReflectorOptions
from .reflector._reflector import Reflector as Reflector
from .reflector._status import InformerPhase as InformerPhase
from .reflector._status import InformerState as InformerState
from .store._indexer import field_index as field_index
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
    "ResourceEventHandler",
    "SharedInformer",
    "SharedInformerFactory",
    "Subscription",
    "Updated",
    "field_index",
]
