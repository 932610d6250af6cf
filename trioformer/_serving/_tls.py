"""The TLS contexts of servers."""

from __future__ import annotations

import os
import ssl
from os import PathLike

from .._certificates import CertificateRefusedError, load_certificate
from .._files import read_file
from .._secret import Secret
from ..errors import ConfigError


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


def _read(file: str | PathLike[str], name: str) -> Secret[bytes]:
    try:
        return read_file(file)
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", file=os.fspath(file), key=name) from exc
