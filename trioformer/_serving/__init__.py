"""HTTP/1.1 servers: a manager's health and metrics, and the embedded API server on a socket.

h11 parses and formats the messages; ASGI is the interface to the application.
Everything that a client can make a server keep or wait for has a limit.
"""

from __future__ import annotations

from ._connection import Message as Message
from ._connection import ServerLimits as ServerLimits
from ._server import serve_app as serve_app
from ._server import serve_stream as serve_stream
