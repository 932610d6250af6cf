"""Decoding response bodies to objects.

- ``_list_splitter.py``: splits the body of a list into items
- ``_wire_format.py``: defines the media type of a kind, splits a watch into events, and checks and scans objects
- ``_protobuf.py``: splits and decodes lists and watches in protobuf
- ``_lists.py``: decodes a list while it arrives
- ``_responses.py``: converts a complete response to an object or an error
- ``_undecodable.py``: describes objects that cannot be decoded, with their keys for the quarantine
- ``_contents.py``: describes unexpected bodies

Lists and watches of built-in kinds can be requested in protobuf. All other responses are in JSON.
"""
