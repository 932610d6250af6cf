"""The credentials of requests, and their sources.

The source is queried before each request, because token files are rotated and credentials from plugins expire.
"""

from __future__ import annotations

import base64
import logging
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, final

import attrs

from ..._file_changes import FileChanges
from ..._files import read_file
from ..._secret import Secret, conceal
from ...errors import ConfigError
from ...kubeconfig import ClusterConfig


@final
@attrs.frozen(eq=False)
class ClientCertificate:
    """A client certificate and its private key, as PEM."""

    chain: Secret[bytes]
    """The certificate, followed by the certificates of intermediate authorities."""
    key: Secret[bytes]
    """The unencrypted private key."""


@final
@attrs.frozen(eq=False)
class Credential:
    """The credential of a request.

    A source returns the same object until it has obtained a new credential. A new credential is a new object, even if
    the two are equal.  So a late 401 response to a request with the old credential is ignored.
    A certificate that has not changed stays the same object.
    """

    authorization: Secret[str] | None = None
    """The value of the ``Authorization`` header; None for no header."""
    certificate: ClientCertificate | None = None
    """A certificate from a plugin, which replaces the configured certificate."""

    def is_equal(self, other: Credential) -> bool:
        """Return whether a server that rejects one of two credentials would also reject the other."""
        return self.authorization == other.authorization and self.certificate is other.certificate


def basic_authorization(user: str, password: Secret[str]) -> Secret[str]:
    """Return the header value for basic authentication to a server or a proxy."""
    pair = Secret(f"{user}:{password.reveal()}".encode())
    return Secret(f"Basic {base64.b64encode(pair.reveal()).decode('ascii')}")


class CredentialSource(Protocol):
    """The source of a client's credentials. Any number of tasks may use it at the same time."""

    @property
    def latest(self) -> Credential:
        """The credential that was used last. It is for probes, which do not need a valid credential.

        Getting this attribute never reads a file or runs a plugin.
        """
        ...

    async def get(self) -> Credential:
        """Return the credential for the next request. This method executes a checkpoint only if it has to wait.

        Raises:
            TrioformerError: No credential could be obtained.
        """
        ...

    def reject(self, credential: Credential) -> None:
        """Record that the server responded with 401 to a request with this credential.

        If ``credential`` is the latest credential, the next call to :meth:`get` tries to obtain a new one.
        """
        ...

    def in_use(self) -> AbstractContextManager[None]:
        """Keep the source open until the end of the block. Each client enters this context manager.

        When the last client has left its block, a running plugin is killed, and pending calls to :meth:`get` raise
        trio.ClosedResourceError.
        """
        ...


TOKEN_PERIOD: Final = 60.0
"""Seconds until a token file is read again even without a visible change (client-go ``transport/token_source.go``)."""

_VISIBLE: Final = re.compile(rb"[\x21-\x7e]+")

logger = logging.getLogger("trioformer.transport")


@final
class Authorization:
    """The source of configured credentials: a bearer token, basic authentication, or none.

    Implements :class:`~._credentials.CredentialSource`.

    A changed token file is read again before a request; see ``_file_changes.py``.  The old token stays in use while
    the file
    is empty, unreadable, or does not contain a valid token.
    Errors never show a secret.

    Raises:
        ConfigError: A user name or token contains invalid characters, or no earlier token is known and a token file
            does not contain a valid token.
    """

    __slots__ = ("_changes", "_file", "_latest", "_problem")

    def __init__(self, config: ClusterConfig) -> None:
        self._file = config.token_file
        self._latest = Credential()
        self._problem = ""
        self._changes = FileChanges([self._file], period=TOKEN_PERIOD)
        if config.token is not None:
            header = _bearer(conceal(config.token))
            if header is not None:
                self._latest = Credential(header)
            elif self._file is None:
                problem = "a token must not be empty, nor contain white space, control or non-ASCII characters"
                raise ConfigError(problem, file=config.source, key="token")
        elif config.username is not None and self._file is None:
            if ":" in config.username:
                raise ConfigError("a user name must not contain a colon", key="username")
            self._latest = Credential(basic_authorization(config.username, conceal(config.password or "")))
        if self._file is not None:
            self._read(self._file)

    @property
    def latest(self) -> Credential:
        return self._latest

    async def get(self) -> Credential:
        if self._file is not None and self._changes.must_read():
            self._changes.record_read()
            self._read(self._file)
        return self._latest

    def reject(self, credential: Credential) -> None:
        # A token that was read later is not the rejected one (client-go ``ResetTokenOlderThan``).
        if credential is self._latest:
            self._changes.record_rejection()

    def in_use(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _read(self, file: str) -> None:
        header: Secret[str] | None = None
        cause: Exception | None = None
        try:
            token = Secret(read_file(file).reveal().strip())
            header = _bearer(token)
            problem = "" if header else "does not contain a valid token" if token else "is empty"
        except OSError as exc:
            problem, cause = f"cannot be read: {exc.strerror}", exc
        if not problem:
            if header != self._latest.authorization:
                self._latest = Credential(header)
        elif self._latest.authorization is None:
            raise ConfigError(f"the token file {problem}", file=file) from cause
        elif problem != self._problem:  # avoid a log line per second
            logger.warning("token file %s %s; keeping the previous token", file, problem)
        self._problem = problem


def _bearer(token: Secret[str] | Secret[bytes]) -> Secret[str] | None:
    """Return the ``Authorization`` header for a token, or None if the token contains invalid characters."""
    revealed = token.reveal()  # nothing below raises
    encoded = revealed.encode("utf-8", "replace") if isinstance(revealed, str) else revealed
    return Secret(f"Bearer {encoded.decode('ascii')}") if _VISIBLE.fullmatch(encoded) else None
