"""Create an ``ssl.SSLContext`` from the certificates in a :class:`ClusterConfig`."""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from typing import Final, TypeAlias, final

from ..._certificates import CertificateRefusedError, RotatedCertificates, load_certificate, reason_of
from ..._files import read_file
from ..._secret import Secret, conceal
from ..._util import warn_once
from ...errors import ConfigError
from ...kubeconfig import ClusterConfig
from ._credentials import ClientCertificate

logger = logging.getLogger("trioformer.transport")


_Files: TypeAlias = tuple[Secret[bytes] | None, Secret[bytes] | None, Secret[bytes] | None]
"""The content of the files with the authorities, the client's certificate and its key. None stands for a part that is
not in a file."""


@final
class TLS:
    """The TLS settings of one cluster, from files that may be rotated while the program runs.

    TLS 1.2 is the minimum. Only the configured authorities are trusted, or the system's authorities if none are
    configured.
    Changed files are read when a request is sent; see ``_file_changes.py``.
    Changed certificates need a new context, because OpenSSL never forgets an authority that a context has trusted.

    Raises:
        ConfigError: A certificate or private key is not valid. The error names the file and the key in the kubeconfig.
    """

    __slots__ = ("_certificate", "_config", "_rotated")

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._certificate: ClientCertificate | None = None
        self._rotated = RotatedCertificates(
            (config.ca_file, config.client_certificate_file, config.client_key_file),
            lambda: _read_files(config),
            lambda files: _make_context(config, files, self._certificate),
            logger,
            f"connections to {config.server}",
        )
        if config.insecure_skip_tls_verify:
            warn_once(
                logger,
                f"{config.source}: insecure-skip-tls-verify is set, so any server that responds at {config.server}"
                " receives the credentials; set certificate-authority-data instead",
            )

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context for new connections.  Each change of the certificates creates a new context."""
        return self._rotated.context

    def use(self, certificate: ClientCertificate | None) -> None:
        """Use the client certificate of a plugin instead of the configured certificate.

        None restores the configured certificate.

        Raises:
            ConfigError: The certificate is not valid.
        """
        if certificate is not self._certificate:
            self._rotated.context = _make_context(self._config, self._rotated.content, certificate)
            self._certificate = certificate

    def refresh(self) -> None:
        """If the files have changed, create a new context."""
        self._rotated.refresh()

    def record_rejection(self) -> None:
        """Record that one side has rejected a certificate. Changed files are then read immediately."""
        self._rotated.changes.record_rejection()


def _make_context(config: ClusterConfig, files: _Files, certificate: ClientCertificate | None) -> ssl.SSLContext:
    authorities = conceal(config.ca_data) if config.ca_data is not None else files[0]
    try:
        context = client_context(None if authorities is None else _text(authorities.reveal()))
    except ssl.SSLError as exc:
        problem = f"does not contain a valid certificate ({reason_of(exc)})"
        # Drop the frames: their variables have the content, which may be a key or a token by mistake.
        raise _error(config, "certificate-authority", config.ca_file, problem) from exc.with_traceback(None)
    if config.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    chain = files[1] if config.client_certificate_data is None else conceal(config.client_certificate_data)
    key = files[2] if config.client_key_data is None else conceal(config.client_key_data)
    if certificate is not None:
        chain, key = certificate.chain, certificate.key
    if chain is not None:
        try:
            load_certificate(context, chain, key)
        except CertificateRefusedError as exc:
            part = "key" if exc.is_key else "certificate"
            if certificate is not None:
                raise ConfigError(f"the {part} of the credential plugin {exc}", file=config.source, key="exec") from exc
            file = config.client_key_file if exc.is_key else config.client_certificate_file
            raise _error(config, f"client-{part}", file, str(exc)) from exc
    return context


def client_context(authorities: str | None) -> ssl.SSLContext:
    """Return a context that verifies the server. If no authorities are given, the system's authorities are trusted.

    This function does not use ``ssl.create_default_context``, which would write the keys of all connections to the
    file that ``SSLKEYLOGFILE`` names.
    With these keys, anyone who controls the environment of a program could decrypt the program's tokens. client-go
    ignores the variable.
    Since Python 3.13, that function also sets ``VERIFY_X509_STRICT``, which rejects the authorities of many clusters,
    such as EKS (kubernetes-client/python#2394). client-go accepts these authorities.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies certificate and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # An authority does not have to be self-signed, as in client-go, and by default in Python since 3.13.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if authorities is None:
        context.load_default_certs()
    else:
        _load_authorities(context, authorities)
    return context


_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


def _load_authorities(context: ssl.SSLContext, authorities: str) -> None:
    """Trust the certificates of a bundle.

    As client-go does, ignore invalid certificates if there is at least one valid certificate.

    Raises:
        ssl.SSLError: The bundle does not contain a valid certificate.
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
        logger.warning("ignoring the invalid certificates in a bundle of authorities; using the valid ones")


def _text(pem: bytes) -> str:
    # Comments around the certificates may have any encoding.  An empty text would mean the system's authorities.
    return pem.decode("ascii", "ignore") or "\n"


def _read_files(config: ClusterConfig) -> _Files:
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
    except OSError as exc:
        raise _error(config, key, file, f"cannot be read: {exc.strerror}") from exc


def _error(config: ClusterConfig, key: str, file: str | None, problem: str) -> ConfigError:
    """Return an error about a file that the configuration names, or about data in the configuration itself."""
    return ConfigError(problem, file=file or config.source, key=key if file else f"{key}-data")
