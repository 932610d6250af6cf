"""The pipe: from the API server's list and watch to an indexed cache, and on to handlers.

::

    list, watch ─▶ Reflector ─▶ DeltaFIFO ─▶ process loop ─▶ Indexer ─▶ Lister
                                                 └─▶ processor ─▶ one mailbox and task for each handler

The rooms know only the next one's protocol; :class:`SharedInformer` is the plumber,
and :class:`SharedInformerFactory` keeps one informer for each thing that is asked for.
"""

from __future__ import annotations

from .._backoff import BackoffPolicy as BackoffPolicy
from ._arrivals import Transform as Transform
from ._cache_sync import SyncingHandler as SyncingHandler
from ._delta_fifo import Delta as Delta
from ._delta_fifo import DeltaFIFO as DeltaFIFO
from ._delta_fifo import Deltas as Deltas
from ._delta_fifo import DeltaType as DeltaType
from ._delta_fifo import Replaced as Replaced
from ._delta_fifo import Sync as Sync
from ._events import Added as Added
from ._events import Deleted as Deleted
from ._events import FilteringHandler as FilteringHandler
from ._events import Notification as Notification
from ._events import ResourceEventHandler as ResourceEventHandler
from ._events import Updated as Updated
from ._indexer import NAMESPACE_INDEX as NAMESPACE_INDEX
from ._indexer import Indexer as Indexer
from ._indexer import IndexFunc as IndexFunc
from ._indexer import Staged as Staged
from ._indexer import field_index as field_index
from ._informer_factory import FactoryStatistics as FactoryStatistics
from ._informer_factory import SharedInformerFactory as SharedInformerFactory
from ._informer_key import FromFactory as FromFactory
from ._informer_key import InformerKey as InformerKey
from ._informer_key import Namespaces as Namespaces
from ._informer_request import FactoryTransform as FactoryTransform
from ._list_watch import ApiListWatch as ApiListWatch
from ._list_watch import EventSource as EventSource
from ._list_watch import ListWatch as ListWatch
from ._list_watch import Report as Report
from ._lister import Lister as Lister
from ._mailbox import MailboxStatistics as MailboxStatistics
from ._mailbox import Overflow as Overflow
from ._processor import ErrorHandler as ErrorHandler
from ._processor import HandlerRegistration as HandlerRegistration
from ._processor import HandlerStatistics as HandlerStatistics
from ._processor import Subscription as Subscription
from ._reflector import Reflector as Reflector
from ._reflector_options import InformerState as InformerState
from ._reflector_options import Phase as Phase
from ._reflector_options import ReflectorOptions as ReflectorOptions
from ._reflector_options import ReflectorStatistics as ReflectorStatistics
from ._reflector_options import UndecodableHandler as UndecodableHandler
from ._reflector_options import WatchErrorHandler as WatchErrorHandler
from ._shared_informer import InformerStatistics as InformerStatistics
from ._shared_informer import SharedInformer as SharedInformer
from ._sink import Sink as Sink
