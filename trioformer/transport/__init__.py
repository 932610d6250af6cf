"""Bytes: one cluster's connections, credentials, and the cutting of bodies into objects.

- ``_connection.py``: :func:`open_transport` and :class:`Transport`: requests, and bodies that are read as they come
- ``_byte_stream.py``: :class:`ByteStream`, such a body; how httpx's generators are left
- ``_throttle.py``: so many requests a second
- ``_observer.py``: :class:`RequestObserver`, who is told of requests
- ``_auth.py``: the ``Authorization`` header, from tokens, token files, user and password
- ``_tls.py``: certificates
- ``_errors.py``: httpx's errors → :class:`~trioformer.errors.ConnectionFailedError`
- ``_frames.py``: watch bodies → events
- ``_list_splitter.py``: list bodies → items

Nothing in here knows a Kubernetes kind, and nothing of httpx leaves it.
"""

from __future__ import annotations

from ._byte_stream import ByteStream as ByteStream
from ._connection import Response as Response
from ._connection import Transport as Transport
from ._connection import open_transport as open_transport
from ._frames import EventType as EventType
from ._frames import FrameSplitter as FrameSplitter
from ._frames import Scan as Scan
from ._frames import WatchFrame as WatchFrame
from ._frames import decode_watch_frame as decode_watch_frame
from ._frames import excerpt as excerpt
from ._list_splitter import BLOCK as BLOCK
from ._list_splitter import ListHead as ListHead
from ._list_splitter import ListSplitter as ListSplitter
from ._observer import RequestObserver as RequestObserver
from ._throttle import BURST as BURST

__all__ = [
    "BLOCK",
    "BURST",
    "ByteStream",
    "EventType",
    "FrameSplitter",
    "ListHead",
    "ListSplitter",
    "RequestObserver",
    "Response",
    "Scan",
    "Transport",
    "WatchFrame",
    "decode_watch_frame",
    "excerpt",
    "open_transport",
]
