"""Event recorder: writes Kubernetes Events about objects (client-go ``tools/events`` and ``tools/record``).

- ``_recorder.py``: :class:`EventRecorder`
- ``_series.py``: one Event and its repetitions
- ``_correlation.py``: Events that are combined, and Events that are too many
- ``_writer.py``: sends Events to the API server
- ``_options.py``: :class:`EventRecorderOptions`, :class:`EventRecorderStatistics`
"""

from __future__ import annotations

from ._options import EventRecorderOptions as EventRecorderOptions
from ._options import EventRecorderStatistics as EventRecorderStatistics
from ._recorder import EventRecorder as EventRecorder

__all__ = ["EventRecorder", "EventRecorderOptions", "EventRecorderStatistics"]
