"""Load certificates and keys into the TLS contexts of clients and servers, again when their files are rotated.

OpenSSL can read them only from files, blocks on a FIFO until another process writes to it, and asks for a passphrase
on the terminal.
So the content is checked first, OpenSSL gets a private copy of it, and encrypted keys are refused.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Generic, TypeVar, final

from ._file_changes import FileChanges
from ._secret import Secret
from .errors import ConfigError

F = TypeVar("F")

REFRESH_PERIOD: Final = 300.0
"""Seconds until unchanged certificate files are read again (client-go's ``transport/cert_rotation.go``)."""

_DESCRIPTORS: Final = "/proc/self/fd/"


class CertificateRefusedError(Exception):
    """A certificate or a key cannot be used.

    The message is a predicate, such as "is encrypted", to which the caller prepends the path of the file.

    Attributes:
        is_key: Whether the key is the problem, rather than the certificate.
    """

    def __init__(self, problem: str, *, is_key: bool) -> None:
        super().__init__(problem)
        self.is_key = is_key


class _PassphraseError(Exception):
    """OpenSSL asked for the passphrase of a key."""


def load_certificate(context: ssl.SSLContext, certificate: Secret[bytes], key: Secret[bytes] | None) -> None:
    """Load a certificate chain and its key, both in PEM format, without asking for a passphrase.

    Raises:
        CertificateRefusedError: The certificate or the key is not valid, the key is encrypted, the key does not belong
            to the certificate, or a temporary file cannot be written.
    """
    with _as_file(certificate, is_key=False) as path, _key_as_file(key) as key_path:
        try:
            context.load_cert_chain(path, key_path, password=_reject_passphrase)
        except (OSError, _PassphraseError) as exc:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
            except OSError:
                problem = f"does not contain a valid certificate ({reason_of(exc)})"
                raise CertificateRefusedError(problem, is_key=False) from exc
            raise CertificateRefusedError(_problem_of_key(exc), is_key=True) from exc


def _problem_of_key(error: Exception) -> str:
    if isinstance(error, _PassphraseError):
        return "is encrypted with a passphrase, which is not supported; store it decrypted"
    if reason_of(error) in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return "is not the key of the certificate"
    return f"does not contain a valid key, or not the key of the certificate ({reason_of(error)})"


def reason_of(error: Exception) -> str:
    """Return a short reason for an error from OpenSSL or the operating system."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)


def _key_as_file(key: Secret[bytes] | None) -> AbstractContextManager[str | None]:
    return nullcontext() if key is None else _as_file(key, is_key=True)


@contextmanager
def _as_file(data: Secret[bytes], *, is_key: bool) -> Generator[str, None, None]:
    """Write a certificate or key to a file that only this process or user can read.

    If the system supports it, the file is kept in memory, because a container may not have a writable directory.
    """
    try:
        descriptor, path = _open_memory() or tempfile.mkstemp(prefix="trioformer-")
    except OSError as exc:
        problem = f"cannot be copied for OpenSSL: no temporary file ({exc.strerror})"
        raise CertificateRefusedError(problem, is_key=is_key) from exc
    try:
        with os.fdopen(descriptor, "wb") as opened:
            try:
                opened.write(data.reveal())
                opened.flush()
            except OSError as exc:
                problem = f"cannot be copied for OpenSSL: {exc.strerror}"
                raise CertificateRefusedError(problem, is_key=is_key) from exc
            yield path
    finally:
        if not path.startswith(_DESCRIPTORS):
            os.unlink(path)


def _open_memory() -> tuple[int, str] | None:
    if not (hasattr(os, "memfd_create") and os.path.isdir(_DESCRIPTORS)):
        return None
    descriptor = os.memfd_create("trioformer")
    os.fchmod(descriptor, 0o600)
    return descriptor, f"{_DESCRIPTORS}{descriptor}"


def _reject_passphrase() -> str:
    # Without this OpenSSL reads a passphrase from the terminal, and stops the whole program.
    raise _PassphraseError


@final
class RotatedCertificates(Generic[F]):
    """A TLS context for new connections, which is replaced when the content of its files has changed.

    Args:
        files: The paths of the files.  None stands for a file that is not configured.
        read: A function that returns the content of the files.
        make: A function that makes a context from the content.
        logger: The logger for changes.
        connections: A description of the connections for the log.

    Raises:
        ConfigError: A file cannot be read or is not valid.
    """

    __slots__ = ("_connections", "_logger", "_make", "_problem", "_read", "changes", "content", "context")

    def __init__(
        self,
        files: Iterable[str | None],
        read: Callable[[], F],
        make: Callable[[F], ssl.SSLContext],
        logger: logging.Logger,
        connections: str,
    ) -> None:
        self.changes = FileChanges(files, period=REFRESH_PERIOD)
        self._read, self._make, self._logger, self._connections = read, make, logger, connections
        self._problem = ""
        self.content = read()
        self.context = make(self.content)

    def refresh(self) -> ssl.SSLContext:
        """Read the files if they have changed, and return the context.

        If a file cannot be read or is not valid, a warning is logged, and the previous certificates stay in use.
        """
        if self.changes.must_read():
            self.changes.record_read()
            try:
                content = self._read()
                if content != self.content:
                    self.context = self._make(content)
                    self.content = content
                    self._logger.info("the certificates have changed; new %s use the new ones", self._connections)
                self._problem = ""
            except ConfigError as exc:
                if str(exc) != self._problem:  # avoid a log line per second
                    text = "the certificates for %s have changed but are not valid; keeping the previous ones: %s"
                    self._logger.warning(text, self._connections, exc)
                self._problem = str(exc)
        return self.context
