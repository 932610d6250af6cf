"""Certificates: :class:`ClusterConfig` → ``ssl.SSLContext``."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, final

import trio

from ..errors import ConfigError
from ..kubeconfig import ClusterConfig

REFRESH_PERIOD: Final = 300.0
"""Seconds after which certificate files are looked at again (client-go ``transport/cert_rotation.go``)."""

logger = logging.getLogger("trioformer.transport")


@final
class TLS:
    """The TLS settings of one cluster, from files that may be rotated while the program runs.

    At least TLS 1.2; the configured authorities only, or the system's when there are none.
    A client certificate or authority whose file has changed is used for new connections; watches end after some minutes
    and idle connections sooner, so all connections follow.
    An authority that has left its file stays trusted until the client is opened anew.

    Attributes:
        context: What connections use.

    Raises:
        ConfigError: A certificate or key cannot be used; names file and key.
    """

    __slots__ = ("_config", "_looked_at", "_seen", "context")

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._looked_at = trio.current_time()
        self._seen = _read_files(config)
        authorities = self._seen[0] if config.ca_data is None else config.ca_data
        try:
            self.context: ssl.SSLContext = ssl.create_default_context(
                cadata=None if authorities is None else _text(authorities)
            )
        except ssl.SSLError as exc:
            problem = f"holds no usable certificate ({_reason(exc)})"
            raise _error(config, "certificate-authority", config.ca_file, problem) from exc
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Python 3.13 sets it, and the authorities of many clusters do not pass it, EKS's among them
        # (kubernetes-client/python#2394); client-go takes them.
        self.context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if config.insecure_skip_tls_verify:
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE
        _load_client_certificate(config, self.context)

    def refresh(self) -> None:
        """Load files again that have changed since they were last looked at, five minutes ago or more.

        What cannot be read or used is logged, and what was loaded before stays.
        """
        now = trio.current_time()
        if now < self._looked_at + REFRESH_PERIOD:
            return
        self._looked_at = now
        config = self._config
        try:
            new = _read_files(config)
            if new == self._seen:
                return
            if new[0] is not None and new[0] != self._seen[0]:
                self.context.load_verify_locations(cadata=_text(new[0]))
            if new[1:] != self._seen[1:]:
                # Tried on a context of its own: while the files are replaced, one may not fit the other yet.
                _load_client_certificate(config, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
                _load_client_certificate(config, self.context)
        except (ConfigError, ssl.SSLError) as exc:
            logger.warning("certificates have changed but cannot be used; keeping those of before: %s", exc)
        else:
            self._seen = new


def _text(pem: bytes) -> str:
    # Comments around the certificates may be in any encoding.  No text at all would mean the system's authorities.
    return pem.decode("ascii", "ignore") or "\n"


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)


def _read_files(config: ClusterConfig) -> tuple[bytes | None, bytes | None, bytes | None]:
    return (
        _read(config, "certificate-authority", config.ca_file),
        _read(config, "client-certificate", config.client_certificate_file),
        _read(config, "client-key", config.client_key_file),
    )


def _read(config: ClusterConfig, key: str, file: str | None) -> bytes | None:
    if file is None:
        return None
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as exc:
        raise _error(config, key, file, f"cannot be read: {exc.strerror}") from exc


def _error(config: ClusterConfig, key: str, file: str | None, problem: str) -> ConfigError:
    """The error about a file of the configuration, or about the data that stands in the configuration itself."""
    return ConfigError(problem, file=file or config.source, key=key if file else f"{key}-data")


def _load_client_certificate(config: ClusterConfig, context: ssl.SSLContext) -> None:
    with (
        _as_file(config.client_certificate_data, config.client_certificate_file) as certificate,
        _as_file(config.client_key_data, config.client_key_file) as key,
    ):
        if certificate is None:
            return
        try:
            context.load_cert_chain(certificate, key, password=_refuse_passphrase)
        except (OSError, ValueError) as exc:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
            except OSError:
                problem = f"holds no usable certificate ({_reason(exc)})"
                raise _error(config, "client-certificate", config.client_certificate_file, problem) from exc
            problem = f"is not the key of the client certificate, or no usable key at all ({_reason(exc)})"
            raise _error(config, "client-key", config.client_key_file, problem) from exc


def _refuse_passphrase() -> str:
    # Without this OpenSSL would ask the terminal, and stop the whole program.
    raise ValueError("it is encrypted with a passphrase, which is not supported")


@contextmanager
def _as_file(data: bytes | None, file: str | None) -> Generator[str | None, None, None]:
    """Give OpenSSL, which takes them from files only, a certificate or key; readable by this user, gone at once."""
    if data is None:
        yield file
        return
    descriptor, path = tempfile.mkstemp(prefix="trioformer-")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
        yield path
    finally:
        os.unlink(path)
