"""The pipe: from the API server's list and watch to an indexed cache, and on to handlers.

::

    list, watch ─▶ Reflector ─▶ DeltaFIFO ─▶ process loop ─▶ Indexer ─▶ Lister
                                                 └─▶ processor ─▶ one mailbox and task for each handler

The rooms know only the next one's protocol; :class:`SharedInformer` is the plumber,
and :class:`SharedInformerFactory` keeps one informer for each kind.
"""

from __future__ import annotations

from .._backoff import BackoffPolicy as BackoffPolicy
from ._delta_fifo import Delta as Delta
from ._delta_fifo import DeltaFIFO as DeltaFIFO
from ._delta_fifo import Deltas as Deltas
from ._delta_fifo import DeltaType as DeltaType
from ._delta_fifo import Replaced as Replaced
from ._delta_fifo import Sync as Sync
from ._events import Added as Added
from ._events import Deleted as Deleted
from ._events import Notification as Notification
from ._events import ResourceEventHandler as ResourceEventHandler
from ._events import Updated as Updated
from ._indexer import NAMESPACE_INDEX as NAMESPACE_INDEX
from ._indexer import Indexer as Indexer
from ._indexer import IndexFunc as IndexFunc
from ._indexer import Staged as Staged
from ._indexer import field_index as field_index
from ._informer_factory import SharedInformerFactory as SharedInformerFactory
from ._list_watch import ApiListWatch as ApiListWatch
from ._list_watch import EventSource as EventSource
from ._list_watch import ListWatch as ListWatch
from ._lister import Lister as Lister
from ._mailbox import MailboxStatistics as MailboxStatistics
from ._mailbox import Overflow as Overflow
from ._processor import ErrorHandler as ErrorHandler
from ._processor import HandlerRegistration as HandlerRegistration
from ._processor import HandlerStatistics as HandlerStatistics
from ._processor import Subscription as Subscription
from ._reflector import Reflector as Reflector
from ._reflector import ReflectorOptions as ReflectorOptions
from ._reflector import ReflectorStatistics as ReflectorStatistics
from ._reflector import WatchErrorHandler as WatchErrorHandler
from ._shared_informer import InformerStatistics as InformerStatistics
from ._shared_informer import SharedInformer as SharedInformer
from ._sink import Sink as Sink
