"""An HTTP/1.1 server for a manager's health checks and metrics, and for the embedded API server on a socket.

httptools parses the requests, and ASGI is the interface to the application.
The resources that a client can use are limited, and so is the time for which the server waits for a client.
"""

from __future__ import annotations

from ._connection import ServerLimits as ServerLimits
from ._server import GracefulEnd as GracefulEnd
from ._server import serve_app as serve_app
from ._server import serve_stream as serve_stream
