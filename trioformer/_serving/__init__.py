"""An HTTP/1.1 server, for a manager's health and metrics and for the embedded API server, with limits for every peer.

h11 reads and writes the messages; ASGI is the interface to applications.
"""

from __future__ import annotations

from ._connection import Message as Message
from ._connection import ServerLimits as ServerLimits
from ._server import serve_app as serve_app
from ._server import serve_stream as serve_stream
