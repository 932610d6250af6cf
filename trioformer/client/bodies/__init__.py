"""Decoding of the bytes of a response to objects.

- ``_list_splitter.py``: splits the body of a list into items
- ``_wire_format.py``: defines the media type of a kind, splits a watch into events, and checks and scans objects
- ``_lists.py``: decodes a list while it arrives
- ``_responses.py``: converts a complete response to an object or an error
- ``_undecodable.py``: describes objects that cannot be decoded, with their keys for the quarantine
- ``_contents.py``: describes unexpected bodies

JSON is the only supported encoding. A second encoding would need its own versions of these parts: ``ListSplitter``,
``FrameSplitter`` with ``decode_watch_frame``, and the search for the key of an object in ``_undecodable.py``. It would
also need other ways to read kinds and errors in ``_contents.py``, ``_responses.py`` and ``_wire_format.py``.
"""
