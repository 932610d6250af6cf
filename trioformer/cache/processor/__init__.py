"""The processor: sends notifications to listeners, each of which has its own buffer.

- ``_notifications.py``: :class:`Added`, :class:`Updated`, :class:`Deleted`, the handlers that receive them, and the
  batches of a buffer
- ``_overflow.py``: the queue of a buffer, one class for each overflow policy
- ``_listener_buffer.py``: the buffer of one listener: its state, its resyncs and its reader
- ``_processor.py``: :class:`HandlerRegistration`, :class:`Subscription`, and the distribution
"""
