"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from .informer._shared_informer import add_paused_handler as add_paused_handler
from .informer._statistics import InformerStatistics as InformerStatistics
from .processor._processor import HandlerStatistics as HandlerStatistics
from .reflector._list_watch import EventSource as EventSource
from .reflector._list_watch import ListWatch as ListWatch
from .reflector._status import ReflectorStatistics as ReflectorStatistics
