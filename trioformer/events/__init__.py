"""Event recorder: records Kubernetes Events about objects (client-go ``tools/events`` and ``tools/record``).

- ``_recorder.py``: :class:`EventRecorder`
- ``_series.py``: an occurrence, and the series of equal ones that one Event counts
- ``_correlation.py``: combines similar events, and limits the Events of an object
- ``_write_queue.py``: the Events that wait, in a line for each object
- ``_write_loop.py``: decides which one is written next
- ``_writer.py``: sends the Event of a series to the API server
- ``_options.py``: :class:`EventRecorderOptions`
"""

from __future__ import annotations

from ._options import EventRecorderOptions as EventRecorderOptions
from ._recorder import EventRecorder as EventRecorder

__all__ = ["EventRecorder", "EventRecorderOptions"]
