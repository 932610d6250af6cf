"""Decode the bytes of a response to objects.

- ``_list_splitter.py``: splits the body of a list into items
- ``_wire_format.py``: the media type of a kind; splits a watch into events; checks the kind of objects and scans them
- ``_lists.py``: decodes a list while it arrives
- ``_responses.py``: makes an object or an error from a complete response
- ``_undecodable.py``: describes objects that cannot be decoded, with their keys for the quarantine
- ``_contents.py``: describes unexpected bodies

A second encoding would need its own version of these parts, which know only JSON: ``ListSplitter``, ``FrameSplitter``
with ``decode_watch_frame``, the search for the key of an object in ``_undecodable.py``, and the kinds and errors that
``_contents.py``, ``_responses.py`` and ``_wire_format.py`` read.
"""
