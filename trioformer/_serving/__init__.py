"""HTTP/1.1 servers of this library: a manager's health and metrics, and the embedded API server.

They speak HTTP/1.1 and nothing else, and everything that a peer can make them do or keep is limited.
h11 reads and writes the messages; ASGI is the interface to what is served.

- ``_listeners.py``: listening sockets, their addresses and URLs, TLS contexts, bearer tokens
- ``_connection.py``: one connection: requests, responses, deadlines; and which connection has to give way
- ``_server.py``: :func:`serve_app`, :class:`ServerLimits`
"""

from __future__ import annotations

from ._connection import Message as Message
from ._connection import ServerLimits as ServerLimits
from ._listeners import bearer_token as bearer_token
from ._listeners import is_loopback as is_loopback
from ._listeners import is_token as is_token
from ._listeners import open_listener as open_listener
from ._listeners import server_context as server_context
from ._listeners import split_address as split_address
from ._listeners import url_of as url_of
from ._server import serve_app as serve_app
from ._server import serve_stream as serve_stream
