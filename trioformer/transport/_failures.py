"""The failures of connections and of responses, which are the causes of a ``ConnectionFailedError``.

The classes have the names of httpx, and errors of a caller's httpx transport are converted to the class with the same
name.  httpx itself is not used here, because importing it takes a tenth of the start of a program.

::

    TransportError
    ├── TimeoutException
    │   ├── ConnectTimeout
    │   ├── ReadTimeout
    │   └── WriteTimeout
    ├── NetworkError
    │   ├── ConnectError
    │   ├── ReadError
    │   └── WriteError
    ├── ProtocolError
    │   └── RemoteProtocolError
    │       └── EarlyEndError
    ├── ProxyError
    ├── DecodingError
    └── InvalidURL
"""

from __future__ import annotations

from typing import Final


class TransportError(Exception):
    """A request failed."""


class TimeoutException(TransportError):  # noqa: N818  # the name of httpx, as below
    """An operation on a connection took too long."""


class ConnectTimeout(TimeoutException):
    """No connection was made in time."""


class ReadTimeout(TimeoutException):
    """Nothing arrived in time."""


class WriteTimeout(TimeoutException):
    """The request was not sent in time."""


class NetworkError(TransportError):
    """A connection failed."""


class ConnectError(NetworkError):
    """No connection was made."""


class ReadError(NetworkError):
    """A connection failed while it was read."""


class WriteError(NetworkError):
    """A connection failed while a request was sent."""


class ProtocolError(TransportError):
    """A message violates the rules of HTTP."""


class RemoteProtocolError(ProtocolError):
    """The server violated the rules of HTTP."""


class EarlyEndError(RemoteProtocolError):
    """The server closed the connection before a response began or ended."""


NO_RESPONSE: Final = "the server closed the connection without a response"
CUT_OFF: Final = "the connection closed before the end of the body"


class ProxyError(TransportError):
    """The proxy did not connect to the server."""


class DecodingError(TransportError):
    """A response cannot be decompressed."""


class InvalidURL(TransportError):  # noqa: N818
    """A URL is not valid."""
