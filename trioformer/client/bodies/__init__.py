"""From the bytes of a response to objects: the way goes up only.

- ``_list_splitter.py``: splits the body of a list into items
- ``_wire_format.py``: the media type of a kind; splits a watch into events; checks the kind of objects, and scans them
- ``_lists.py``: a list while it arrives
- ``_responses.py``: a complete response: an object, or the error that it is
- ``_undecodable.py``: objects that do not decode, which are in quarantine by their keys
- ``_contents.py``: what a body is that is not what was expected

What only knows JSON, and a second encoding needs as well: ``ListSplitter``, ``FrameSplitter`` with
``decode_watch_frame``, the search for the key of an object in ``_undecodable.py``, and the kinds and errors that
``_contents.py``, ``_responses.py`` and ``_wire_format.py`` read.
"""
