"""The reflector: lists and watches the API server, and writes what it receives to a sink.

- ``_reflector.py``: :class:`Reflector`, the loop that sends the request of each state
- ``_states.py``: the states, and the table of what follows each outcome
- ``_watch_reader.py``: reads an open watch, and checks the version of a resumed one
- ``_options.py``: :class:`ReflectorOptions`
- ``_status.py``: :class:`ReflectorStatistics`, the phases, and which errors end a reflector
- ``_list_watch.py``: :class:`ListWatch`, the source that a reflector reads from, and :class:`ApiListWatch`
- ``_watch_list.py``: reads a watch-list, the list that is the beginning of a watch (KEP-3157)
- ``_transform.py``: checks and transforms each object before it is written
- ``_sink.py``: :class:`Sink`, the protocol that a reflector writes to
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
