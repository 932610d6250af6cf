"""The processor: distributes notifications to listeners, each with its own buffer.

- ``_notifications.py``: :class:`Added`, :class:`Updated`, :class:`Deleted`, the handlers that receive them,
  and what waits in a listener's buffer
- ``_overflow.py``: what happens when it is full, one class for each policy
- ``_listener_buffer.py``: the buffer of one listener: its state, its resyncs, and how the listener reads
- ``_processor.py``: :class:`HandlerRegistration`, :class:`Subscription`, and the distribution
"""

from __future__ import annotations

from ._listener_buffer import BufferStatistics as BufferStatistics
from ._notifications import Added as Added
from ._notifications import Deleted as Deleted
from ._notifications import FilteringHandler as FilteringHandler
from ._notifications import Notification as Notification
from ._notifications import ResourceEventHandler as ResourceEventHandler
from ._notifications import Updated as Updated
from ._overflow import Overflow as Overflow
from ._processor import ErrorHandler as ErrorHandler
from ._processor import HandlerRegistration as HandlerRegistration
from ._processor import HandlerStatistics as HandlerStatistics
from ._processor import Subscription as Subscription
