"""The TLS contexts of servers."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from os import PathLike
from typing import Final, final

import attrs
import trio

from .._certificates import CertificateRefusedError, load_certificate
from .._files import FileRefusedError, read_file
from .._secret import Secret
from ..errors import ConfigError
from ._connection import logger

_NO_TLS: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 38\r\n"
    b"connection: close\r\n\r\n400 bad request: this port speaks TLS\n"
)


def server_context(
    certificate: str | PathLike[str], key: str | PathLike[str], *, names: tuple[str, str] = ("certificate", "key")
) -> ssl.SSLContext:
    """Return a TLS context for a server with this certificate chain and key, both PEM files.

    It offers HTTP/1.1 only, and TLS 1.2 at least.

    Args:
        certificate: The file of the certificate chain.
        key: The file of the key.
        names: What the user calls the two, for errors.

    Raises:
        ConfigError: A file cannot be read or is not valid, the key is encrypted, or is not the certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        load_certificate(context, _read(certificate, names[0]), _read(key, names[1]))
    except CertificateRefusedError as exc:
        file, name = (key, names[1]) if exc.is_key else (certificate, names[0])
        raise ConfigError(str(exc), file=os.fspath(file), key=name) from exc
    context.set_alpn_protocols(["http/1.1"])
    return context


@final
@attrs.define(eq=False)
class PlainHTTP:
    """Responds to the clients of one server that speak plain HTTP to its port with TLS; the first one is logged."""

    _url: str
    _is_logged: bool = attrs.field(default=False, init=False)

    async def respond(self, failure: Exception, stream: trio.abc.SendStream) -> None:
        """Send a 400 below TLS, if it was plain HTTP that made the handshake fail.

        A probe that lacks ``scheme: HTTPS`` then has something to show, as with the servers of Go.
        """
        error = failure.__cause__
        if not (isinstance(error, ssl.SSLError) and error.reason == "HTTP_REQUEST"):
            return
        if not self._is_logged:
            self._is_logged = True
            logger.warning(
                "a client speaks plain HTTP to %s, which gets a 400: a kubelet's probe needs scheme: HTTPS; "
                "logged once",
                self._url,
            )
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(_NO_TLS)


def _read(file: str | PathLike[str], name: str) -> Secret[bytes]:
    try:
        return read_file(file)
    except FileRefusedError as exc:
        raise ConfigError(str(exc), file=os.fspath(file), key=name) from exc
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", file=os.fspath(file), key=name) from exc
