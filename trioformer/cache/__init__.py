"""The pipe: from the API server's list and watch to an indexed cache, and on to handlers.

::

    list, watch ─▶ Reflector ─▶ DeltaFIFO ─▶ process loop ─▶ Indexer ─▶ Lister
                                                 └─▶ processor ─▶ one buffer and task for each handler

The rooms know only the next one's protocol; :class:`SharedInformer` is the plumber,
and :class:`SharedInformerFactory` keeps one informer for each thing that is asked for.
"""

from __future__ import annotations

from .._retry import BackoffPolicy as BackoffPolicy
from .._retry import WatchErrorHandler as WatchErrorHandler
from ..client import UndecodableHandler as UndecodableHandler
from .factory import FactoryStatistics as FactoryStatistics
from .factory import FactoryTransform as FactoryTransform
from .factory import FromFactory as FromFactory
from .factory import InformerKey as InformerKey
from .factory import Namespaces as Namespaces
from .factory import SharedInformerFactory as SharedInformerFactory
from .factory import SyncingHandler as SyncingHandler
from .informer import InformerStatistics as InformerStatistics
from .informer import SharedInformer as SharedInformer
from .processor import Added as Added
from .processor import BufferStatistics as BufferStatistics
from .processor import Deleted as Deleted
from .processor import ErrorHandler as ErrorHandler
from .processor import FilteringHandler as FilteringHandler
from .processor import HandlerRegistration as HandlerRegistration
from .processor import HandlerStatistics as HandlerStatistics
from .processor import Notification as Notification
from .processor import Overflow as Overflow
from .processor import ResourceEventHandler as ResourceEventHandler
from .processor import Subscription as Subscription
from .processor import Updated as Updated
from .reflector import ApiListWatch as ApiListWatch
from .reflector import EventSource as EventSource
from .reflector import InformerPhase as InformerPhase
from .reflector import InformerState as InformerState
from .reflector import ListWatch as ListWatch
from .reflector import Reflector as Reflector
from .reflector import ReflectorOptions as ReflectorOptions
from .reflector import ReflectorStatistics as ReflectorStatistics
from .reflector import Sink as Sink
from .reflector import Transform as Transform
from .store import NAMESPACE_INDEX as NAMESPACE_INDEX
from .store import Delta as Delta
from .store import DeltaFIFO as DeltaFIFO
from .store import Deltas as Deltas
from .store import DeltaType as DeltaType
from .store import Indexer as Indexer
from .store import IndexFunc as IndexFunc
from .store import Lister as Lister
from .store import Replaced as Replaced
from .store import Staged as Staged
from .store import Sync as Sync
from .store import field_index as field_index
