"""The reflector, which lists and watches a kind and writes the objects to a sink.

- ``_reflector.py``: :class:`Reflector`, the loop that sends one request after the other
- ``_states.py``: the states, and the table of their transitions
- ``_watch_reader.py``: reads an open watch, and checks the version of a resumed one
- ``_options.py``: :class:`ReflectorOptions`
- ``_status.py``: :class:`ReflectorStatistics`, the phases, and which errors end a reflector
- ``_list_watch.py``: :class:`ListWatch`, the source that a reflector reads from, and :class:`ApiListWatch`
- ``_watch_list.py``: reads a watch-list, a list at the beginning of a watch (KEP-3157)
- ``_transform.py``: checks and transforms each object before it is written
- ``_sink.py``: :class:`Sink`, the protocol that a reflector writes to
"""
