"""Certificates: :class:`ClusterConfig` to ``ssl.SSLContext``."""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from typing import Final, final

import trio

from .._certificates import CertificateRefusedError, load_certificate, reason_of
from .._files import FileRefusedError, read_file
from .._secret import Secret, conceal
from .._util import warn_once
from ..errors import ConfigError
from ..kubeconfig import ClusterConfig

REFRESH_PERIOD: Final = 300.0
"""Seconds after which certificate files are read again (client-go ``transport/cert_rotation.go``)."""

logger = logging.getLogger("trioformer.transport")


@final
class TLS:
    """The TLS settings of one cluster, from files that may be rotated while the program runs.

    TLS 1.2 or newer; only the configured authorities are trusted, or the system's if none are configured.
    New connections use the client certificate and the authorities as they are in the files; watches end after some
    minutes and idle connections sooner, so all connections are replaced.
    An authority that is removed from its file stays trusted until the client is opened again.

    Attributes:
        context: The settings for connections.

    Raises:
        ConfigError: A certificate or key is not valid; names file and key.
    """

    __slots__ = ("_config", "_loaded", "_read_at", "context")

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._read_at = trio.current_time()
        self._loaded = _read_files(config)
        read = self._loaded[0]
        authorities = config.ca_data if config.ca_data is not None or read is None else read.reveal()
        try:
            self.context: ssl.SSLContext = _client_context(None if authorities is None else _text(authorities))
        except ssl.SSLError as exc:
            problem = f"does not contain a valid certificate ({reason_of(exc)})"
            raise _error(config, "certificate-authority", config.ca_file, problem) from exc
        if config.insecure_skip_tls_verify:
            warn_once(
                logger,
                f"{config.source}: insecure-skip-tls-verify is set: whoever answers as {config.server} receives the"
                " credentials; set certificate-authority-data instead",
            )
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE
        _load_client_certificate(config, self.context, *self._loaded[1:])

    def refresh(self) -> None:
        """Load the files that have changed, if they were last read five minutes ago or earlier.

        If a file cannot be read or is not valid, this is logged, and the previous certificates stay in use.
        """
        now = trio.current_time()
        if now < self._read_at + REFRESH_PERIOD:
            return
        self._read_at = now
        config = self._config
        try:
            new = _read_files(config)
            if new == self._loaded:
                return
            if new[0] is not None and new[0] != self._loaded[0]:
                _load_authorities(self.context, _text(new[0].reveal()))
            if new[1:] != self._loaded[1:]:
                # First into another context: while the files are being replaced, certificate and key may not match.
                _load_client_certificate(config, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), *new[1:])
                _load_client_certificate(config, self.context, *new[1:])
        except (ConfigError, ssl.SSLError) as exc:
            logger.warning("certificates have changed but are not valid; keeping the previous ones: %s", exc)
        else:
            self._loaded = new


def _client_context(authorities: str | None) -> ssl.SSLContext:
    """Make a context that verifies the server; without authorities by those of the system.

    ``ssl.create_default_context`` also writes the keys of all connections to the file in ``SSLKEYLOGFILE``.
    Who sets the environment of a program could then decrypt its tokens, and client-go ignores the variable, too.
    It sets ``VERIFY_X509_STRICT`` since Python 3.13, which rejects the authorities of many clusters, such as EKS's
    (kubernetes-client/python#2394); client-go accepts them.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies certificate and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # An authority need not be self-signed; so in client-go, and Python's default since 3.13.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if authorities is None:
        context.load_default_certs()
    else:
        _load_authorities(context, authorities)
    return context


_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


def _load_authorities(context: ssl.SSLContext, authorities: str) -> None:
    """Trust the certificates of a bundle; like client-go, ignore those that cannot be read if there are others.

    Raises:
        ssl.SSLError: There is no valid one.
    """
    try:
        context.load_verify_locations(cadata=authorities)
    except ssl.SSLError:
        is_any_valid = False
        for certificate in authorities.split(_BEGIN)[1:]:
            with suppress(ssl.SSLError):
                context.load_verify_locations(cadata=_BEGIN + certificate)
                is_any_valid = True
        if not is_any_valid:
            raise
        logger.warning("certificate authorities that are not valid are ignored; others in the same bundle are used")


def _text(pem: bytes) -> str:
    # Comments around the certificates may be in any encoding.  An empty text would mean the system's authorities.
    return pem.decode("ascii", "ignore") or "\n"


def _read_files(config: ClusterConfig) -> tuple[Secret[bytes] | None, Secret[bytes] | None, Secret[bytes] | None]:
    return (
        _read(config, "certificate-authority", config.ca_file),
        _read(config, "client-certificate", config.client_certificate_file),
        _read(config, "client-key", config.client_key_file),
    )


def _read(config: ClusterConfig, key: str, file: str | None) -> Secret[bytes] | None:
    if file is None:
        return None
    try:
        return read_file(file)
    except FileRefusedError as exc:
        raise _error(config, key, file, str(exc)) from exc
    except OSError as exc:
        raise _error(config, key, file, f"cannot be read: {exc.strerror}") from exc


def _error(config: ClusterConfig, key: str, file: str | None, problem: str) -> ConfigError:
    """Make an error about a file of the configuration, or about the data in the configuration itself."""
    return ConfigError(problem, file=file or config.source, key=key if file else f"{key}-data")


def _load_client_certificate(
    config: ClusterConfig,
    context: ssl.SSLContext,
    certificate_read: Secret[bytes] | None,
    key_read: Secret[bytes] | None,
) -> None:
    """Load the certificate and key that were read from files, or those in the configuration itself."""
    certificate = _concealed(config.client_certificate_data) or certificate_read
    if certificate is None:
        return
    try:
        load_certificate(
            context, certificate, _concealed(config.client_key_data) or key_read, name="client certificate"
        )
    except CertificateRefusedError as exc:
        if exc.is_key:
            raise _error(config, "client-key", config.client_key_file, str(exc)) from exc
        raise _error(config, "client-certificate", config.client_certificate_file, str(exc)) from exc


def _concealed(pem: bytes | Secret[bytes] | None) -> Secret[bytes] | None:
    return None if pem is None else conceal(pem)
