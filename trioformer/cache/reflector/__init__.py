"""The reflector: keeps a sink in step with the API server by list and watch.

- ``_reflector.py``: :class:`Reflector`, the loop and its table of what happens after which error
- ``_options.py``: :class:`ReflectorOptions`, and the types of its callbacks
- ``_status.py``: what a reflector is doing, what it counts, and which errors end it
- ``_list_watch.py``: :class:`ListWatch`, what a reflector reads from, and :class:`ApiListWatch`
- ``_watch_list.py``: a list that arrives as the beginning of a watch (KEP-3157)
- ``_transform.py``: checks and transforms each object before it is written
- ``_sink.py``: :class:`Sink`, what a reflector writes to
"""

from __future__ import annotations

from ._list_watch import ApiListWatch as ApiListWatch
from ._list_watch import EventSource as EventSource
from ._list_watch import ListWatch as ListWatch
from ._options import ReflectorOptions as ReflectorOptions
from ._reflector import Reflector as Reflector
from ._sink import Sink as Sink
from ._status import InformerPhase as InformerPhase
from ._status import InformerState as InformerState
from ._status import ReflectorStatistics as ReflectorStatistics
from ._transform import Transform as Transform
