"""The processor: distributes notifications to listeners, each with its own buffer.

- ``_notifications.py``: :class:`Added`, :class:`Updated`, :class:`Deleted`, the handlers that receive them,
  and what waits in a listener's buffer
- ``_overflow.py``: what happens when it is full, one class for each policy
- ``_listener_buffer.py``: the buffer of one listener: its state, its resyncs, and how the listener reads
- ``_processor.py``: :class:`HandlerRegistration`, :class:`Subscription`, and the distribution
"""
