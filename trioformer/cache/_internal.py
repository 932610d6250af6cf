"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._bad_objects import Quarantined as Quarantined
from .factory._factory import attach_shares as attach_shares
from .factory._factory import undivided as undivided
from .informer._divided_source import DividedSource as DividedSource
from .informer._parts import Part as Part
from .informer._parts import share_of as share_of
from .informer._reflectors import InformerStatistics as InformerStatistics
from .informer._shared_informer import add_paused_handler as add_paused_handler
from .informer._sharing import share_with_threads as share_with_threads
from .processor._listener_buffer import ListenerBuffer as ListenerBuffer
from .processor._overflow import Overflow as Overflow
from .processor._processor import HandlerStatistics as HandlerStatistics
from .reflector._list_watch import EventSource as EventSource
from .reflector._list_watch import ListWatch as ListWatch
from .reflector._status import ReflectorStatistics as ReflectorStatistics
from .reflector._transform import Transform as Transform
from .store._indexer import IndexFunc as IndexFunc

if TYPE_CHECKING:
    from .store._division import Share as Share
