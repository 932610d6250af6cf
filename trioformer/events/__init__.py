"""Event recorder: records Kubernetes Events about objects (client-go ``tools/events`` and ``tools/record``).

- ``_recorder.py``: :class:`EventRecorder`
- ``_series.py``: a recorded event, and a series of equal events, which one Event on the server counts
- ``_correlation.py``: combines similar events, and limits the number of Events for each object
- ``_write_queue.py``: the queue of Events to write, with one line for each object
- ``_write_loop.py``: decides which Event is written next
- ``_writer.py``: sends the Event of a series to the API server
- ``_options.py``: :class:`EventRecorderOptions`
"""

from __future__ import annotations

from ._options import EventRecorderOptions as EventRecorderOptions
from ._recorder import EventRecorder as EventRecorder

__all__ = ["EventRecorder", "EventRecorderOptions"]
