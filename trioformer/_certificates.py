"""Loads certificates and keys into TLS contexts, of clients and of servers.

OpenSSL reads them from files only, waits for the writer of a FIFO, and asks for a passphrase on the terminal.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from ._secret import Secret


class CertificateRefusedError(Exception):
    """The certificate or the key is not loaded; the text is a predicate that follows its path.

    Attributes:
        is_key: Whether it is the key that is refused.
    """

    def __init__(self, problem: str, *, is_key: bool) -> None:
        super().__init__(problem)
        self.is_key = is_key


class _PassphraseError(Exception):
    """OpenSSL asks for the passphrase of a key."""


def load_certificate(context: ssl.SSLContext, certificate: str, key: str | None, *, name: str = "certificate") -> None:
    """Load a certificate chain and its key, both PEM files, without asking for a passphrase.

    Args:
        context: The context to load them into.
        certificate: The path of the certificate chain.
        key: The path of the key; None when it is in the file of the certificate.
        name: What the certificate is called in errors.

    Raises:
        CertificateRefusedError: One of them is not valid, the key is encrypted, or is not the certificate's.
    """
    try:
        context.load_cert_chain(certificate, key, password=_reject_passphrase)
    except (OSError, _PassphraseError) as exc:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
        except OSError:
            problem = f"does not contain a valid certificate ({reason_of(exc)})"
            raise CertificateRefusedError(problem, is_key=False) from exc
        raise CertificateRefusedError(_problem_of_key(exc, name), is_key=True) from exc


def _problem_of_key(error: Exception, name: str) -> str:
    if isinstance(error, _PassphraseError):
        return "is encrypted with a passphrase, which is not supported; store it decrypted"
    if reason_of(error) in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return f"is not the key of the {name}"
    return f"does not contain a valid key, or not the key of the {name} ({reason_of(error)})"


def reason_of(error: Exception) -> str:
    """Return the short reason of an error of OpenSSL or of the operating system."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)


@contextmanager
def as_file(data: Secret[bytes]) -> Generator[str, None, None]:
    """Write a certificate or key to a file for OpenSSL; only this user can read it."""
    descriptor, path = tempfile.mkstemp(prefix="trioformer-")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data.reveal())
        yield path
    finally:
        os.unlink(path)


def _reject_passphrase() -> str:
    # Without this OpenSSL reads a passphrase from the terminal, and stops the whole program.
    raise _PassphraseError
